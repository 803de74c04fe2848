"""Tensors that are not what memory says, or no dense tensors at all, in everything that takes tensors: the
numbers of the ordinary tensor, or a sentence that names the argument."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import pumice
from pumice import losses, metrics, nn, ops
from pumice.window import Window

N, C = 6, 4


class Own(torch.Tensor):
    """A class of tensors that changes nothing."""


def of_conjugate(t: Tensor) -> Tensor:
    """With a lazy sign that nobody asked for."""
    return torch.complex(torch.zeros_like(t), -t).conj().imag


def in_fake_mode(t: Tensor) -> Tensor:
    return torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True).from_tensor(t.detach().clone())


def masked(t: Tensor) -> Any:
    return torch.masked.MaskedTensor(t.detach(), torch.ones_like(t, dtype=torch.bool))


# What is made of an ordinary tensor; None where there is no such thing of its type.
FLOATS: dict[str, Callable[[Tensor], Any]] = {
    "negated": lambda t: torch._neg_view(-t.detach()),
    "negated, of a conjugate": of_conjugate,
    "negated, strided": lambda t: torch._neg_view(-t.detach().repeat_interleave(2, 0))[::2],
    "strided": lambda t: t.detach().repeat_interleave(2, -1)[..., ::2],
    "own class": lambda t: t.detach().as_subclass(Own),
    "complex": lambda t: t.detach().cfloat(),
    "conjugate": lambda t: torch.complex(t.detach().float(), t.detach().float()).conj(),
    "sparse": lambda t: t.detach().to_sparse(),
    "sparse rows": lambda t: t.detach().to_sparse_csr() if t.dim() == 2 else None,
    "mkldnn": lambda t: t.detach().to_mkldnn() if t.dtype == torch.float32 else None,
    "quantised": lambda t: torch.quantize_per_tensor(t.detach(), 0.1, 0, torch.qint8),
    "nested": lambda t: torch.nested.nested_tensor(list(t.detach())) if t.dim() > 1 else None,
    "nested, jagged": lambda t: (
        torch.nested.nested_tensor(list(t.detach()), layout=torch.jagged) if t.dim() > 1 else None
    ),
    "without memory": lambda t: t.detach().to("meta"),
    "of zeros alone": lambda t: torch._efficientzerotensor(t.shape),
    "fake": in_fake_mode,
    "masked": masked,
    "truths": lambda t: t.detach() > 0,
    "of NumPy": lambda t: t.detach().numpy(),
    "of objects": lambda t: t.detach().numpy().astype(object),
    "masked, of NumPy": lambda t: np.ma.masked_array(t.detach().numpy(), mask=t.detach().numpy() > 0),
}
WITHOUT_VALUES = ("fake", "without memory")
INTEGERS: dict[str, Callable[[Tensor], Any]] = {
    "negated": lambda t: torch._neg_view(-t),
    "negated, strided": lambda t: torch._neg_view(-t.repeat_interleave(2, 0))[::2],
    "strided": lambda t: t.repeat_interleave(2, -1)[..., ::2],
    "own class": lambda t: t.as_subclass(Own),
    "floats": lambda t: t.double(),
    "complex": lambda t: t.cfloat(),
    "sparse": lambda t: t.to_sparse(),
    "nested": lambda t: torch.nested.nested_tensor(list(t)) if t.dim() > 1 else None,
    "without memory": lambda t: t.to("meta"),
    "of 64 unsigned bits": lambda t: t.to(torch.uint64) if (t >= 0).all() else None,
    "wrapping": lambda t: t.long() + 2**32,
    "of NumPy": lambda t: t.numpy(),
    "masked, of NumPy": lambda t: np.ma.masked_array(t.numpy(), mask=t.numpy() > 0),
}


def cells() -> Tensor:
    return torch.tensor([[i % 2, i, i % 3, 1] for i in range(N)], dtype=torch.int32)


def floats(*shape: int) -> Tensor:
    """In eighths, so that every type holds them."""
    torch.manual_seed(0)
    return torch.randint(-8, 9, shape).float() / 8


COORDS = pumice.Coordinates(cells(), spatial_shape=[8, 8, 8], batch_size=2)
WINDOW = Window.centred([3, 3, 3], [1, 1, 1])
COARSE = Window([2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1])
MAP = ops.submanifold_map(COORDS, WINDOW)


def edges() -> Tensor:
    return torch.stack([torch.arange(12) % N, torch.arange(12) * 5 % N])


GRAPH = pumice.Graph(edges(), N)
TYPED = pumice.TypedGraph(edges(), torch.arange(12) % 2, N, 2)


@dataclasses.dataclass
class Entry:
    """A public function of tensors: those it is given by name, and what it makes of them."""

    call: Callable[..., Any]
    floats: dict[str, Any] = dataclasses.field(default_factory=dict)
    integers: dict[str, Callable[[], Tensor]] = dataclasses.field(default_factory=dict)
    of_module: bool = False  # which holds tensors alone


def on_sites(layer: Callable[[], torch.nn.Module]) -> Entry:
    """A layer, of features of a sparse tensor."""

    def call(features: Tensor) -> Any:
        torch.manual_seed(1)
        made = layer()
        x = pumice.SparseTensor(COORDS, features)
        if isinstance(made, (nn.InverseConv3d, nn.ConvTranspose3d, nn.GenerativeConvTranspose3d)):
            fine, x = x, nn.Conv3d(C, C, 2, 2)(x)
            if isinstance(made, nn.ConvTranspose3d):
                return made(x, fine)
        return made(x)

    return Entry(call, {"features": (N, C)})


def layer_entries() -> dict[str, Entry]:
    made: dict[str, Callable[[], torch.nn.Module]] = {
        "Add": lambda: nn.Add(),
        "Cat": lambda: nn.Cat(),
        "BatchNorm": lambda: nn.BatchNorm(C),
        "SyncBatchNorm": lambda: nn.SyncBatchNorm(C),
        "LayerNorm": lambda: nn.LayerNorm(C),
        "InstanceNorm": lambda: nn.InstanceNorm(C),
        "Linear": lambda: nn.Linear(C, 3),
        "OnFeatures": lambda: nn.OnFeatures(torch.nn.Linear(C, 3)),
        "Identity": lambda: nn.Identity(),
        "Sequential": lambda: nn.Sequential(nn.SubMConv3d(C, C, 3), nn.BatchNorm(C), nn.ReLU()),
        "Residual": lambda: nn.Residual(nn.Sequential(nn.SubMConv3d(C, C, 3), nn.BatchNorm(C))),
        "GlobalPool": lambda: nn.GlobalPool("max"),
        "ToDense": lambda: nn.ToDense(),
        "ToBEV": lambda: nn.ToBEV(),
        "SubMConv3d": lambda: nn.SubMConv3d(C, 5, 3),
        "Dropout": lambda: nn.Dropout(0.0),
    }
    for name in ("Conv3d", "InverseConv3d", "ConvTranspose3d", "GenerativeConvTranspose3d"):
        made[name] = lambda name=name: getattr(nn, name)(C, 5, 2, 2)
    for name in ("MaxPool", "AvgPool", "SumPool"):
        made[name] = lambda name=name: getattr(nn, name)(2)
    for name in ("ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU", "GELU", "SiLU", "Sigmoid", "Tanh"):
        made[name] = lambda name=name: getattr(nn, name)()
    return {f"nn.{name}": on_sites(layer) for name, layer in made.items()}


def with_parameter(name: str, *shape: int, training: bool = True) -> Entry:
    """A convolution with its norm, one tensor of which is another."""

    def call(**given: Tensor) -> Any:
        torch.manual_seed(1)
        body = nn.Sequential(nn.SubMConv3d(C, C, 3, bias="bias" in given), nn.BatchNorm(C), nn.ReLU())
        body.train(training)
        layer = body[0] if name in ("weight", "bias") else body[1]
        tensor = given[name]
        attribute = name.removeprefix("norm_")
        if attribute.startswith("running"):
            layer._buffers[attribute] = tensor
        else:
            layer._parameters[attribute] = tensor
        return body(pumice.SparseTensor(COORDS, floats(N, C)))

    return Entry(call, {name: shape}, of_module=True)


def confusion(truth: Any, predicted: Any) -> Tensor:
    counts = metrics.Confusion(3)
    counts.add(truth, predicted)
    return counts.matrix


def classes() -> Tensor:
    return torch.arange(N) % 3


ENTRIES: dict[str, Entry] = {
    "SparseTensor": Entry(
        lambda coords, features: pumice.SparseTensor(coords, features),
        {"features": (N, C)}, {"coords": cells},
    ),
    "SparseTensor.replace": Entry(
        lambda features: pumice.SparseTensor(COORDS, floats(N, C)).replace(features=features),
        {"features": (N, C)},
    ),
    "SparseTensor.from_dense": Entry(
        lambda dense: pumice.SparseTensor.from_dense(dense), {"dense": (2, C, 3, 3)}
    ),
    "Coordinates": Entry(lambda coords: pumice.Coordinates(coords).indices, {}, {"coords": cells}),
    "Coordinates.unique": Entry(
        lambda coords: pumice.Coordinates.unique(coords)[1], {}, {"coords": cells}
    ),
    "voxelize": Entry(
        lambda points, features, batch: pumice.voxelize(
            points, features, size=0.5, batch=batch, batch_size=2
        ),
        {"points": (N, 3), "features": (N, C)}, {"batch": lambda: torch.arange(N) % 2},
    ),
    "ops.convolution": Entry(
        lambda features, weight, bias: ops.convolution(features, weight, MAP, bias),
        {"features": (N, C), "weight": (27, C, 5), "bias": (5,)},
    ),
    "ops.convolution_input_gradient": Entry(
        lambda grad_output, weight: ops.convolution_input_gradient(grad_output, weight, MAP),
        {"grad_output": (N, 5), "weight": (27, C, 5)},
    ),
    "ops.convolution_weight_gradient": Entry(
        lambda features, grad_output: ops.convolution_weight_gradient(features, grad_output, MAP),
        {"features": (N, C), "grad_output": (N, 5)},
    ),
    "ops.candidates": Entry(
        lambda features, weight: ops.candidates(features, weight, MAP)[0][1],
        {"features": (N, C), "weight": (27, C, 5)},
    ),
    "ops.plan_of": Entry(
        lambda features, weight: ops.plan_of(features, weight, MAP).splits,
        {"features": (N, C), "weight": (27, C, 5)},
    ),
    "ops.fused_convolution": Entry(
        lambda features, weight, scale, shift, residual: ops.fused_convolution(
            features, weight, MAP, scale, shift, residual
        ),
        {"features": (N, C), "weight": (27, C, 5), "scale": (5,), "shift": (5,), "residual": (N, 5)},
    ),
    "ops.fold_batch_norm": Entry(
        lambda mean, weight, bias: ops.fold_batch_norm(mean, torch.ones(C), weight, bias, None, 1.0),
        {"mean": (C,), "weight": (C,), "bias": (C,)},
    ),
    "ops.batch_norm": Entry(
        lambda features, weight, bias, residual: ops.batch_norm(
            features, weight, bias, residual=residual, relu=True
        ),
        {"features": (N, C), "weight": (C,), "bias": (C,), "residual": (N, C)},
    ),
    "ops.clear_tail": Entry(
        lambda features: ops.clear_tail(features, torch.tensor([3])), {"features": (N, C)}
    ),
    "ops.pool": Entry(lambda features: ops.pool(features, MAP, "max"), {"features": (N, C)}),
    "ops.global_pool": Entry(
        lambda features: ops.global_pool(features, COORDS, "average"), {"features": (N, C)}
    ),
    "ops.to_dense": Entry(lambda features: ops.to_dense(features, COORDS), {"features": (N, C)}),
    "ops.to_bev": Entry(lambda features: ops.to_bev(features, COORDS), {"features": (N, C)}),
    "ops.from_dense": Entry(
        lambda dense, mask: ops.from_dense(dense, mask)[1],
        {"dense": (2, C, 3, 3)}, {"mask": lambda: torch.arange(18).reshape(2, 3, 3) % 2},
    ),
    "ops.interpolation_map": Entry(
        lambda points: ops.interpolation_map(COORDS, points), {"points": lambda: cells().float()}
    ),
    "ops.interpolate": Entry(
        lambda features, weights, rows: ops.interpolate(
            features, ops.InterpolationMap(rows, weights, N)
        ),
        {"features": (N, C), "weights": (3, 8)},
        {"rows": lambda: torch.arange(24, dtype=torch.int32).reshape(3, 8) % N},
    ),
    "ops.take_rows": Entry(ops.take_rows, {"features": (N, C)}, {"rows": lambda: torch.arange(3)}),
    "ops.reduce_rows": Entry(
        lambda features, row_of: ops.reduce_rows(features, row_of, 3),
        {"features": (N, C)}, {"row_of": lambda: torch.arange(N) % 3},
    ),
    "ops.prune": Entry(
        lambda keep: ops.prune(pumice.SparseTensor(COORDS, floats(N, C)), keep),
        {}, {"keep": lambda: torch.arange(N) % 2},
    ),
    "ops.union_add": Entry(
        lambda features: ops.union_add(
            pumice.SparseTensor(COORDS, features), pumice.SparseTensor(cells()[:3], floats(3, C))
        ),
        {"features": (N, C)},
    ),
    "cat": Entry(
        lambda features: pumice.cat([pumice.SparseTensor(COORDS, features)] * 2), {"features": (N, C)}
    ),
    "losses.cross_entropy": Entry(
        lambda scores, weight, labels: losses.cross_entropy(scores, labels, weight=weight),
        {"scores": (N, 3), "weight": (3,)}, {"labels": classes},
    ),
    "losses.lovasz_softmax": Entry(
        losses.lovasz_softmax, {"scores": (N, 3)}, {"truth": classes}
    ),
    "ops.spmm": Entry(
        lambda features, values: ops.spmm(GRAPH, features, values), {"features": (N, C), "values": (12, 1)}
    ),
    "ops.sddmm": Entry(
        lambda left, right: ops.sddmm(GRAPH, left, right), {"left": (N, C), "right": (N, C)}
    ),
    "ops.edge_scores": Entry(
        lambda target, source, attention, entry: ops.edge_scores(GRAPH, target, source, attention, entry),
        {"target": (N, 2, C), "source": (N, 2, C), "attention": (2, C), "entry": (12, 2, C)},
    ),
    "ops.edge_softmax": Entry(
        lambda scores, target, source: ops.edge_softmax(GRAPH, scores, target=target, source=source),
        {"scores": (12, 2), "target": (N, 2), "source": (N, 2)},
    ),
    "ops.typed_linear": Entry(
        lambda features, weight: ops.typed_linear(features, weight, pumice.TypedRows([0, 2, N])),
        {"features": (N, C), "weight": (2, C, 3)},
    ),
    "ops.rgms": Entry(
        lambda features, weight, edge_weight: ops.rgms(TYPED, features, weight, edge_weight),
        {"features": (N, C), "weight": (2, C, 3), "edge_weight": (12,)},
    ),
    "Graph": Entry(
        lambda edge_index: ops.spmm(pumice.Graph(edge_index, N), floats(N, C)), {}, {"edge_index": edges}
    ),
    "TypedGraph": Entry(
        lambda edge_index, edge_type: ops.rgms(pumice.TypedGraph(edge_index, edge_type, N, 2), floats(N, C), floats(2, C, 3)),
        {}, {"edge_index": edges, "edge_type": lambda: torch.arange(12) % 2},
    ),
    "nn.graph": Entry(
        lambda x: nn.graph.SAGEConv(C, 3)(x, GRAPH), {"x": (N, C)}
    ),
    "metrics.Confusion.add": Entry(confusion, {}, {"truth": classes, "predicted": classes}),
    "weight of a layer": with_parameter("weight", 27, C, C),
    "weight in evaluation": with_parameter("weight", 27, C, C, training=False),
    "bias of a layer": with_parameter("bias", C),
    "weight of a norm": with_parameter("norm_weight", C),
    "bias of a norm in evaluation": with_parameter("norm_bias", C, training=False),
    "running mean": with_parameter("norm_running_mean", C),
    "running mean in evaluation": with_parameter("norm_running_mean", C, training=False),
    **layer_entries(),
}  # fmt: skip

# Of what is no tensor of their own, or is made of the others.
WITHOUT = {
    "ops.InterpolationMap", "ops.Map", "ops.finer_sites", "ops.generative_map", "ops.inverse_map",
    "ops.strided_map", "ops.submanifold_map", "ops.transposed_map",
    "nn.Convolution", "nn.init", "nn.freeze", "nn.in_order", "nn.residual",
}  # fmt: skip
OTHER_DIMENSIONS = ("1d", "2d", "4d")


def flat(value: Any) -> list[np.ndarray]:
    """All numbers in a result."""
    if isinstance(value, pumice.SparseTensor):
        return flat(value.features) + flat(value.coords.sites.coordinates())
    if isinstance(value, pumice.TensorVoxels):
        return flat(value.tensor) + flat(value.point_to_voxel)
    if isinstance(value, (tuple, list)):
        return [array for item in value for array in flat(item)]
    if isinstance(value, (int, float)):
        return [np.asarray(value)]
    return [value.detach().as_subclass(Tensor).resolve_neg().numpy(force=True)]


def ordinary(entry: Entry) -> dict[str, Tensor]:
    given = {n: shape() if callable(shape) else floats(*shape) for n, shape in entry.floats.items()}
    return {**given, **{name: make() for name, make in entry.integers.items()}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ENTRIES)
def test_strange_tensors_give_the_same_numbers_or_a_sentence(name: str) -> None:
    entry = ENTRIES[name]
    given = ordinary(entry)
    expected = flat(entry.call(**ordinary(entry)))
    wrong: list[str] = []
    for argument in given:
        kinds = FLOATS if argument in entry.floats else INTEGERS
        for kind, make in kinds.items():
            strange = make(given[argument].clone())
            if strange is None or (entry.of_module and not isinstance(strange, Tensor)):
                continue
            try:
                found = entry.call(**{**ordinary(entry), argument: strange})
            except (pumice.UserError, TypeError) as error:
                known = argument.removeprefix("norm_"), argument.split("_")[0]
                if not any(word in str(error) for word in known):
                    wrong.append(f"{argument} {kind}: {type(error).__name__}: {error}")
                continue
            except Exception as error:  # noqa: BLE001  (what is looked for)
                if kind in WITHOUT_VALUES:  # what PyTorch says of these among ordinary ones
                    continue
                wrong.append(f"{argument} {kind}: {type(error).__name__}: {str(error)[:150]}")
                continue
            if kind in WITHOUT_VALUES:  # of shapes alone, as tracing makes it
                continue
            values = expected
            if kind == "of zeros alone":
                values = flat(entry.call(**{**ordinary(entry), argument: given[argument] * 0}))
            same = len(values) == len(flat(found)) and all(
                a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
                for a, b in zip(values, flat(found))
            )
            if same == (kind == "wrapping"):  # another number, of which 32 bits are the same
                wrong.append(f"{argument} {kind}: other numbers")
    assert not wrong, "\n".join(wrong)


def test_every_public_function_of_tensors_is_among_these() -> None:
    public = {f"ops.{name}" for name in ops.__all__}
    public |= {f"nn.{name}" for name in nn.__all__ if not name.endswith(OTHER_DIMENSIONS)}
    public |= {f"losses.{name}" for name in vars(losses) if name.endswith(("_softmax", "_loss"))}
    assert public <= {*ENTRIES, *WITHOUT}, sorted(public - {*ENTRIES, *WITHOUT})


# Of NumPy alone.
ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "masked": lambda a: np.ma.masked_array(a, mask=a > 0),
    "complex": lambda a: a + 1j,
    "of texts": lambda a: a.astype(str),
    "of objects": lambda a: np.array([[None] * 3] * len(a)),
    "of dates": lambda a: a.astype("datetime64[s]"),
    "of records": lambda a: np.zeros((len(a), 3), dtype=[("x", np.float32)]),
    "ragged": lambda a: [[1, 2, 3], [1]],
    "other byte order": lambda a: a.astype(">f8"),
    "of 16 bits": lambda a: a.astype(np.float16),
    "strided": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "Fortran's order": np.asfortranarray,
    "nested lists": lambda a: a.tolist(),
    "negated tensor": lambda a: torch._neg_view(torch.from_numpy(-a)),
}


@pytest.mark.parametrize("argument", ["points", "features"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_strange_arrays_give_the_same_voxels_or_a_sentence(kind: str, argument: str) -> None:
    array = floats(N, 3).numpy()
    expected = pumice.voxelize(array, array, size=0.5)
    given = {"points": array, "features": array, argument: ARRAYS[kind](array)}
    if isinstance(given["points"], Tensor):
        given["features"] = given["points"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = pumice.voxelize(**given, size=0.5)
        except pumice.UserError as error:
            assert argument in str(error)
            return
    features = found.features.numpy() if isinstance(found.features, Tensor) else found.features
    np.testing.assert_array_equal(features, expected.features)
    assert kind in ("other byte order", "of 16 bits", "strided", "Fortran's order", "nested lists",
                    "negated tensor")  # fmt: skip


NUMBERS: dict[str, Callable[[int], Any]] = {
    "batch_size": lambda n: pumice.Coordinates(cells(), batch_size=n),
    "stride": lambda n: pumice.Coordinates(cells(), stride=[1, n, 1]),
    "spatial_shape": lambda n: pumice.Coordinates(cells(), spatial_shape=[n, 9, 9]),
    "low": lambda n: ops.to_dense(floats(N, C), COORDS, shape=[9, 9, 9], low=[n, 0, 0]),
    "shape": lambda n: ops.to_dense(floats(N, C), COORDS, shape=[9, n, 9]),
    "kernel_size": lambda n: nn.SubMConv3d(C, C, n),
    "padding": lambda n: nn.Conv3d(C, C, 3, 2, padding=n),
    "dilation": lambda n: nn.Conv3d(C, C, 3, 2, dilation=n),
    "rows": lambda n: ops.reduce_rows(floats(N, C), torch.arange(N), n),
    "groups": lambda n: ops.convolution(floats(N, C), floats(27, C, 5), MAP, groups=n),
}


@pytest.mark.parametrize("number", [2**40, -(2**40), 2**62, 2**70])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beyond_those_of_the_engine_are_refused_by_name(name: str, number: int) -> None:
    if name == "rows" and 0 < number < 2**63:
        pytest.skip("is a matter of memory")
    with pytest.raises(pumice.UserError, match=name):
        NUMBERS[name](number)


def test_indices_that_were_written_into_are_refused_at_the_next_layer() -> None:
    x = pumice.SparseTensor(cells(), floats(N, C))
    layers = [nn.SubMConv3d(C, C, 3), nn.InstanceNorm(C), nn.MaxPool(2), nn.GlobalPool(), nn.ToDense()]
    for layer in layers:
        layer(x)
    x.indices.zero_()
    for layer in layers:
        with pytest.raises(pumice.UserError, match="indices were written into"):
            layer(x)
    with pytest.raises(pumice.UserError, match="indices were written into"):
        pumice.collate([x])
    # Sites that a layer made hand out copies: others on them do not change.
    strided = nn.Conv3d(C, C, 2, 2)
    y, again = (strided(pumice.SparseTensor(COORDS, floats(N, C))) for _ in range(2))
    expected = again.dense()
    y.indices.fill_(7)
    assert torch.equal(again.dense(), expected)
    with pytest.raises(pumice.UserError, match="indices were written into"):
        y.dense()


def test_nothing_that_is_computed_reads_indices() -> None:
    x = pumice.SparseTensor(cells(), floats(N, C))
    norm = nn.InstanceNorm(C)
    expected = norm(x).features
    x.indices.numpy()[:] = 0  # of which nobody is told
    assert torch.equal(norm(x).features, expected)


def test_indices_of_inference_mode_have_no_count() -> None:
    with torch.inference_mode():
        x = pumice.SparseTensor(cells(), floats(N, C))
        expected = nn.SubMConv3d(C, C, 3)(x)
        assert len(expected.indices) == N
    assert len(nn.ReLU()(x)) == N


def test_a_negated_parameter_takes_the_place_of_one_that_was_not() -> None:
    """Parameters are asked once whether they are negated, each of them."""
    x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4], [0, 9, 9, 9]]), torch.randn(3, 4))
    chain = nn.Sequential(nn.SubMConv3d(4, 4, 3, bias=False), nn.BatchNorm(4), nn.ReLU())
    for net in (nn.SubMConv3d(4, 4, 3), chain.eval()):
        with torch.no_grad():
            for _ in range(3):
                before = net(x).features
                for module in net.modules():
                    for name, parameter in list(module.named_parameters(recurse=False)):
                        negated = torch.nn.Parameter(torch._neg_view(-parameter.detach()))
                        assert negated.is_neg()
                        setattr(module, name, negated)
                torch.testing.assert_close(net(x).features, before)
