"""Derivatives of every operator on the CPU in float64, and second ones where there are some."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from conftest import random_sites, random_tensor

import pumice
from pumice import ops
from pumice.window import Window

Tensors = tuple[torch.Tensor, ...]


def sites(seed: int = 0, count: int = 9) -> pumice.Coordinates:
    return random_tensor(2, 5, count, batch=2, seed=seed).coords


def rows(count: int, channels: int = 3) -> torch.Tensor:
    return torch.randn(count, channels, dtype=torch.float64, requires_grad=True)


def window(size: int, stride: int, padding: int = 0) -> Window:
    return Window([size] * 2, [stride] * 2, [padding] * 2, [1] * 2)


def maps() -> Iterator[tuple[str, ops.Map]]:
    coords = sites()
    yield "submanifold", ops.submanifold_map(coords, Window.centred([3, 3], [1, 1]))
    yield "strided", ops.strided_map(coords, window(3, 2, 1), False)[0]
    yield "cell", ops.strided_map(coords, window(2, 2), True)[0]
    down, coarse = ops.strided_map(coords, window(2, 2), False)
    yield "inverse", ops.inverse_map(coarse, window(2, 2), coords)[0]
    yield "transposed", ops.transposed_map(coarse, coords, window(3, 2, 1))
    yield "generative", ops.generative_map(coarse, window(2, 2))[0]
    yield "turned round", down.transposed()


MAPS = dict(maps())


def check(run: Callable[..., torch.Tensor], *inputs: torch.Tensor, twice: bool = True) -> None:
    assert run(*inputs).abs().sum() > 0, "nothing is computed"
    assert torch.autograd.gradcheck(run, inputs)
    if twice:
        assert torch.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("name", MAPS)
def test_convolution(name: str, groups: int) -> None:
    map = MAPS[name]
    weight = torch.randn(map.offsets, 3 // groups, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, dtype=torch.float64, requires_grad=True)
    check(lambda x, w, b: ops.convolution(x, w, map, b, groups), rows(map.in_rows), weight, bias)
    check(
        lambda g, w: ops.convolution_input_gradient(g, w, map, groups), rows(map.out_rows), weight
    )
    check(
        lambda x, g: ops.convolution_weight_gradient(x, g, map, groups),
        rows(map.in_rows), rows(map.out_rows),
    )  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("kind", ["sum", "average", "max"])
def test_pooling(name: str, kind: str) -> None:
    map = MAPS[name]
    check(lambda x: ops.pool(x, map, kind), rows(map.in_rows), twice=kind != "max")


@pytest.mark.parametrize("kind", ["sum", "average", "max"])
def test_global_pooling(kind: str) -> None:
    coords = sites()
    check(lambda x: ops.global_pool(x, coords, kind), rows(len(coords)), twice=kind != "max")


@pytest.mark.parametrize(
    "options", [{}, {"shape": [7, 6], "low": [-1, 0]}, {"shape": [3, 3], "low": [1, 1], "crop": True}]
)
def test_to_dense(options: dict) -> None:
    coords = sites()
    check(lambda x: ops.to_dense(x, coords, **options), rows(len(coords)))
    for axis in (0, 1):
        check(lambda x, axis=axis: ops.to_bev(x, coords, axis, **options), rows(len(coords)))


def test_from_dense() -> None:
    mask = torch.rand(2, 4, 5) < 0.3
    dense = torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    check(lambda grid: ops.from_dense(grid, mask)[1], dense)


@pytest.mark.parametrize("options", [{}, {"nearest": True}, {"renormalize": True}])
def test_interpolation(options: dict) -> None:
    coords = sites()
    points = coords.indices[:5].float()
    points[:, 1:] += torch.rand(5, 2) * 0.8 - 0.4
    check(lambda x: ops.interpolate(x, coords, points, **options), rows(len(coords)))


def test_pruning_and_joining() -> None:
    left, right = sites(0), sites(1)
    assert len(random_sites(2, 5, 9, seed=0)) == len(left)
    keep = torch.arange(len(left)) % 2 == 0

    def on(coords: pumice.Coordinates, features: torch.Tensor) -> pumice.SparseTensor:
        return pumice.SparseTensor(coords, features)

    x, y = rows(len(left)), rows(len(right))
    check(lambda a: ops.prune(on(left, a), keep).features, x)
    check(lambda a, b: ops.union_add(on(left, a), on(right, b)).features, x, y)
    check(lambda a, b: pumice.cat([on(left, a), on(left, b)]).features, x, rows(len(left), 2))
    check(lambda a, b: (on(left, a) + on(left, b)).features, x, rows(len(left)))
    single = random_tensor(2, 5, 6, batch=1).coords
    check(
        lambda a, b: pumice.collate([on(single, a), on(single, b)]).features,
        rows(len(single)), rows(len(single)),
    )  # fmt: skip


@pytest.mark.parametrize("reduction", ["mean", "sum", "first", "max"])
def test_rows_merged_and_taken(reduction: str) -> None:
    row_of = torch.tensor([2, 0, -1, 2, 0, 2, 3], dtype=torch.int32)
    check(lambda x: ops.reduce_rows(x, row_of, 4, reduction), rows(7))
    check(lambda x: ops.take_rows(x, row_of), rows(4))
    check(lambda x: ops.clear_tail(x, torch.tensor([3])), rows(4))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training: bool) -> None:
    mean, variance = torch.randn(3, dtype=torch.float64), torch.rand(3, dtype=torch.float64) + 0.5
    weight = torch.rand(3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        return ops.batch_norm(x, w, b, mean.clone(), variance.clone(), training, residual=r)

    check(run, rows(7), weight, bias, rows(7))


GRAPH = pumice.Graph(torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 1, 0, 5, 3, 1, 5]]), (5, 6))
TYPED = pumice.TypedGraph(GRAPH.edge_index, torch.tensor([0, 1, 0, 2, 2, 0, 2]), (5, 6), 4)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_products_of_sparse_matrices(reduce: str) -> None:
    twice = reduce != "max"
    check(lambda x, v: ops.spmm(GRAPH, x, v, reduce), rows(5), rows(7, 3), twice=twice)
    check(lambda x: ops.spmm(GRAPH, x, reduce=reduce), rows(5), twice=twice)
    weight = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)
    values = torch.rand(7, dtype=torch.float64, requires_grad=True)
    check(lambda x, w, v: ops.rgms(TYPED, x, w, v, reduce), rows(5), weight, values, twice=twice)


def test_products_of_entries_attention_and_typed_rows() -> None:
    check(lambda a, b: ops.sddmm(GRAPH, a, b), rows(6), rows(5))
    check(
        lambda s, t, u: ops.edge_softmax(GRAPH, s, target=t, source=u, negative_slope=0.2),
        rows(7), rows(6), rows(5), twice=False,
    )  # fmt: skip
    attention = torch.randn(3, dtype=torch.float64, requires_grad=True)
    check(lambda t, u, a, e: ops.edge_scores(GRAPH, t, u, a, e), rows(6), rows(5), attention, rows(7), twice=False)
    weight = torch.randn(3, 3, 2, dtype=torch.float64, requires_grad=True)
    check(lambda x, w: ops.typed_linear(x, w, pumice.TypedRows([0, 2, 2, 7])), rows(7), weight)


def test_every_operator_is_checked() -> None:
    """What is not, makes no features of features."""
    checked = {
        "batch_norm", "clear_tail", "convolution", "convolution_input_gradient", "convolution_weight_gradient",
        "from_dense", "global_pool", "interpolate", "pool", "prune", "reduce_rows", "take_rows",
        "to_bev", "to_dense", "union_add", "edge_scores", "edge_softmax", "rgms", "sddmm", "spmm", "typed_linear",
    }  # fmt: skip
    maps = {name for name in ops.__all__ if name.endswith("_map")}
    without_gradients = {"candidates", "finer_sites", "fold_batch_norm", "fused_convolution", "plan_of"}
    assert set(ops.__all__) - maps - {"InterpolationMap", "Map"} - without_gradients == checked
