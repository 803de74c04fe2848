"""Takes rows of features by number, and merges rows: the ways from voxels to points and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._tensors import check_tensor
from . import modes
from .library.rows import at_sources

_ops = torch.ops.pumice
_REDUCTIONS = ("mean", "sum", "max", "first")


def take_rows(features: Tensor, rows: Tensor) -> Tensor:
    """The row of each number. The gradient of a row is the sum over all numbers that took it, in their order.

    Args:
        features: [N, C].
        rows: int32 or int64 [M], -1 for none.
    Returns:
        [M, C], zeros for -1; differentiable.
    Raises:
        UserError: for other shapes and types.
    Waits:
        Never.
    Example:
        >>> ops.take_rows(torch.tensor([[1.0], [2.0]]), torch.tensor([1, -1]))
        tensor([[2.],
                [0.]])
    """
    if modes.traced(features):
        return _ops.take_rows(features, rows)
    check_tensor("rows", rows)
    return _take(features, rows)


def reduce_rows(features: Tensor, row_of: Tensor, rows: int, reduction: str = "mean") -> Tensor:
    """Merges the rows that go to the same place. Sums are computed in float64, in order.

    Args:
        features: [P, C].
        row_of: int32 or int64 [P], where each goes; -1 leaves one out.
        rows: how many come out.
        reduction: "mean", "sum", "max" or "first", which is the one of smallest index.
    Returns:
        [rows, C], 0 where nothing falls; differentiable.
    Raises:
        UserError: for another reduction, and other shapes and types.
    Waits:
        Never.
    Example:
        >>> ops.reduce_rows(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 0]), 1)
        tensor([[2.]])
    """
    if not isinstance(reduction, str) or reduction not in _REDUCTIONS:
        raise _C.UserError(f"reduction = {reduction!r}: choose {', '.join(_REDUCTIONS)}")
    if modes.traced(features):
        return _ops.reduce_rows(features, row_of, rows, reduction)[0]
    check_tensor("row_of", row_of)
    if reduction in ("mean", "sum"):
        return _sum(features, row_of, rows, reduction)
    return _chosen(features, row_of, rows, reduction)


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, rows: Tensor) -> Tensor:
        taken = _C.take_rows(features, rows)
        ctx.save_for_backward(rows)
        ctx.count = features.shape[0]
        return taken

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return _scatter(grad, rows, ctx.count), None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, rows: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(rows)
        return _C.scatter_rows(values, rows, count)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (rows,) = ctx.saved_tensors
        return _take(grad, rows), None, None


class _Sum(torch.autograd.Function):
    """Linear: the gradient's gradient is the sum or mean again."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, row_of: Tensor, rows: int, reduction: str
    ) -> Tensor:
        ctx.save_for_backward(row_of)
        ctx.call = (rows, reduction)
        return _C.reduce_rows(features, row_of, rows, reduction)[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        (row_of,) = ctx.saved_tensors
        return _sum_gradient(grad, row_of, *ctx.call), None, None, None


class _SumGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, row_of: Tensor, rows: int, reduction: str) -> Tensor:
        ctx.save_for_backward(row_of)
        ctx.call = (rows, reduction)
        return _C.reduce_rows_gradient(grad, row_of, None, reduction)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        (row_of,) = ctx.saved_tensors
        return _sum(grad, row_of, *ctx.call), None, None, None


class _Chosen(torch.autograd.Function):
    """The largest, or the first: the gradient goes to the one that was chosen."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, row_of: Tensor, rows: int, reduction: str
    ) -> Tensor:
        output, source = _C.reduce_rows(features, row_of, rows, reduction)
        ctx.save_for_backward(row_of, source)
        ctx.reduction = reduction
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return _chosen_gradient(grad, *ctx.saved_tensors, ctx.reduction), None, None, None


class _ChosenGradient(torch.autograd.Function):
    """The gradient of `_Chosen`, for a choice that is given; its own gradient takes the same rows again."""

    @staticmethod
    def forward(ctx: Any, grad: Tensor, row_of: Tensor, source: Tensor, reduction: str) -> Tensor:
        ctx.save_for_backward(source)
        return _C.reduce_rows_gradient(grad, row_of, source, reduction)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return at_sources(grad, *ctx.saved_tensors), None, None, None


_take, _scatter = modes.function(_Take), modes.function(_Scatter)
_sum, _sum_gradient = modes.function(_Sum), modes.function(_SumGradient)
_chosen, _chosen_gradient = modes.function(_Chosen), modes.function(_ChosenGradient)
