"""Computes pooling over a map and over batch items. Only active inputs count."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._objects import check_sites
from ..coords import Coordinates
from . import modes
from .library.pooling import MAXIMA, SUMS, at_maxima
from .maps import Map, TracedMap, as_traced

_ops = torch.ops.pumice


def pool(features: Tensor, map: Map, kind: str) -> Tensor:
    """Pools over the pairs of a map, in windows. An output without an input is 0.

    Args:
        features: [in rows, C].
        map: which rows meet.
        kind: "max", "average" or "sum".
    Returns:
        [out rows, C], differentiable.
    Raises:
        UserError: for another kind.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> map, _ = ops.strided_map(x.coords, nn.Conv3d(4, 4, 2, stride=2).window, cell=True)
        >>> ops.pool(x.features, map, "sum").shape
        torch.Size([2, 4])
    """
    if modes.traced(features) or type(map) is TracedMap:
        token, in_rows, out_rows, _ = as_traced(map)
        return _in_graph(features, token, in_rows, out_rows, kind, False)
    return _run(features, map, kind, False)


def global_pool(features: Tensor, coords: Coordinates, kind: str) -> Tensor:
    """Pools over the rows of each batch item.

    Args:
        features: [rows, C].
        coords: the sites of the rows.
        kind: "max", "average" or "sum".
    Returns:
        [batch_size, C], 0 for a batch item without rows; differentiable.
    Raises:
        UserError: for another kind.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> ops.global_pool(x.features, x.coords, "sum")
        tensor([[2., 2., 2., 2.]])
    """
    check_sites("coords", coords)
    if modes.traced(features):
        return _in_graph(features, coords.token, coords.rows, coords.batch_size, kind, True)
    return _run(features, coords.sites, kind, True)


def spread_items(items: Tensor, coords: Coordinates) -> Tensor:
    """[batch_size, C] to [rows, C]: every row gets the values of its batch item."""
    if modes.traced(items):
        token, rows, size = coords.token, coords.rows, coords.batch_size
        return _ops.sum_pool(items, token, rows, size, "sum", True, True)
    return _sum_pool(items, coords.sites, SUMS["sum", True][::-1])


def _run(features: Tensor, over: Any, kind: str, items: bool) -> Tensor:
    if isinstance(kind, str) and kind == "max":
        return _max_pool(features, over, MAXIMA[items])
    _check(kind)
    return _sum_pool(features, over, SUMS[kind, items])


def _in_graph(
    features: Tensor, over: Tensor, in_rows: int, out_rows: int, kind: str, items: bool
) -> Tensor:
    if isinstance(kind, str) and kind == "max":
        return _ops.max_pool(features, over, in_rows, out_rows, items)[0]
    _check(kind)
    return _ops.sum_pool(features, over, in_rows, out_rows, kind, items, False)


def _check(kind: str) -> None:
    if not isinstance(kind, str) or kind not in ("average", "sum"):
        raise _C.UserError(f"pooling {kind!r}: there are 'max', 'average' and 'sum'")


class _SumPool(torch.autograd.Function):
    """Linear: the gradient's gradient is the pooling again."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, over: Any, functions: Any) -> Tensor:
        ctx.over = over
        ctx.functions = functions
        return functions[0](features, over)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        forward, backward = ctx.functions
        return _sum_pool(grad, ctx.over, (backward, forward)), None, None


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, over: Any, functions: Any) -> Tensor:
        output, argmax = functions[0](features, over)
        ctx.save_for_backward(argmax)
        ctx.call = (over, functions)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return _max_pool_gradient(grad, *ctx.saved_tensors, *ctx.call), None, None


class _MaxPoolGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, argmax: Tensor, over: Any, functions: Any) -> Tensor:
        ctx.save_for_backward(argmax)
        return functions[1](grad, argmax, over)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return at_maxima(grad, *ctx.saved_tensors), None, None, None


_sum_pool = modes.function(_SumPool)
_max_pool = modes.function(_MaxPool)
_max_pool_gradient = modes.function(_MaxPoolGradient)
