"""Multiplies rows with a matrix for each type."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._tensors import check_floating
from ..typed_graph import TypedRows, check_typed_rows
from . import modes
from .library import typed_linear as _run

_ops = torch.ops.pumice


def typed_linear(features: Tensor, weight: Tensor, types: TypedRows) -> Tensor:
    """features[r] · weight[type of r].

    Args:
        features: [rows, C_in], grouped by type.
        weight: [types, C_in, C_out].
        types: where each type begins.
    Returns:
        [rows, C_out], differentiable twice. On a GPU in TF32 where torch.set_float32_matmul_precision allows it.
    Raises:
        UserError: for other shapes, types and devices.
    Waits:
        Never.
    Example:
        >>> types = pumice.TypedRows([0, 1, 3])
        >>> ops.typed_linear(torch.ones(3, 1), torch.tensor([[[2.0]], [[5.0]]]), types)
        tensor([[2.],
                [5.],
                [5.]])
    """
    check_typed_rows(types)
    check_floating(features)
    modes.look("weight", weight)
    dtype = modes.autocast_dtype(features)
    if dtype is not None:
        features, weight = features.to(dtype), weight.to(dtype)
    if modes.traced(features):
        return _ops.typed_linear(types.token, features, weight)
    if not modes.wants_gradient(features, weight):
        return _run.multiply(types.typed_rows, features, weight)
    return _typed_linear(features, weight, types.typed_rows)


class _TypedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, types: _C.TypedRows) -> Tensor:
        ctx.save_for_backward(features, weight)
        ctx.types = types
        return _run.multiply(types, features, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, weight = ctx.saved_tensors
        of_features = _input_gradient(grad, weight, ctx.types) if ctx.needs_input_grad[0] else None
        of_weight = _weight_gradient(features, grad, ctx.types) if ctx.needs_input_grad[1] else None
        return of_features, of_weight, None


class _InputGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, weight: Tensor, types: _C.TypedRows) -> Tensor:
        ctx.save_for_backward(grad, weight)
        ctx.types = types
        return _run.input_gradient(types, grad, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        grad_output, weight = ctx.saved_tensors
        of_grad = _typed_linear(grad, weight, ctx.types) if ctx.needs_input_grad[0] else None
        of_weight = _weight_gradient(grad, grad_output, ctx.types) if ctx.needs_input_grad[1] else None
        return of_grad, of_weight, None


class _WeightGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, grad: Tensor, types: _C.TypedRows) -> Tensor:
        ctx.save_for_backward(features, grad)
        ctx.types = types
        return _run.weight_gradient(types, features, grad)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, grad_output = ctx.saved_tensors
        of_features = _input_gradient(grad_output, grad, ctx.types) if ctx.needs_input_grad[0] else None
        of_grad = _typed_linear(features, grad, ctx.types) if ctx.needs_input_grad[1] else None
        return of_features, of_grad, None


_typed_linear = modes.function(_TypedLinear)
_input_gradient = modes.function(_InputGradient)
_weight_gradient = modes.function(_WeightGradient)


def input_gradient(grad: Tensor, weight: Tensor, types: _C.TypedRows) -> Tensor:
    """That of the rows, which has gradients itself."""
    return _input_gradient(grad, weight, types)


def weight_gradient(features: Tensor, grad: Tensor, types: _C.TypedRows) -> Tensor:
    """That of the matrices, which has gradients itself."""
    return _weight_gradient(features, grad, types)
