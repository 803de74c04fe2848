"""Pooling over a map and over batch items. Only active inputs count."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from ..coords import Coordinates

_SUMS = {
    "sum": (_C.sum_pool, _C.sum_pool_gradient),
    "average": (_C.average_pool, _C.average_pool_gradient),
}
_GLOBAL = {
    "sum": (_C.global_sum_pool, _C.broadcast),
    "average": (_C.global_average_pool, _C.global_average_pool_gradient),
}


def pool(features: Tensor, map: _C.Map, kind: str) -> Tensor:
    """[in rows, C] to [out rows, C]; `kind`: "max", "average" or "sum". An output that no input
    meets is 0."""
    if kind == "max":
        return _MaxPool.apply(features, map)
    return _SumPool.apply(features, map, _kind(_SUMS, kind))


def global_pool(features: Tensor, coords: Coordinates, kind: str) -> Tensor:
    """[rows, C] to [batch_size, C]; 0 for a batch item without rows."""
    if kind == "max":
        return _GlobalMaxPool.apply(features, coords.sites)
    return _SumPool.apply(features, coords.sites, _kind(_GLOBAL, kind))


def _kind(table: dict[str, Any], kind: str) -> Any:
    if kind not in table:
        raise _C.UserError(f"pooling {kind!r}: there are 'max', 'average' and 'sum'")
    return table[kind]


class _SumPool(torch.autograd.Function):
    """Linear: the gradient's gradient is the pooling again."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, over: Any, functions: Any) -> Tensor:
        ctx.over = over
        ctx.functions = functions
        return functions[0](features.contiguous(), over)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        forward, backward = ctx.functions
        return _SumPool.apply(grad, ctx.over, (backward, forward)), None, None


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, map: _C.Map) -> Tensor:
        output, argmax = _C.max_pool(features.contiguous(), map)
        ctx.save_for_backward(argmax)
        ctx.map = map
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        (argmax,) = ctx.saved_tensors
        return _C.max_pool_gradient(grad.contiguous(), argmax, ctx.map), None


class _GlobalMaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, sites: _C.Sites) -> Tensor:
        output, argmax = _C.global_max_pool(features.contiguous(), sites)
        ctx.save_for_backward(argmax)
        ctx.sites = sites
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        (argmax,) = ctx.saved_tensors
        return _C.global_max_pool_gradient(grad.contiguous(), argmax, ctx.sites), None
