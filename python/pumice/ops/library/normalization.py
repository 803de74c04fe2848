"""Registers batch norm in training, relu(norm(x) + residual), and its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import _C
from ..._registry import define, differentiate
from .. import modes

_ops = torch.ops.pumice
_Five = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
_Four = tuple[Tensor, Tensor, Tensor, Tensor]


class NormArguments(NamedTuple):
    """What a batch norm is computed of, in the order of the operator's arguments: relu(norm(features) + residual)."""

    features: Tensor  # [rows, C]
    weight: Tensor | None  # [C]
    bias: Tensor | None  # [C]
    residual: Tensor | None  # [rows, C]
    running_mean: Tensor | None  # [C]
    running_variance: Tensor | None  # [C]
    momentum: float
    eps: float
    relu: bool


def _batch_norm(*arguments: Any) -> _Five:
    """(output, mean, inverse deviation, running mean and variance afterwards or nothing)"""
    given = NormArguments(*arguments)
    none = given.features.new_empty(0)
    mean, variance = (
        None if kept is None else kept.clone() for kept in (given.running_mean, given.running_variance)
    )
    made = _C.batch_norm_training(
        given.features.contiguous(),
        given.weight,
        given.bias,
        mean,
        variance,
        None,
        given.eps,
        given.momentum,
        None if given.residual is None else given.residual.contiguous(),
        given.relu,
        None,
    )
    return *made, none if mean is None else mean, none.clone() if variance is None else variance


def _fake_batch_norm(*arguments: Any) -> _Five:
    given = NormArguments(*arguments)
    features = given.features
    channel = features.new_empty((features.shape[1],), dtype=modes.sum_type(features.dtype))
    after = (
        features.new_empty(0) if kept is None else torch.empty_like(kept)
        for kept in (given.running_mean, given.running_variance)
    )
    output = features.new_empty(features.shape)  # contiguous, whatever the features are
    return output, channel, torch.empty_like(channel), *after


def _keep_batch_norm(ctx: Any, inputs: tuple[Any, ...], output: _Five) -> None:
    given = NormArguments(*inputs)
    made, mean, deviation, *after = output
    ctx.mark_non_differentiable(mean, deviation, *after)
    ctx.save_for_backward(given.features, given.weight, mean, deviation, made if given.relu else None)
    ctx.of_residual = given.residual is not None


def _of_batch_norm(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    features, weight, mean, deviation, output = ctx.saved_tensors
    masked = ctx.of_residual and output is not None
    to_features, to_weight, to_bias, to_residual = _ops.batch_norm_gradient(
        features, grad, weight, mean, deviation, output, masked
    )
    if ctx.of_residual and not masked:
        to_residual = grad
    return (
        to_features,
        to_weight if ctx.needs_input_grad[1] else None,
        to_bias if ctx.needs_input_grad[2] else None,
        to_residual if ctx.needs_input_grad[3] else None,
        *[None] * 5,
    )


def _batch_norm_gradient(
    features: Tensor,
    grad: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    deviation: Tensor,
    output: Tensor | None,
    of_residual: bool,
) -> _Four:
    made = _C.batch_norm_training_gradient(
        features.contiguous(), grad.contiguous(), weight, mean, deviation, output, of_residual, None
    )
    return *made[:3], made[3] if of_residual else features.new_empty(0)


def _fake_batch_norm_gradient(
    features: Tensor,
    grad: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    deviation: Tensor,
    output: Tensor | None,
    of_residual: bool,
) -> _Four:
    passed = features.new_empty(features.shape if of_residual else 0)
    of_weight = torch.empty_like(mean if weight is None else weight)
    return features.new_empty(features.shape), of_weight, torch.empty_like(of_weight), passed


def _keep_nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    pass


def _no_second_derivative(ctx: Any, *grads: Any) -> tuple[Any, ...]:
    raise NotImplementedError(
        "second derivatives of a batch norm in a graph: use the eager layer, which has them"
    )


define(
    "batch_norm(Tensor features, Tensor? weight, Tensor? bias, Tensor? residual, "
    "Tensor? running_mean, Tensor? running_variance, float momentum, float eps, bool relu) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    _batch_norm,
    _fake_batch_norm,
)
define(
    "batch_norm_gradient(Tensor features, Tensor grad, Tensor? weight, Tensor mean, "
    "Tensor deviation, Tensor? output, bool of_residual) -> (Tensor, Tensor, Tensor, Tensor)",
    _batch_norm_gradient,
    _fake_batch_norm_gradient,
)
differentiate("batch_norm", _keep_batch_norm, _of_batch_norm)
differentiate("batch_norm_gradient", _keep_nothing, _no_second_derivative)
