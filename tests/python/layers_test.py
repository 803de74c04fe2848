"""What every layer of pumice.nn has to do: copies, states, no rows, all types, derivatives, refusals."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import random_tensor

import pumice
import pumice.compat.spconv as spconv
from pumice import nn

CHANNELS = 4
HALVES = [torch.float16, torch.bfloat16]


@dataclasses.dataclass
class Case:
    """A layer, and how it is called."""

    make: Callable[[], torch.nn.Module]
    run: Callable[[torch.nn.Module, pumice.SparseTensor], Any] = lambda layer, x: layer(x)
    dimension: int = 3
    smooth: bool = True  # at random inputs
    weighs: bool = False  # its parameters meet the features in a product


def _halved(x: pumice.SparseTensor) -> pumice.SparseTensor:
    """On the sites of a strided convolution, differentiable in the features of `x`."""
    window = getattr(nn, f"Conv{x.dimension}d")(1, 1, 2, 2).window
    map, coords = pumice.ops.strided_map(x.coords, window, False)
    return pumice.SparseTensor(coords, pumice.ops.pool(x.features, map, "sum"))


def _convolutions(d: int) -> dict[str, Case]:
    def case(name: str, *arguments: int, run: Any = Case.run) -> Case:
        kind = getattr(nn, f"{name}{d}d")
        return Case(lambda: kind(CHANNELS, 6, *arguments), run, d, weighs=True)

    return {
        f"SubMConv{d}d": case("SubMConv", 3),
        f"Conv{d}d": case("Conv", 2, 2),
        f"InverseConv{d}d": case("InverseConv", 2, 2, run=lambda layer, x: layer(_halved(x))),
        f"ConvTranspose{d}d": case("ConvTranspose", 2, 2, run=lambda layer, x: layer(_halved(x), x)),
        f"GenerativeConvTranspose{d}d": case("GenerativeConvTranspose", 2, 2),
    }


def _block() -> nn.Sequential:
    return nn.Sequential(nn.SubMConv3d(CHANNELS, CHANNELS, 3), nn.BatchNorm(CHANNELS))


CASES: dict[str, Case] = {
    **_convolutions(1),
    **_convolutions(2),
    **_convolutions(3),
    **_convolutions(4),
    "MaxPool": Case(lambda: nn.MaxPool(2)),
    "AvgPool": Case(lambda: nn.AvgPool(3, 2, 1)),
    "SumPool": Case(lambda: nn.SumPool(2)),
    "GlobalPool": Case(lambda: nn.GlobalPool("average")),
    "ToDense": Case(nn.ToDense),
    "ToBEV": Case(nn.ToBEV),
    "BatchNorm": Case(lambda: nn.BatchNorm(CHANNELS)),
    "SyncBatchNorm": Case(lambda: nn.SyncBatchNorm(CHANNELS)),
    "LayerNorm": Case(lambda: nn.LayerNorm(CHANNELS)),
    "InstanceNorm": Case(lambda: nn.InstanceNorm(CHANNELS)),
    "Linear": Case(lambda: nn.Linear(CHANNELS, 6), weighs=True),
    **{
        name: Case(getattr(nn, name), smooth=name not in ("ReLU", "ReLU6", "LeakyReLU", "PReLU"))
        for name in ("ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU", "GELU", "SiLU", "Sigmoid", "Tanh")
    },
    "Dropout": Case(lambda: nn.Dropout(0.0)),
    "Identity": Case(nn.Identity),
    "OnFeatures": Case(lambda: nn.OnFeatures(torch.nn.Linear(CHANNELS, 6)), weighs=True),
    "Cat": Case(nn.Cat, lambda layer, x: layer(x, x)),
    "Add": Case(nn.Add, lambda layer, x: layer(x, x)),
    "Sequential": Case(
        lambda: nn.Sequential(nn.SubMConv3d(CHANNELS, 6, 3), nn.BatchNorm(6), nn.SiLU(), torch.nn.Linear(6, 2)),
        weighs=True,
    ),
    "Residual": Case(lambda: nn.Residual(_block()), smooth=False, weighs=True),
}


def values(result: Any) -> torch.Tensor:
    return result.features if isinstance(result, pumice.SparseTensor) else result


def made(name: str, device: torch.device, dtype: torch.dtype, rows: int = 60) -> tuple[Any, Any]:
    """A layer, and an input for it whose features want gradients."""
    case = CASES[name]
    extent = {1: 40, 2: 9, 3: 5, 4: 4}[case.dimension]
    x = random_tensor(case.dimension, extent, rows, CHANNELS, dtype=dtype, device=device)
    return case.make().to(device, dtype), x


FUNCTIONS = ("Convolution", "freeze", "graph", "in_order", "init", "residual")  # and what is no layer by itself


def test_no_layer_is_left_out() -> None:
    assert set(CASES) == {name for name in nn.__all__ if name not in FUNCTIONS}


@pytest.mark.parametrize("name", CASES)
def test_pickles_copies_and_states(device: torch.device, name: str) -> None:
    layer, x = made(name, device, torch.float32)
    run = CASES[name].run
    run(layer, x)  # in training: norms have seen a batch, containers have planned
    layer.eval()
    expected = values(run(layer, x))
    saved = io.BytesIO()
    torch.save(layer.state_dict(), saved)
    saved.seek(0)
    loaded = CASES[name].make().to(device).eval()
    loaded.load_state_dict(torch.load(saved))
    others = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded]
    for other in others:
        assert type(other) is type(layer) and repr(other) == repr(layer)
        assert list(other.state_dict()) == list(layer.state_dict())
        assert torch.equal(values(run(other, x)), expected)
        for mine, theirs in zip(layer.parameters(), other.parameters(), strict=True):
            assert mine.data_ptr() != theirs.data_ptr()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(1)
    for other in others:
        assert torch.equal(values(run(other, x)), expected)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_no_rows_in(device: torch.device, name: str, training: bool) -> None:
    layer, some = made(name, device, torch.float32)
    layer.train(training)
    before = {key: value.clone() for key, value in layer.state_dict().items()}
    features = torch.zeros(0, CHANNELS, device=device, requires_grad=True)
    x = pumice.SparseTensor(some.indices[:0], features, spatial_shape=some.spatial_shape, batch_size=2)
    result = values(CASES[name].run(layer, x))
    expected = values(CASES[name].run(layer, some))
    # What is not a matter of rows keeps its shape: [batch_size, …].
    rows = 2 if name in ("GlobalPool", "ToDense", "ToBEV") else 0
    assert result.shape == (rows, *expected.shape[1:]) and result.dtype == torch.float32
    assert not result.any()
    result.sum().backward()
    assert features.grad.shape == features.shape
    for parameter in layer.parameters():
        assert parameter.grad is None or not parameter.grad.any()
    layer, _ = made(name, device, torch.float32)
    layer.load_state_dict(before)
    CASES[name].run(layer.train(training), x)
    for key, value in layer.state_dict().items():
        assert torch.equal(value, before[key]), f"{key} was changed by no rows"


@pytest.mark.parametrize("dtype", [torch.float64, *HALVES])
@pytest.mark.parametrize("name", CASES)
def test_other_types_give_the_numbers_of_float32(
    device: torch.device, name: str, dtype: torch.dtype
) -> None:
    if dtype == torch.float64 and device.type == "cuda":
        pytest.skip("a GPU computes in float32 at best")
    layer, x = made(name, device, torch.float32)
    # Rounded beforehand, so that both start with the same numbers.
    x = x.replace(features=x.features.detach().to(dtype).float().requires_grad_())
    layer.to(dtype).float()
    other = copy.deepcopy(layer).to(dtype)
    there = x.replace(features=x.features.detach().to(dtype).requires_grad_())
    run = CASES[name].run
    expected, result = values(run(layer, x)), values(run(other, there))
    assert result.dtype == dtype
    step = max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
    scale = max(1.0, expected.abs().max().item())
    torch.testing.assert_close(result.float(), expected, rtol=0, atol=8 * step * scale)
    expected.square().sum().backward()
    result.float().square().sum().backward()
    assert there.features.grad.dtype == dtype
    scale = max(1.0, x.features.grad.abs().max().item())
    torch.testing.assert_close(
        there.features.grad.float(), x.features.grad, rtol=0, atol=32 * step * scale
    )
    for parameter in other.parameters():
        assert parameter.grad.dtype == dtype and parameter.grad.isfinite().all()


class Called(torch.nn.Module):
    """A layer with how it is called; gives features."""

    def __init__(self, layer: torch.nn.Module, run: Callable[..., Any]) -> None:
        super().__init__()
        self.layer, self.run = layer, run

    def forward(self, x: pumice.SparseTensor) -> torch.Tensor:
        return values(self.run(self.layer, x))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.smooth])
def test_gradcheck(name: str) -> None:
    layer, x = made(name, torch.device("cpu"), torch.float64, rows=12)
    called = Called(layer, CASES[name].run)
    parameters = dict(called.named_parameters())

    def run(features: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        given = dict(zip(parameters, weights, strict=True))
        return torch.func.functional_call(called, given, (x.replace(features=features),))

    inputs = (x.features, *(p.detach().clone().requires_grad_() for p in parameters.values()))
    # By a random direction where parameters are many; operators are checked element by element.
    fast = CASES[name].weighs and CASES[name].dimension > 2
    assert torch.autograd.gradcheck(run, inputs, fast_mode=fast)
    if name != "MaxPool":  # whose gradient is no function that has one
        assert torch.autograd.gradgradcheck(run, inputs, fast_mode=fast)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.weighs])
def test_unequal_types_are_refused(device: torch.device, name: str) -> None:
    layer, x = made(name, device, torch.float32)
    half = x.replace(features=x.features.detach().half())
    with pytest.raises((pumice.UserError, RuntimeError)) as raised:
        CASES[name].run(layer, half)
    said = str(raised.value).lower()
    assert any(word in said for word in ("f16", "half")), said
    assert any(word in said for word in ("f32", "float")), said


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.weighs])
def test_a_layer_on_another_device_is_refused(name: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here to leave a layer behind on the host of")
    layer, x = made(name, torch.device("cpu"), torch.float32)
    with pytest.raises((pumice.UserError, RuntimeError), match="cpu"):
        CASES[name].run(layer, x.cuda())
    with pytest.raises((pumice.UserError, RuntimeError), match="cuda"):
        CASES[name].run(layer.cuda(), x)


@pytest.mark.parametrize("name", CASES)
def test_layers_move_to_a_gpu_and_back(name: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here to move to")
    layer, x = made(name, torch.device("cpu"), torch.float32)
    layer.eval()
    expected = values(CASES[name].run(layer, x))
    there = values(CASES[name].run(layer.cuda(), x.cuda()))
    torch.testing.assert_close(there.cpu(), expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(values(CASES[name].run(layer.cpu(), x.cuda().cpu())), expected)


def test_a_tensor_alone_is_refused() -> None:
    with pytest.raises(pumice.UserError, match="SubMConv3d takes a sparse tensor, and got a Tensor"):
        nn.SubMConv3d(4, 8, 3)(torch.randn(3, 4))
    with pytest.raises(pumice.UserError, match="SubMConv3d.* takes a SparseConvTensor, and got a Tensor"):
        spconv.SubMConv3d(4, 8, 3)(torch.randn(3, 4))
