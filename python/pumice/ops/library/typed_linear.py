"""Registers linear layers of typed rows. `types` is the token of typed rows; the gradient of each of the three is made
of the others."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._registry import define, differentiate
from .. import modes

_ops = torch.ops.pumice


def multiply(types: Any, features: Tensor, weight: Tensor) -> Tensor:
    return _C.typed_linear(types, features, weight, modes.of(features)[1])


def channels_made(weight: Tensor) -> int:
    """Of a weight [types, C_in, C_out]; of another shape whatever is last: the operator refuses it when it runs, with the
    sentence of eager calls, which PyTorch would wrap into one of its own if it came from here."""
    return weight.shape[-1] if weight.dim() > 0 else 1


def input_gradient(types: Any, grad: Tensor, weight: Tensor) -> Tensor:
    return _C.typed_linear_input_gradient(types, grad, weight, modes.of(grad)[1])


def weight_gradient(types: Any, features: Tensor, grad: Tensor) -> Tensor:
    return _C.typed_linear_weight_gradient(types, features, grad, *modes.of(features))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])


def _of_multiply(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    types, features, weight = ctx.saved_tensors
    of_features = _ops.typed_linear_input_gradient(types, grad, weight) if ctx.needs_input_grad[1] else None
    of_weight = None
    if ctx.needs_input_grad[2]:
        of_weight = _ops.typed_linear_weight_gradient(types, features, grad, weight.shape[0])
    return None, of_features, of_weight


def _of_input_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    types, grad_output, weight = ctx.saved_tensors
    of_grad = _ops.typed_linear(types, grad, weight) if ctx.needs_input_grad[1] else None
    of_weight = None
    if ctx.needs_input_grad[2]:
        of_weight = _ops.typed_linear_weight_gradient(types, grad, grad_output, weight.shape[0])
    return None, of_grad, of_weight


def _of_weight_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    types, features, grad_output = ctx.saved_tensors
    of_features = _ops.typed_linear_input_gradient(types, grad_output, grad) if ctx.needs_input_grad[1] else None
    of_grad = _ops.typed_linear(types, features, grad) if ctx.needs_input_grad[2] else None
    return None, of_features, of_grad, None


define(
    "typed_linear(Tensor types, Tensor features, Tensor weight) -> Tensor",
    lambda types, features, weight: multiply(_C.typed_rows_of(types), features, weight),
    lambda types, features, weight: features.new_empty((features.shape[0], channels_made(weight))),
)
define(
    "typed_linear_input_gradient(Tensor types, Tensor grad, Tensor weight) -> Tensor",
    lambda types, grad, weight: input_gradient(_C.typed_rows_of(types), grad, weight),
    lambda types, grad, weight: grad.new_empty((grad.shape[0], weight.shape[1])),
)
define(
    "typed_linear_weight_gradient(Tensor types, Tensor features, Tensor grad, SymInt kinds) -> Tensor",
    lambda types, features, grad, kinds: weight_gradient(_C.typed_rows_of(types), features, grad),
    lambda types, features, grad, kinds: features.new_empty((kinds, features.shape[1], grad.shape[1])),
)
differentiate("typed_linear", _keep, _of_multiply)
differentiate("typed_linear_input_gradient", _keep, _of_input_gradient)
differentiate("typed_linear_weight_gradient", _keep, _of_weight_gradient)
