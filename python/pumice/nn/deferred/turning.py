"""Weights of a chain in the layout that kernels take, all of them as one function of autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _C
from ...ops import modes
from .links import Layout, Weight


def turned(weights: Sequence[Weight]) -> tuple[list[Tensor], list[_C.PackedWeights | None]]:
    """Each [offsets, in, out], and where it is kept packed; a gradient of it goes back to its parameter."""
    parameters = [weight.parameter for weight in weights]
    if modes.wants_gradient(*parameters):
        layouts = tuple(weight.layout for weight in weights)
        return list(_apply(layouts, *parameters)), [None] * len(weights)
    operands = [weight.operands() for weight in weights]
    return [tensor for tensor, _ in operands], [packed for _, packed in operands]


class _Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layouts: tuple[Layout, ...], *parameters: Tensor) -> tuple[Tensor, ...]:
        ctx.layouts = layouts
        return tuple(
            layout.turn(parameter).contiguous() for layout, parameter in zip(layouts, parameters)
        )

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, *(layout.turn_back(grad) for layout, grad in zip(ctx.layouts, grads))


_apply = modes.function(_Turned)
