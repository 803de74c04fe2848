"""Registers pooling over a map and over the rows of each batch item. `over` is the token of a map, or of sites
where `items` is true."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._registry import define, differentiate

_ops = torch.ops.pumice

# (forward, backward) of the extension, by kind and by whether they go over batch items.
SUMS = {
    ("sum", False): (_C.sum_pool, _C.sum_pool_gradient),
    ("average", False): (_C.average_pool, _C.average_pool_gradient),
    ("sum", True): (_C.global_sum_pool, _C.broadcast),
    ("average", True): (_C.global_average_pool, _C.global_average_pool_gradient),
}
MAXIMA = {
    False: (_C.max_pool, _C.max_pool_gradient),
    True: (_C.global_max_pool, _C.global_max_pool_gradient),
}


def at_maxima(rows: Tensor, argmax: Tensor) -> Tensor:
    """[in rows, C] to [out rows, C]: what the maxima were taken from; 0 where there was nothing, and NaN
    for a row that is none."""
    if rows.shape[0] == 0:
        return rows.new_zeros(argmax.shape)
    within = argmax.clamp(0, rows.shape[0] - 1)
    taken = rows.gather(0, within.long())
    absent = torch.where(argmax == -1, 0.0, float("nan")).to(rows.dtype)
    return torch.where(argmax == within, taken, absent)


def _of(over: Tensor, items: bool) -> Any:
    return _C.sites_of(over) if items else _C.map_of(over)


def _sum_pool(
    rows: Tensor, over: Tensor, in_rows: int, out_rows: int, kind: str, items: bool, back: bool
) -> Tensor:
    return SUMS[kind, items][back](rows.contiguous(), _of(over, items))


def _fake_sum_pool(
    rows: Tensor, over: Tensor, in_rows: int, out_rows: int, kind: str, items: bool, back: bool
) -> Tensor:
    return rows.new_empty((in_rows if back else out_rows, rows.shape[1]))


def _keep_sum_pool(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, over, *ctx.call, ctx.back = inputs
    ctx.save_for_backward(over)


def _of_sum_pool(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    (over,) = ctx.saved_tensors
    return _ops.sum_pool(grad, over, *ctx.call, not ctx.back), *[None] * 6


define(
    "sum_pool(Tensor rows, Tensor over, SymInt in_rows, SymInt out_rows, str kind, bool items, "
    "bool back) -> Tensor",
    _sum_pool,
    _fake_sum_pool,
)
differentiate("sum_pool", _keep_sum_pool, _of_sum_pool)


def _max_pool(
    features: Tensor, over: Tensor, in_rows: int, out_rows: int, items: bool
) -> tuple[Tensor, Tensor]:
    return MAXIMA[items][0](features.contiguous(), _of(over, items))


def _fake_max_pool(
    features: Tensor, over: Tensor, in_rows: int, out_rows: int, items: bool
) -> tuple[Tensor, Tensor]:
    output = features.new_empty((out_rows, features.shape[1]))
    return output, torch.empty_like(output, dtype=torch.int32)


def _keep_max_pool(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    _, over, *ctx.call = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(over, output[1])


def _of_max_pool(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    over, argmax = ctx.saved_tensors
    return _ops.max_pool_gradient(grad, argmax, over, *ctx.call), *[None] * 4


def _max_pool_gradient(
    grad: Tensor, argmax: Tensor, over: Tensor, in_rows: int, out_rows: int, items: bool
) -> Tensor:
    return MAXIMA[items][1](grad.contiguous(), argmax, _of(over, items))


def _keep_max_pool_gradient(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])


def _of_max_pool_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return at_maxima(grad, ctx.saved_tensors[0]), *[None] * 5


define(
    "max_pool(Tensor features, Tensor over, SymInt in_rows, SymInt out_rows, bool items) -> "
    "(Tensor, Tensor)",
    _max_pool,
    _fake_max_pool,
)
define(
    "max_pool_gradient(Tensor grad, Tensor argmax, Tensor over, SymInt in_rows, SymInt out_rows, "
    "bool items) -> Tensor",
    _max_pool_gradient,
    lambda grad, argmax, over, in_rows, out_rows, items: grad.new_empty((in_rows, grad.shape[1])),
)
differentiate("max_pool", _keep_max_pool, _of_max_pool)
differentiate("max_pool_gradient", _keep_max_pool_gradient, _of_max_pool_gradient)
