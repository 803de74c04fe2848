"""Registers the gradients of the convolution operators, which are made of the same operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..._registry import differentiate
from .. import modes
from ..plans import of_text

_ops = torch.ops.pumice


def _plans_of_all(text: str | None) -> str | None:
    """The plans of a forward pass as its gradients take them: the text of one plan alone would be that of theirs."""
    return None if text is None else of_text(text).text


def _keep_convolution(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    features, weight, bias, map, *ctx.sizes, ctx.groups, ctx.dataflow, plan = inputs
    ctx.plan = _plans_of_all(plan)
    ctx.save_for_backward(features, weight, map)
    ctx.bias_dtype = None if bias is None else bias.dtype


def _of_convolution(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    features, weight, map = ctx.saved_tensors
    to_features = to_weight = to_bias = None
    if ctx.needs_input_grad[0]:
        to_features = _ops.convolution_input_gradient(
            grad, weight, map, *ctx.sizes, ctx.groups, ctx.dataflow, ctx.plan
        )
    if ctx.needs_input_grad[1]:
        to_weight = _ops.convolution_weight_gradient(
            features, grad, map, *ctx.sizes, weight.shape[0], ctx.groups, ctx.plan
        )
    if ctx.needs_input_grad[2]:
        to_bias = grad.sum(0, dtype=modes.sum_type(grad.dtype)).to(ctx.bias_dtype)
    return to_features, to_weight, to_bias, None, None, None, None, None, None


def _keep_input_gradient(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    grad_output, weight, map, *ctx.sizes, ctx.groups, ctx.dataflow, _ = inputs
    ctx.save_for_backward(grad_output, weight, map)


def _of_input_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    grad_output, weight, map = ctx.saved_tensors
    to_output = to_weight = None
    if ctx.needs_input_grad[0]:
        to_output = _ops.convolution(
            grad, weight, None, map, *ctx.sizes, ctx.groups, ctx.dataflow
        )
    if ctx.needs_input_grad[1]:
        to_weight = _ops.convolution_weight_gradient(
            grad, grad_output, map, *ctx.sizes, weight.shape[0], ctx.groups
        )
    return to_output, to_weight, None, None, None, None, None, None


def _keep_weight_gradient(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    features, grad_output, map, *ctx.sizes, _, ctx.groups, _ = inputs
    ctx.save_for_backward(features, grad_output, map)


def _of_weight_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    features, grad_output, map = ctx.saved_tensors
    to_features = to_output = None
    if ctx.needs_input_grad[0]:
        to_features = _ops.convolution_input_gradient(
            grad_output, grad, map, *ctx.sizes, ctx.groups, None
        )
    if ctx.needs_input_grad[1]:
        to_output = _ops.convolution(
            features, grad, None, map, *ctx.sizes, ctx.groups, None
        )
    return to_features, to_output, None, None, None, None, None, None


differentiate("convolution", _keep_convolution, _of_convolution)
differentiate("convolution_input_gradient", _keep_input_gradient, _of_input_gradient)
differentiate("convolution_weight_gradient", _keep_weight_gradient, _of_weight_gradient)


def _keep_fused(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    features, weight, map, out_rows, scale, _, _, relu, ctx.groups, plan = inputs
    ctx.plan = _plans_of_all(plan)
    ctx.sizes = (features.shape[0], out_rows)
    ctx.save_for_backward(features, weight, map, scale, output if relu else None)


def _of_fused(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """For exported programs, which may be differentiated although no gradient was wanted when they were made. The
    gradient of the scale needs the result of the convolution, which then runs once more."""
    features, weight, map, scale, output = ctx.saved_tensors
    needs = ctx.needs_input_grad
    if output is not None:
        grad = torch.where(output > 0, grad, torch.zeros_like(grad))
    used = weight.to(features.dtype)
    to_features = to_weight = to_scale = to_shift = None
    behind = (grad * scale).to(features.dtype)
    if needs[0]:
        to_features = _ops.convolution_input_gradient(
            behind, used, map, *ctx.sizes, ctx.groups, None, ctx.plan
        )
    if needs[1]:
        to_weight = _ops.convolution_weight_gradient(
            features, behind, map, *ctx.sizes, weight.shape[0], ctx.groups, ctx.plan
        ).to(weight.dtype)
    if needs[4]:
        convolved = _ops.convolution(features, used, None, map, *ctx.sizes, ctx.groups, None, ctx.plan)
        to_scale = (grad * convolved.to(scale.dtype)).sum(0)
    if needs[5]:
        to_shift = grad.sum(0, dtype=scale.dtype)
    to_residual = grad if needs[6] else None
    return to_features, to_weight, None, None, to_scale, to_shift, to_residual, None, None, None


differentiate("fused_convolution", _keep_fused, _of_fused)
