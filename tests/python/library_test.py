"""The operators of torch.library: checked by PyTorch's own tests and by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import close, random_tensor, working_type

import pumice
import pumice.compat.minkowski  # whose operators are checked too
from pumice import _C, nn

pytestmark = pytest.mark.filterwarnings("ignore")
_ops = torch.ops.pumice

Arguments = tuple[Any, ...]


class Case:
    """What arguments are made of."""

    def __init__(self, device: torch.device, **options: Any) -> None:
        self.device = device
        self.type = working_type(device)
        self.x = random_tensor(dtype=self.type, device=device, **options)
        dimension = self.x.dimension
        self.sites, self.indices = self.x.coords.token, self.x.indices
        self.layer = getattr(nn, f"Conv{dimension}d")(self.x.features.shape[1], 3, 2, 2)
        self.layer.to(device, self.type)
        self.weight, self.bias = self.layer.weight, self.layer.bias
        self.numbers = self.layer.window.numbers
        found, self.coarse = self.layer.find(self.x, None)
        self.map, self.keep = _C.map_token(found), found
        self.sizes = (found.in_rows, found.out_rows)
        self.on_items = (len(self.x), self.x.batch_size)

    def rows(self, count: int, channels: int = 3, gradient: bool = True) -> torch.Tensor:
        made = torch.randn(count, channels, dtype=self.type, device=self.device)
        return made.requires_grad_(gradient)

    def channels(self, *values: int) -> list[torch.Tensor]:
        count = self.x.features.shape[1]
        return [torch.rand(count, dtype=self.type, device=self.device) + value for value in values]

    def argmax(self, items: bool) -> torch.Tensor:
        over, sizes = (self.sites, self.on_items) if items else (self.map, self.sizes)
        return _ops.max_pool(self.x.features.detach(), over, *sizes, items)[1]

    def plan(self, direction: str) -> str:
        """Of the layer: another one than would be chosen, where there is one."""
        return pumice.ops.candidates(self.x.features, self.weight, self.keep, direction)[-1][0].text

    def row_of(self) -> torch.Tensor:
        """int32 [rows of x]: to one of 5 rows each, or none; to the last of them none."""
        return torch.arange(len(self.x), dtype=torch.int32, device=self.device) % 5 - 1

    def source(self, reduction: str) -> torch.Tensor:
        return _ops.reduce_rows(self.x.features.detach(), self.row_of(), 5, reduction)[1]

    def edges(self) -> torch.Tensor:
        """int64 [2, 20], between 5 sources and 7 targets."""
        entry = torch.arange(20, device=self.device)
        return torch.stack([entry * 3 % 5, entry * 2 % 7])

    def graph(self) -> torch.Tensor:
        if not hasattr(self, "kept_graph"):
            self.kept_graph = pumice.Graph(self.edges(), (5, 7))
        return self.kept_graph.token

    def typed(self) -> pumice.TypedGraph:
        if not hasattr(self, "kept_typed"):
            self.kept_typed = pumice.TypedGraph(self.edges(), torch.arange(20, device=self.device) % 3, (5, 7), 3)
        return self.kept_typed

    def of_rgms(self, weight: torch.Tensor | None, channels: int, wanted: tuple[bool, ...]) -> Arguments:
        """What the gradients of a product are made of."""
        given = (*self.typed().tokens, self.rows(20, 1, False) if wanted[0] else None, self.rows(5, gradient=False), weight)
        kept = _ops.rgms(*given, 7, "max")[1]
        return *given, kept, self.rows(7, channels, False), "max", *wanted

    def types(self) -> torch.Tensor:
        """Of 9 rows, of 3 types."""
        if not hasattr(self, "kept_types"):
            self.kept_types = pumice.TypedRows([0, 4, 4, 9], self.device)
        return self.kept_types.token

    def picks(self, reduce: str) -> torch.Tensor:
        return _ops.spmm(self.graph(), None, self.rows(5, gradient=False), 7, 20, reduce)[1]

    def corners(self) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Rows and weights of points beside the sites, and how many rows there are."""
        points = self.indices.to(self.type)
        points[:, 1:] += torch.rand_like(points[:, 1:]) - 0.5
        found = _ops.interpolation_map(self.sites, points, self.x.dimension, False, True)
        return *found, len(self.x)


def computing() -> dict[str, Callable[[Case], Arguments]]:
    """What has gradients: the name of the operator, a space, and which case of it."""
    cases: dict[str, Callable[[Case], Arguments]] = {
        "convolution": lambda c: (
            c.x.features, c.weight, c.bias, c.map, *c.sizes, 1, None
        ),
        "convolution dataflow": lambda c: (
            c.x.features, c.weight, None, c.map, *c.sizes, 1, "gather_gemm_scatter"
        ),
        "convolution plan": lambda c: (
            c.x.features, c.weight, c.bias, c.map, *c.sizes, 1, None, c.plan("forward")
        ),
        "convolution_input_gradient": lambda c: (
            c.rows(c.sizes[1]), c.weight, c.map, *c.sizes, 1, None
        ),
        "convolution_input_gradient plan": lambda c: (
            c.rows(c.sizes[1]), c.weight, c.map, *c.sizes, 1, None, c.plan("input_gradient")
        ),
        "convolution_weight_gradient": lambda c: (
            c.x.features, c.rows(c.sizes[1]), c.map, *c.sizes, c.weight.shape[0], 1
        ),
        "convolution_weight_gradient plan": lambda c: (
            c.x.features, c.rows(c.sizes[1]), c.map, *c.sizes, c.weight.shape[0], 1, c.plan("weight_gradient")
        ),
        "max_pool": lambda c: (c.x.features, c.map, *c.sizes, False),
        "max_pool items": lambda c: (c.x.features, c.sites, *c.on_items, True),
        "max_pool_gradient": lambda c: (
            c.rows(c.sizes[1], c.x.features.shape[1]), c.argmax(False), c.map, *c.sizes, False
        ),
        "max_pool_gradient items": lambda c: (
            c.rows(c.x.batch_size, c.x.features.shape[1]), c.argmax(True), c.sites, *c.on_items, True
        ),
        "to_dense": lambda c: (
            c.x.features, c.sites, len(c.x), c.x.batch_size, c.x.dimension, None,
            list(c.x.spatial_shape), False,
        ),
        "to_dense box": lambda c: (
            c.x.features, c.sites, len(c.x), c.x.batch_size, c.x.dimension, [1] * c.x.dimension,
            [2] * c.x.dimension, True,
        ),
        "to_dense_gradient": lambda c: (
            c.x.dense().detach().requires_grad_(), c.sites, len(c.x), None,
            list(c.x.spatial_shape), False,
        ),
        "on_sites": lambda c: (c.x.features, c.sites, c.sites, len(c.x), len(c.x), "+"),
        "spmm": lambda c: (c.graph(), c.rows(20, 3), c.rows(5), 7, 20, "sum"),
        "spmm without values": lambda c: (c.graph(), None, c.rows(5), 7, 20, "mean"),
        "spmm max": lambda c: (c.graph(), c.rows(20, 1), c.rows(5), 7, 20, "max"),
        "spmm_features_gradient": lambda c: (c.graph(), c.rows(20, 1), c.rows(7), c.picks("mean"), 5, 20, "mean"),
        "spmm_values_gradient": lambda c: (c.graph(), c.rows(5), c.rows(7), c.picks("sum"), 7, 20, 3, "sum"),
        "edge_softmax": lambda c: (c.graph(), c.rows(7), c.rows(5), c.rows(20), 20, 0.2),
        "edge_scores": lambda c: (c.graph(), c.rows(7, 6), c.rows(5, 6), c.rows(2, 3), None, 20, 0.2),
        "edge_scores of entries": lambda c: (c.graph(), c.rows(7), c.rows(5), c.rows(1), c.rows(20), 20, 0.2),
        "edge_softmax of entries": lambda c: (c.graph(), None, None, c.rows(20), 20, 1.0),
        "typed_linear": lambda c: (c.types(), c.rows(9), c.rows(36, 2).reshape(3, 3, 8).detach().requires_grad_()),
        "typed_linear_input_gradient": lambda c: (
            c.types(), c.rows(9, 8), c.rows(36, 2).reshape(3, 3, 8).detach().requires_grad_()
        ),
        "typed_linear_weight_gradient": lambda c: (c.types(), c.rows(9), c.rows(9, 8), 3),
        "take_rows": lambda c: (c.x.features, c.row_of()),
        "take_rows by int64": lambda c: (c.x.features, c.row_of().long()),
        "scatter_rows": lambda c: (c.x.features, c.row_of(), 5),
        "interpolate": lambda c: (c.x.features, *c.corners()),
        "interpolate_gradient": lambda c: (c.x.features, *c.corners()),
        "batch_norm": lambda c: (
            c.x.features, *[v.requires_grad_() for v in c.channels(1, 0)],
            c.rows(len(c.x), c.x.features.shape[1]), *c.channels(0, 1), 0.1, 1e-5, True,
        ),
        "batch_norm alone": lambda c: (
            c.x.features, None, None, None, None, None, 0.1, 1e-5, False
        ),
    }
    for kind in ("mean", "sum", "max", "first"):
        cases[f"reduce_rows {kind}"] = lambda c, k=kind: (c.x.features, c.row_of(), 5, k)
        cases[f"reduce_rows_gradient {kind}"] = lambda c, k=kind: (
            c.rows(5, c.x.features.shape[1]), c.row_of(), c.source(k), k
        )
    for kind in ("sum", "average"):
        for items in (False, True):
            for back in (False, True):
                cases[f"sum_pool {kind}, {items}, {back}"] = lambda c, k=kind, i=items, b=back: (
                    c.rows((c.on_items if i else c.sizes)[b]),
                    c.sites if i else c.map, *(c.on_items if i else c.sizes), k, i, b,
                )
    return cases


def making() -> dict[str, Callable[[Case], Arguments]]:
    """What makes sites, maps and graphs, whose tokens are others at each call; and what has no gradient."""
    return {
        "edge_softmax_gradient": lambda c: (
            c.graph(), c.rows(7, gradient=False), c.rows(5, gradient=False), None, 0.2,
            c.rows(20, gradient=False), c.rows(20, gradient=False),
        ),
        "edge_scores_gradient": lambda c: (
            c.graph(), c.rows(7, gradient=False), c.rows(5, gradient=False), c.rows(1, gradient=False),
            c.rows(20, gradient=False), 0.2, c.rows(20, 1, gradient=False),
        ),
        "create_graph": lambda c: (c.edges(), 7, 5),
        "create_typed_graph": lambda c: (c.edges(), torch.arange(20, device=c.device) % 3, 7, 5, 3),
        "segments_of": lambda c: (*c.typed().tokens[::2], c.edges()),
        "create_over_edges": lambda c: c.typed().tokens[::2],
        "rgms": lambda c: (
            *c.typed().tokens, c.rows(20, 1), c.rows(5), c.rows(36, 2).reshape(3, 3, 8).detach().requires_grad_(), 7, "mean",
        ),
        "rgms without matrices": lambda c: (*c.typed().tokens, None, c.rows(5), None, 7, "max"),
        "rgms_gradients": lambda c: c.of_rgms(c.rows(36, 2, False).reshape(3, 3, 8), 8, (True, True, True)),
        "rgms_gradients without matrices": lambda c: c.of_rgms(None, 3, (False, True, False)),
        "create_sites": lambda c: (c.indices, None, None, None),
        "create_sites of a grid": lambda c: (c.indices.long(), [9, 9, 9], 2, [1, 1, 1]),
        "voxel_sites": lambda c: (c.indices.float(), None, [2, 2, 1], None, None, None),
        "voxel_sites of a batch": lambda c: (
            c.indices[:, 1:].float(), c.indices[:, 0], [1.5] * 3, [1, 1, 1, 9, 8, 7], [4, 4, 4], 2
        ),
        "voxel_sites of items not counted": lambda c: (
            c.indices[:, 1:].float(), c.indices[:, 0], [1.5] * 3, None, None, None
        ),
        "submanifold_map": lambda c: (c.sites, nn.SubMConv3d(1, 1, 3).window.numbers),
        "strided_map": lambda c: (c.sites, c.indices, c.numbers, False),
        "strided_map onto cells": lambda c: (c.sites, c.indices, c.numbers, True),
        "generative_map": lambda c: (c.coarse.token, c.coarse.indices, c.numbers),
        "transposed_map": lambda c: (c.coarse.token, c.sites, c.numbers),
        "map_onto": lambda c: (c.sites, c.coarse.token, c.numbers),
        "coarsened_in_order": lambda c: (unbounded(c).token, c.indices, [2, 1, 3]),
        "reached_in_order": lambda c: (unbounded(c).token, c.indices, [0, 0, 0, 1, 0, 0], [1] * 3, False),
        "reached_in_order finer": lambda c: (unbounded(c).token, c.indices, [0, 0, 0, 0, 1, 0], [2] * 3, True),
        "inverse_map": lambda c: (c.coarse.token, c.sites, c.numbers),
        "inverse_map_back": lambda c: (c.coarse.token, c.coarse.indices, c.numbers),
        "finer_sites": lambda c: (c.coarse.token, c.coarse.indices, [2, 2, 2]),
        "prune_sites": lambda c: (c.sites, c.indices, c.x.features.detach()[:, 0] > 0),
        "unite_sites": lambda c: (c.sites, c.sites, c.indices, c.indices),
        "unite_sites of others": lambda c: (c.sites, other(c).token, c.indices, other(c).indices),
        "sites_of_mask": lambda c: ((c.x.dense().detach() != 0).any(1).byte(),),
        "item_indices": lambda c: (c.indices, 1, 3),
        "interpolation_map": lambda c: (c.sites, c.indices.to(c.type), 3, False, False),
        "interpolation_map nearest": lambda c: (c.sites, c.indices.to(c.type), 3, True, True),
        "batch_norm_gradient": lambda c: (
            c.x.features.detach(), c.rows(len(c.x), 4, False), *c.channels(1, 0, 1),
            c.x.features.detach(), True,
        ),
        "fused_convolution": lambda c: (
            c.x.features.detach(), c.weight.detach(), c.map, c.sizes[1],
            c.rows(3, 1, False).flatten(), c.rows(3, 1, False).flatten(),
            c.rows(c.sizes[1], 3, False), True, 1,
        ),
        "to_dense of a box around": lambda c: (
            c.x.features.detach(), c.sites, len(c.x), 2, 3, None, None, False
        ),
    }


def other(c: Case) -> pumice.Coordinates:
    if not hasattr(c, "others"):
        c.others = random_tensor(seed=5, device=c.device).coords
    return c.others


def unbounded(c: Case) -> pumice.Coordinates:
    """The sites of MinkowskiEngine's interface, whose grid has no bounds."""
    if not hasattr(c, "free"):
        c.free = pumice.Coordinates(c.indices)
    return c.free


def operator(name: str) -> Any:
    return getattr(_ops, name.split(" ")[0]).default


def test_every_operator_is_checked() -> None:
    names = {name for name in torch._C._dispatch_get_all_op_names() if name.startswith("pumice::")}
    checked = {name.split(" ")[0] for name in (*computing(), *making(), "sum_over_processes")}
    assert names == {f"pumice::{name}" for name in checked}


@pytest.mark.parametrize("name", computing())
def test_opcheck(device: torch.device, name: str) -> None:
    torch.library.opcheck(operator(name), computing()[name](Case(device, extent=5, count=40)))


@pytest.mark.parametrize("name", making())
def test_opcheck_of_what_makes_sites(device: torch.device, name: str) -> None:
    """Not in AOTAutograd, whose test wants the same numbers twice: tokens are others each time."""
    torch.library.opcheck(
        operator(name),
        making()[name](Case(device)),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )


@pytest.mark.usefixtures("process_group")
def test_sums_over_processes(device: torch.device) -> None:
    name = torch.distributed.new_group([0]).group_name
    for group in ("", name):
        values = torch.randn(5, dtype=torch.float64, device=device, requires_grad=True)
        torch.library.opcheck(_ops.sum_over_processes.default, (values, group))
        run = lambda x, group=group: _ops.sum_over_processes(x, group)  # noqa: E731
        assert torch.equal(run(values), values)
        assert torch.autograd.gradcheck(run, (values,))
        assert torch.autograd.gradgradcheck(run, (values,))


@pytest.mark.parametrize("name", computing())
def test_gradients_agree_with_finite_differences(name: str) -> None:
    case = Case(torch.device("cpu"), dimension=2, extent=4, count=9, channels=2, batch=1)
    arguments = computing()[name](case)
    places = [
        i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor) and a.requires_grad
    ]
    assert places

    def run(*tensors: torch.Tensor) -> Any:
        given = list(arguments)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        made = operator(name)(*given)
        return made if isinstance(made, torch.Tensor) else made[0]

    inputs = [arguments[place] for place in places]
    assert torch.autograd.gradcheck(run, inputs)
    if not name.startswith(("batch_norm", "spmm max", "edge_s")):  # which refuse, see below
        assert torch.autograd.gradgradcheck(run, inputs)


def test_a_second_derivative_of_the_norm_is_refused() -> None:
    case = Case(torch.device("cpu"))
    made = _ops.batch_norm(*computing()["batch_norm alone"](case))[0]
    (first,) = torch.autograd.grad(made.square().sum(), case.x.features, create_graph=True)
    with pytest.raises(NotImplementedError, match="eager layer"):
        first.sum().backward()


@pytest.mark.parametrize("name", ["spmm max", "edge_softmax", "edge_scores"])
def test_a_second_derivative_of_what_picks_and_of_attention_is_refused(name: str) -> None:
    arguments = computing()[name](Case(torch.device("cpu")))
    made = operator(name)(*arguments)
    made = made if isinstance(made, torch.Tensor) else made[0]
    (first,) = torch.autograd.grad(made.square().sum(), arguments[2], create_graph=True)
    with pytest.raises(pumice.UserError, match="no second derivative"):
        first.sum().backward()


def test_operators_and_eager_calls_agree(device: torch.device) -> None:
    type_ = working_type(device)
    x = random_tensor(dtype=type_, device=device)
    layer = nn.Conv3d(4, 6, 3, 2, 1).to(device, type_)
    found, _ = layer.find(x, None)
    token, sizes = _C.map_token(found), (found.in_rows, found.out_rows)
    mine = _ops.convolution(x.features, layer.weight, layer.bias, token, *sizes, 1, None)
    eager = layer(x).features
    assert torch.equal(mine, eager)
    inputs = (x.features, layer.weight, layer.bias)
    weights = torch.randn_like(mine)
    for a, b in zip(
        torch.autograd.grad((mine * weights).sum(), inputs),
        torch.autograd.grad((eager * weights).sum(), inputs),
    ):
        close(a, b, 1000)


def test_tokens_own_what_they_stand_for() -> None:
    x = random_tensor()
    token = _C.sites_token(x.coords.sites)
    copy = token.clone()
    assert _C.sites_of(token).rows == len(x)
    assert _C.sites_of(copy).is_same(x.coords.sites)
    view = token.detach()
    del token
    assert _C.sites_of(view).rows == len(x)
    del view
    with pytest.raises(ValueError, match="no coordinates, map or graph"):
        _C.sites_of(copy)
    with pytest.raises(ValueError, match="of a map"):
        _C.map_of(x.coords.token)


def test_a_token_may_be_written_over_once_it_is_dead() -> None:
    """As a compiler does that uses its memory again."""
    token = _C.sites_token(random_tensor().coords.sites)
    copy = token.clone()
    token.fill_(7)
    with pytest.raises(ValueError, match="no coordinates, map or graph"):
        _C.sites_of(token)
    del token
    with pytest.raises(ValueError, match="no coordinates, map or graph"):
        _C.sites_of(copy)
