"""Computes batch norm with a residual and a ReLU, relu(norm(x) + residual), forward and backward in one pass
each."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._checks import check_eps, kind_of, number_from, true_or_false
from .._tensors import check_floating, check_real, check_tensor
from . import modes
from .counted import Count, clear_tail, handed, is_counted, settled_norm
from .library.normalization import NormArguments
from .recomputed import gradients_of


_NAMES = ("weight", "bias", "running_mean", "running_var")  # of what is [C], in the order of the arguments


def batch_norm(
    features: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None = None,
    running_variance: Tensor | None = None,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    residual: Tensor | None = None,
    relu: bool = False,
    batches: Tensor | None = None,
    count: Count = None,
) -> Tensor:
    """torch.nn.functional.batch_norm, then `+ residual` and a ReLU. In training a batch of one row raises, as
    PyTorch's does; a batch of none stays as it is and leaves the running statistics alone.

    Args:
        features: floating [rows, C].
        weight: [C]; None: 1.
        bias: [C]; None: 0.
        running_mean: [C], written in training; needed in evaluation.
        running_variance: [C], written in training; needed in evaluation.
        training: whether statistics are those of the rows.
        momentum: share of these rows in the running statistics.
        eps: is added to the variance.
        residual: [rows, C], added before the ReLU; default: none.
        relu: whether negative results become 0.
        batches: int64 of one element that counts the batches of training that have rows.
        count: how many rows are in use: their `Coordinates`, or an int64 tensor of one element on their device. Others
            are neither read nor written, and the bits do not depend on how many there are. Default: all are.
    Returns:
        [rows, C], differentiable.
    Raises:
        ValueError: for one row in training; where only the device knows, results are NaN, and the next call that waits
            raises it. UserError for shapes and types that do not fit.
    Waits:
        Never.
    Example:
        >>> ops.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, eps=0.0)
        tensor([[-1.],
                [ 1.]])
    """
    if not torch.compiler.is_compiling():
        check_floating(features)
        if features.dim() < 2:
            raise _C.UserError(f"features have shape {tuple(features.shape)}: give [rows, channels]")
        if residual is not None:
            check_tensor("residual", residual)
            if residual.shape != features.shape:
                raise _C.UserError(
                    f"residual has shape {tuple(residual.shape)}: give that of the features, {tuple(features.shape)}"
                )
        true_or_false("training", training)
        true_or_false("relu", relu)
        if type(eps) is not float or not 0 <= eps < math.inf:
            check_eps(eps)
        if batches is not None and not _is_count(batches):
            given = f"{batches.dtype} {list(batches.shape)}" if isinstance(batches, Tensor) else kind_of(batches)
            raise _C.UserError(f"batches is {given}: give an int64 tensor of one element, or None")
    kinds = ((weight, bias), (running_mean, running_variance))
    try:
        by_kernels = training and not modes.traced(features) and _fits(features, residual, kinds)
    except AttributeError:
        _check_types(weight, bias, running_mean, running_variance)
        raise
    if not by_kernels and count is not None and is_counted(count):
        if training:
            raise _no_counted_way(features)
        return _of_counted(
            features, weight, bias, running_mean, running_variance, eps, residual, relu, count
        )
    if batches is not None and not (by_kernels and _counts(batches, features)):
        if training:
            batches.add_(min(features.size(0), 1))
        batches = None
    if not by_kernels:
        given = NormArguments(
            features, weight, bias, residual, running_mean, running_variance, momentum, eps, relu
        )
        if not torch.compiler.is_compiling():
            return _explained(given, training)
        if training and not _fits(features, residual, kinds):
            return _step_by_step(given, training)
        return _in_graph(given, training)
    return _apply(
        features,
        weight,
        bias,
        running_mean,
        running_variance,
        momentum,
        eps,
        residual,
        relu,
        batches,
        None if count is None else handed(count),
    )


def _no_counted_way(features: Tensor) -> _C.UserError:
    why = (
        "inside a graph of PyTorch"
        if modes.traced(features)
        else f"of {features.dtype}, with parameters or a residual of another type"
    )
    return _C.UserError(
        f"batch_norm in training {why} goes over all rows, and count says that some are not in use: call it eagerly "
        "with features of float32, float16 or bfloat16, parameters of that type or of float32, and a residual like them"
    )


def _of_counted(
    features: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    eps: float,
    residual: Tensor | None,
    relu: bool,
    count: Count,
) -> Tensor:
    """In evaluation, where gradients of parameters are sums over the rows in use."""
    if mean is None or variance is None:
        missing = "running_mean" if mean is None else "running_variance"
        raise _C.UserError(
            f"{missing} is None: give [{features.shape[1]}], since evaluation computes with it"
        )
    if modes.traced(features):
        used = clear_tail(features, count)
        given = NormArguments(used, weight, bias, None, mean, variance, 0.0, eps, False)
        return _followed(clear_tail(_with_running(given), count), residual, relu)
    made = settled_norm(features, mean, variance, weight, bias, eps, count)
    return _followed(made, residual, relu)


def _explained(given: NormArguments, training: bool) -> Tensor:
    """Step by step, with errors that name the argument. The types of ordinary tensors are checked after a failure
    only, since checking them first takes as long as the norm of a small tensor."""
    check_real("residual", given.residual)
    for values in (given.weight, given.bias, given.running_mean, given.running_variance):
        kind = type(values)
        if kind is not Tensor and kind is not torch.nn.Parameter and values is not None:
            _check_types(given.weight, given.bias, given.running_mean, given.running_variance)
    try:
        return _step_by_step(given, training)
    except (RuntimeError, TypeError, ValueError, AttributeError):
        _check_all(given, training)
        raise


def _check_types(*tensors: Any) -> None:
    for name, tensor in zip(_NAMES, tensors):
        check_real(name, tensor)


def _check_all(given: NormArguments, training: bool) -> None:
    _check_types(given.weight, given.bias, given.running_mean, given.running_variance)
    number_from("momentum", given.momentum, 0, 1)
    check_eps(given.eps)
    features = given.features
    if features.dim() != 2:
        raise _C.UserError(f"features have shape {tuple(features.shape)}: give [rows, channels]")
    for name, tensor in zip(_NAMES, (given.weight, given.bias, given.running_mean, given.running_variance)):
        if tensor is None and not training and name.startswith("running"):
            raise _C.UserError(f"{name} is None: give [{features.shape[1]}], since evaluation computes with it")
        if tensor is not None and tensor.shape != features.shape[1:]:
            raise _C.UserError(
                f"{name} has shape {tuple(tensor.shape)}: give [{features.shape[1]}], one number for each channel"
            )


def _is_count(batches: Any) -> bool:
    return isinstance(batches, Tensor) and batches.numel() == 1 and not batches.is_floating_point()


def _counts(batches: Tensor, features: Tensor) -> bool:
    """Whether kernels can count batches in this tensor."""
    return (
        type(batches) is Tensor
        and batches.dtype == torch.int64
        and batches.numel() == 1
        and batches.device == features.device
    )


def _fits(
    features: Tensor,
    residual: Tensor | None,
    pairs: tuple[tuple[Tensor | None, Tensor | None], ...],
) -> bool:
    """Whether kernels take these types: both of a pair have the type of sums or that of the features. PyTorch's own
    norm computes the others."""
    if features.dim() != 2:
        return False
    kind = features.dtype
    if not features.is_floating_point() or (kind == torch.float64 and features.is_cuda):
        return False
    if residual is not None and (residual.dtype != kind or residual.shape != features.shape):
        return False
    wide = kind if kind == torch.float64 else torch.float32
    for first, second in pairs:
        for one in (first, second):
            if one is not None and one.dtype is not wide and one.dtype is not kind:
                return False
        if first is not None and second is not None and first.dtype is not second.dtype:
            return False
    return True


def _in_graph(given: NormArguments, training: bool) -> Tensor:
    """The norm in a graph, where the number of rows may have no value; PyTorch's own norm needs one."""
    if not training:
        return _with_running(given)
    output, _, _, mean, variance = torch.ops.pumice.batch_norm(*given)
    with torch.no_grad():
        for running, after in ((given.running_mean, mean), (given.running_variance, variance)):
            if running is not None:
                running.copy_(after)
    return output


def _with_running(given: NormArguments) -> Tensor:
    features, mean, variance = given.features, given.running_mean, given.running_variance
    wide = modes.sum_type(features.dtype)
    scale = torch.rsqrt(variance.to(wide) + given.eps)
    if given.weight is not None:
        scale = scale * given.weight
    result = (features - mean.to(wide)) * scale
    if given.bias is not None:
        result = result + given.bias
    return _followed(result.to(features.dtype), given.residual, given.relu)


def _step_by_step(given: NormArguments, training: bool) -> Tensor:
    # A batch without rows too: it stays as it is, and parameters get gradients of 0.
    result = torch.nn.functional.batch_norm(
        given.features, given.running_mean, given.running_variance, given.weight, given.bias, training,
        given.momentum, given.eps,
    )  # fmt: skip
    return _followed(result, given.residual, given.relu)


def _followed(result: Tensor, residual: Tensor | None, relu: bool) -> Tensor:
    if residual is not None:
        result = result + residual
    return torch.relu(result) if relu else result


class _BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_variance: Tensor | None,
        momentum: float,
        eps: float,
        residual: Tensor | None,
        relu: bool,
        batches: Tensor | None,
        count: Any,
    ) -> Tensor:
        output, mean, deviation = _C.batch_norm_training(
            features,
            weight,
            bias,
            running_mean,
            running_variance,
            batches,
            eps,
            momentum,
            residual,
            relu,
            count,
        )
        ctx.save_for_backward(features, weight, bias, residual, output if relu else None)
        ctx.statistics = (mean, deviation)
        ctx.relu = relu
        ctx.eps = eps
        ctx.count = count
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled() or modes.traced(grad_output):
            return _differentiable_gradients(ctx, grad_output)
        features, weight, _, _, output = ctx.saved_tensors
        mean, deviation = ctx.statistics
        needs = ctx.needs_input_grad
        to_features, to_weight, to_bias, to_residual = _C.batch_norm_training_gradient(
            features, grad_output, weight, mean, deviation, output, needs[7] and ctx.relu, ctx.count
        )
        if needs[7] and not ctx.relu:
            to_residual = grad_output
        return (
            to_features,
            to_weight if needs[1] else None,
            to_bias if needs[2] else None,
            None,
            None,
            None,
            None,
            to_residual,
            None,
            None,
            None,
        )


_apply = modes.function(_BatchNorm)


def _differentiable_gradients(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
    """For second derivatives: PyTorch computes the norm again and differentiates its own steps."""
    if is_counted(ctx.count):
        raise _C.UserError(
            "second derivatives of a batch norm go over all rows, and count says that some are not in use: leave count out"
        )

    def again(x: Tensor, weight: Any, bias: Any, residual: Any) -> Tensor:
        given = NormArguments(x, weight, bias, residual, None, None, 0.0, ctx.eps, ctx.relu)
        return _step_by_step(given, training=True)

    *first, of_residual = gradients_of(again, ctx.saved_tensors[:4], grad_output)
    return (*first, None, None, None, None, of_residual, None, None, None)
