"""Numbers of rows that there are not, in everything that is given numbers of rows: nothing outside is
touched, and the sentence names list, element and number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import pumice
from pumice import _C, ops
from pumice.compat.torchsparse.nn import functional as torchsparse

N, P, C = 5, 4, 3
HOSTILE = {"most": 2**31 - 1, "below": -2, "count": N}
OPS = torch.ops.pumice


def sites() -> pumice.Coordinates:
    return pumice.Coordinates(torch.tensor([[0, i, 0, 0] for i in range(N)], dtype=torch.int32))


def features(rows: int = N) -> Tensor:
    return torch.randn(rows, C, requires_grad=True)


def rows(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.arange(P).to(dtype) if not shape else torch.zeros(shape, dtype=dtype) + 1


def at_points(x: Tensor, list: Tensor) -> Tensor:
    return pumice.TensorVoxels(pumice.SparseTensor(sites(), x.detach()), list).at_points(x)


def map_token() -> Tensor:
    window = pumice.nn.MaxPool(1)._windows[3]
    return _C.map_token(ops.strided_map(sites(), window, False)[0])


# Under its name: what to call with (features or a gradient, list), and both.
Case = tuple[Callable[[Tensor, Tensor], Any], Callable[[], Tensor], Callable[[], Tensor]]
CASES: dict[str, Case] = {
    "take_rows": (ops.take_rows, features, rows),
    "take_rows, int64": (ops.take_rows, features, lambda: rows(dtype=torch.int64)),
    **{
        f"reduce_rows, {kind}": (
            lambda x, list, kind=kind: ops.reduce_rows(x, list, N, kind), lambda: features(P), rows
        )
        for kind in ("sum", "mean", "max", "first")
    },
    "interpolate": (
        lambda x, list: ops.interpolate(x, ops.InterpolationMap(list, torch.ones(P, 8), N)),
        features, lambda: rows(P, 8),
    ),
    "TensorVoxels.at_points": (at_points, features, lambda: rows(dtype=torch.int64)),
    "torchsparse spdevoxelize": (
        lambda x, list: torchsparse.spdevoxelize(x, list, torch.ones(P, 8)),
        features, lambda: rows(P, 8),
    ),
    "torchsparse spvoxelize": (
        lambda x, list: torchsparse.spvoxelize(x, list, torch.ones(N, dtype=torch.int32)),
        lambda: features(P), rows,
    ),
    "torch.ops take_rows.rows": (OPS.take_rows, features, rows),
    "torch.ops scatter_rows.rows": (
        lambda g, list: OPS.scatter_rows(g, list, N), lambda: features(P), rows
    ),
    "torch.ops reduce_rows.row_of": (
        lambda x, list: OPS.reduce_rows(x, list, N, "sum")[0], lambda: features(P), rows
    ),
    "torch.ops reduce_rows_gradient.row_of": (
        lambda g, list: OPS.reduce_rows_gradient(g, list, torch.zeros(0, dtype=torch.int32), "mean"),
        features, rows,
    ),
    "torch.ops interpolate.rows": (
        lambda x, list: OPS.interpolate(x, list, torch.ones(P, 8), N), features, lambda: rows(P, 8)
    ),
    "torch.ops interpolate_gradient.rows": (
        lambda g, list: OPS.interpolate_gradient(g, list, torch.ones(P, 8), N),
        lambda: features(P), lambda: rows(P, 8),
    ),
    "torch.ops max_pool_gradient.argmax": (
        lambda g, list: OPS.max_pool_gradient(g, list, _C.sites_token(sites().sites), N, 1, True),
        lambda: features(1), lambda: rows(1, C),
    ),
}  # fmt: skip

# Compared with rows and never followed: what was chosen, by forward passes.
COMPARED: dict[str, Case] = {
    "torch.ops reduce_rows_gradient.source": (
        lambda g, list: OPS.reduce_rows_gradient(g, rows(), list, "max"), features, lambda: rows(N, C)
    ),
    "torch.ops max_pool_gradient.argmax, of a map": (
        lambda g, list: OPS.max_pool_gradient(g, list, map_token(), N, N, False),
        features, lambda: rows(N, C),
    ),
}  # fmt: skip


def spoil(list: Tensor, number: int) -> None:
    """Past the count of changes that autograd looks at."""
    list.detach().numpy().reshape(-1)[1] = number


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", CASES)
def test_a_row_that_there_is_not_is_refused(name: str, hostile: str) -> None:
    call, make, make_list = CASES[name]
    list = make_list()
    spoil(list, HOSTILE[hostile])
    with pytest.raises(pumice.UserError, match=rf"\[.*1\] = {HOSTILE[hostile]} is not a row"):
        call(make(), list)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", CASES)
def test_a_list_that_changes_between_forward_and_backward_is_refused(name: str, hostile: str) -> None:
    call, make, make_list = CASES[name]
    x, list = make(), make_list()
    result = call(x, list)
    spoil(list, HOSTILE[hostile])
    if name.endswith((".argmax", "first", "max")):  # which keep what they found
        return
    if name == "torchsparse spdevoxelize":  # which has a copy of the list
        result.sum().backward()
        return
    with pytest.raises(pumice.UserError, match="is not a row"):
        result.sum().backward()


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", COMPARED)
def test_what_is_compared_alone_leads_nowhere(name: str, hostile: str) -> None:
    call, make, make_list = COMPARED[name]
    list = make_list().fill_(HOSTILE[hostile])
    x = make()
    result = call(x, list)
    assert not result.detach().any()
    result.sum().backward()  # of what was chosen, were it there
    assert x.grad is not None and x.grad.isnan().all()


# Numbers of entries, which are compared with those of a row as well; these have no second derivative.
ENTRIES = ("torch.ops spmm_features_gradient.source", "torch.ops spmm_values_gradient.source")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_entries_that_there_are_not_were_not_picked(hostile: str) -> None:
    graph = pumice.Graph(torch.tensor([[0, 1, 2, 3], [1, 1, 0, 2]]), N)
    source = torch.full((N, C), 4 if hostile == "count" else HOSTILE[hostile])
    x, values = features().detach(), torch.ones(4)
    assert not OPS.spmm_features_gradient(graph.token, values, x, source, N, 4, "max").any()
    assert not OPS.spmm_values_gradient(graph.token, x, x, source, N, 4, 1, "max").any()


def test_counts_of_rows_that_there_are_not_are_refused() -> None:
    with pytest.raises(pumice.UserError, match="spcount: coords hold row 2147483647"):
        torchsparse.spcount(torch.tensor([0, 2**31 - 1], dtype=torch.int32), N)


def test_weights_of_a_map_are_of_the_types_of_points() -> None:
    map = ops.InterpolationMap(rows(P, 8), torch.ones(P, 8, dtype=torch.float16), N)
    with pytest.raises(pumice.UserError, match="weights of the map hold f16"):
        ops.interpolate(features(), map)


def test_every_operator_that_is_given_rows_is_among_these() -> None:
    lists = {"rows", "row_of", "argmax", "source"}
    found = set()
    for name in dir(OPS):
        schema = getattr(getattr(OPS, name), "default", None)
        for argument in schema._schema.arguments if schema is not None else []:
            if argument.name in lists and str(argument.type) == "Tensor":
                found.add(f"torch.ops {name}.{argument.name}")
    features = {"torch.ops sum_pool.rows", "torch.ops edge_scores.source", "torch.ops edge_scores_gradient.source"}
    assert found <= {*CASES, *COMPARED, *ENTRIES, *features}, found
    assert len(found) > 5
