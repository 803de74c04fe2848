"""Registers the operators that take, merge and interpolate rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._registry import define, differentiate
from .pooling import at_maxima

_ops = torch.ops.pumice


def at_sources(rows: Tensor, source: Tensor) -> Tensor:
    """[P, C] to [out rows, C]: what `reduce_rows` chose by `source`, int32 [out rows] or, each channel
    for itself, [out rows, C]; 0 where there was nothing."""
    if source.dim() == 1:
        return _ops.take_rows(rows, source)
    return at_maxima(rows, source)


# Rows taken; the gradient of either is the other.


def _take_rows(features: Tensor, rows: Tensor) -> Tensor:
    return _C.take_rows(features.contiguous(), rows.contiguous())


def _scatter_rows(grad: Tensor, rows: Tensor, in_rows: int) -> Tensor:
    return _C.scatter_rows(grad.contiguous(), rows.contiguous(), in_rows)


def _keep_take_rows(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    features, rows = inputs
    ctx.in_rows = features.shape[0]
    ctx.save_for_backward(rows)


def _keep_scatter_rows(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])


define(
    "take_rows(Tensor features, Tensor rows) -> Tensor",
    _take_rows,
    lambda features, rows: features.new_empty((rows.shape[0], features.shape[1])),
)
define(
    "scatter_rows(Tensor grad, Tensor rows, SymInt in_rows) -> Tensor",
    _scatter_rows,
    lambda grad, rows, in_rows: grad.new_empty((in_rows, grad.shape[1])),
)
differentiate(
    "take_rows",
    _keep_take_rows,
    lambda ctx, grad: (_ops.scatter_rows(grad, *ctx.saved_tensors, ctx.in_rows), None),
)
differentiate(
    "scatter_rows",
    _keep_scatter_rows,
    lambda ctx, grad: (_ops.take_rows(grad, *ctx.saved_tensors), None, None),
)


# Rows merged. `source` says which rows were chosen, and is empty where none are: of sums and means.


def _reduce_rows(
    features: Tensor, row_of: Tensor, rows: int, reduction: str
) -> tuple[Tensor, Tensor]:
    output, source = _C.reduce_rows(features.contiguous(), row_of.contiguous(), rows, reduction)
    return output, row_of.new_empty((0,), dtype=torch.int32) if source is None else source


def _fake_reduce_rows(
    features: Tensor, row_of: Tensor, rows: Any, reduction: str
) -> tuple[Tensor, Tensor]:
    output = features.new_empty((rows, features.shape[1]))
    shapes = {"max": output.shape, "first": output.shape[:1]}
    return output, row_of.new_empty(shapes.get(reduction, (0,)), dtype=torch.int32)


def _keep_reduce_rows(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    _, row_of, _, ctx.reduction = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(row_of, output[1])


def _of_reduce_rows(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    return _ops.reduce_rows_gradient(grad, *ctx.saved_tensors, ctx.reduction), None, None, None


def _reduce_rows_gradient(grad: Tensor, row_of: Tensor, source: Tensor, reduction: str) -> Tensor:
    chosen = source.contiguous() if reduction in ("max", "first") else None
    return _C.reduce_rows_gradient(grad.contiguous(), row_of.contiguous(), chosen, reduction)


def _keep_reduce_rows_gradient(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    grad, row_of, source, ctx.reduction = inputs
    ctx.out_rows = grad.shape[0]
    ctx.save_for_backward(row_of, source)


def _of_reduce_rows_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    row_of, source = ctx.saved_tensors
    if ctx.reduction in ("max", "first"):
        again = at_sources(grad, source)
    else:
        again, _ = _ops.reduce_rows(grad, row_of, ctx.out_rows, ctx.reduction)
    return again, None, None, None


define(
    "reduce_rows(Tensor features, Tensor row_of, SymInt rows, str reduction) -> (Tensor, Tensor)",
    _reduce_rows,
    _fake_reduce_rows,
)
define(
    "reduce_rows_gradient(Tensor grad, Tensor row_of, Tensor source, str reduction) -> Tensor",
    _reduce_rows_gradient,
    lambda grad, row_of, source, reduction: grad.new_empty((row_of.shape[0], grad.shape[1])),
)
differentiate("reduce_rows", _keep_reduce_rows, _of_reduce_rows)
differentiate("reduce_rows_gradient", _keep_reduce_rows_gradient, _of_reduce_rows_gradient)


# Rows interpolated; the gradient of either is the other.


def _keep_map(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, rows, weights, ctx.in_rows = inputs
    ctx.save_for_backward(rows, weights)


def _of_interpolate(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return _ops.interpolate_gradient(grad, *ctx.saved_tensors, ctx.in_rows), None, None, None


def _of_interpolate_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return _ops.interpolate(grad, *ctx.saved_tensors, ctx.in_rows), None, None, None


define(
    "interpolate(Tensor features, Tensor rows, Tensor weights, SymInt in_rows) -> Tensor",
    lambda features, rows, weights, in_rows: _C.interpolate(
        features.contiguous(), rows.contiguous(), weights.contiguous(), in_rows
    ),
    lambda features, rows, weights, in_rows: features.new_empty(
        (rows.shape[0], features.shape[1])
    ),
)
define(
    "interpolate_gradient(Tensor grad, Tensor rows, Tensor weights, SymInt in_rows) -> Tensor",
    lambda grad, rows, weights, in_rows: _C.interpolate_gradient(
        grad.contiguous(), rows.contiguous(), weights.contiguous(), in_rows
    ),
    lambda grad, rows, weights, in_rows: grad.new_empty((in_rows, grad.shape[1])),
)
differentiate("interpolate", _keep_map, _of_interpolate)
differentiate("interpolate_gradient", _keep_map, _of_interpolate_gradient)
