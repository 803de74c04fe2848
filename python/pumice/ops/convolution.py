"""Computes convolutions over a map; they can be differentiated any number of times.

Three operators, closed under differentiation: y = conv(x, w); dx = input_gradient(dy, w); dw =
weight_gradient(x, dy). Each is linear in both of its arguments, and the gradients of any of them
are the other two.

Small layers are limited by the time of the host, so eager calls go to the extension directly, through an
autograd.Function where a gradient is wanted (an operator of torch.library costs several times more). Traced
calls and tensors of other classes go through the operators of `library`.

Plans that are given hold for these three operators, forward and as each other's first derivatives; how second derivatives
run is chosen.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._checks import kind_of
from . import modes
from .counted import sum_rows
from .library import flops
from .maps import Map, TracedMap, as_traced
from .plans import Plan, as_plans, refuse_both, text_of

_ops = torch.ops.pumice
_Parameter = torch.nn.Parameter
_learns_now = torch.is_grad_enabled
_any_autocast = torch._C._is_any_autocast_enabled


def convolution(
    features: Tensor,
    weight: Tensor,
    map: Map,
    bias: Tensor | None = None,
    groups: int = 1,
    kept: _C.PackedWeights | None = None,
    dataflow: str | None = None,
    plan: Plan | None = None,
) -> Tensor:
    """Each output row is the sum, over the map's pairs, of an input row times the weight of the pair's offset. Under
    autocast it computes in the type that autocast says.

    Args:
        features: floating [in rows, C_in].
        weight: [offsets, C_in / groups, C_out], offsets in lexicographic order.
        map: which rows meet, of `submanifold_map` and its like.
        bias: [C_out]; default: none.
        groups: a divisor of both numbers of channels.
        kept: keeps packed weights from call to call where no gradient is wanted.
        dataflow: forces "implicit_gemm", "fetch_on_demand" or "gather_gemm_scatter"; default: the planner chooses.
        plan: how it runs, instead of a dataflow: a `Plan`, its text, or a mapping that has plans of its gradients too
            ("forward", "input_gradient", "weight_gradient"). In a function that is compiled, a text.
    Returns:
        [out rows, C_out], differentiable as often as one likes.
    Raises:
        UserError: shapes, types, devices and plans that do not fit.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> map = ops.submanifold_map(x.coords, nn.SubMConv3d(4, 8, 3).window)
        >>> ops.convolution(x.features, torch.ones(27, 4, 8), map)[0, 0]
        tensor(8.)
    """
    kind = type(features)
    if kind is not Tensor and kind is not _Parameter:
        modes.look("features", features)
    dtype = None
    if _any_autocast():
        dtype = modes.autocast_dtype(features)
        if dtype is not None and features.dtype != dtype:
            features = features.to(dtype)
    return _convolve(features, weight, map, bias, groups, kept, dataflow, dtype, plan)


def _convolve(
    features: Tensor,
    weight: Tensor,
    map: Map,
    bias: Tensor | None,
    groups: int,
    kept: _C.PackedWeights | None,
    dataflow: str | None,
    dtype: torch.dtype | None,
    plan: Plan | None = None,
) -> Tensor:
    """`dtype`: the type that the weight is cast to; None: it stays as it is."""
    traced = modes.traced(features)
    # What is asked of every call is asked here, since a small layer takes as long as some calls of Python.
    if type(weight) is not _Parameter and type(weight) is not Tensor:
        modes.look("weight", weight)
    if bias is not None and type(bias) is not _Parameter and type(bias) is not Tensor:
        modes.look("bias", bias)
    if dtype is None and weight.dtype is not features.dtype:
        modes.check_weight(features, weight)
    if plan is not None:
        refuse_both(plan, dataflow)
    # A traced map reaches eager code where a graph is broken between map and convolution.
    if traced or type(map) is TracedMap:
        flops.announce()
        known = as_traced(map)
        used = weight if dtype is None else weight.to(dtype)
        return _ops.convolution(
            features, used, bias, known.token, known.in_rows, known.out_rows, groups, dataflow, text_of(plan)
        )
    plans = None if plan is None else as_plans(plan)
    if _learns_now() and modes.wants_gradient(features, weight, bias):
        if kept is not None:
            _check_kept(kept)
            kept.clear()  # an optimiser may change the weight without changing its version
        return _apply(features, weight, bias, map, groups, dtype, dataflow, plans)
    version = 0 if kept is None else modes.version_of(weight)
    if dtype is not None:
        used = _cast(features, weight, groups, dtype, dataflow, plans)
        if used is not weight:
            weight, kept = used, None
    if bias is not None:
        bias = modes.bias_for(bias, features)
    return _C.convolution(
        features, weight, map, bias, groups, *modes.of(features), dataflow, plans, kept, version
    )


def _check_kept(kept: Any) -> None:
    if not isinstance(kept, _C.PackedWeights):
        raise _C.UserError(f"kept is {kind_of(kept)}: give a PackedWeights, which keeps them from call to call, or None")


def _cast(
    features: Tensor,
    weight: Tensor,
    groups: int,
    dtype: torch.dtype | None,
    dataflow: str | None,
    plans: _C.Plans | None,
) -> Tensor:
    """`weight` in `dtype`, or as it is where that is None or kernels round it themselves."""
    if (
        dtype is None
        or weight.dtype == dtype
        or modes.rounds_weight(features, weight, groups, dataflow, plans)
    ):
        return weight
    return weight.to(dtype)


def convolution_input_gradient(
    grad_output: Tensor,
    weight: Tensor,
    map: Map,
    groups: int = 1,
    dataflow: str | None = None,
    plan: Plan | None = None,
) -> Tensor:
    """The gradient of `convolution` with respect to its features.

    Args:
        grad_output: [out rows, C_out].
        weight: [offsets, C_in / groups, C_out].
        map: that of the convolution.
        groups: those of the convolution.
        dataflow: forces "implicit_gemm", "fetch_on_demand" or "gather_gemm_scatter"; default: the planner chooses.
        plan: how it runs, instead of a dataflow: a `Plan`, its text, or a mapping, of which "input_gradient" counts.
            In a function that is compiled, a text.
    Returns:
        [in rows, C_in], differentiable.
    Raises:
        UserError: shapes, types, devices and plans that do not fit.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> map = ops.submanifold_map(x.coords, nn.SubMConv3d(4, 8, 3).window)
        >>> ops.convolution_input_gradient(torch.ones(2, 8), torch.ones(27, 4, 8), map).shape
        torch.Size([2, 4])
    """
    modes.look("weight", weight)
    if plan is not None:
        refuse_both(plan, dataflow)
    if modes.traced(grad_output, "grad_output") or type(map) is TracedMap:
        flops.announce()
        traced = as_traced(map)
        return _ops.convolution_input_gradient(
            grad_output,
            weight,
            traced.token,
            traced.in_rows,
            traced.out_rows,
            groups,
            dataflow,
            text_of(plan, "input_gradient"),
        )
    plans = None if plan is None else as_plans(plan, "input_gradient")
    if modes.wants_gradient(grad_output, weight):
        return _apply_input_gradient(grad_output, weight, map, groups, dataflow, plans)
    return _C.convolution_input_gradient(
        grad_output,
        weight,
        map,
        groups,
        *modes.of(grad_output),
        dataflow,
        plans,
    )


def convolution_weight_gradient(
    features: Tensor, grad_output: Tensor, map: Map, groups: int = 1, plan: Plan | None = None
) -> Tensor:
    """The gradient of `convolution` with respect to its weight.

    Args:
        features: [in rows, C_in].
        grad_output: [out rows, C_out].
        map: that of the convolution.
        groups: those of the convolution.
        plan: how it runs: a `Plan`, its text, or a mapping, of which "weight_gradient" counts; default: the planner
            chooses. In a function that is compiled, a text.
    Returns:
        [offsets, C_in / groups, C_out], differentiable.
    Raises:
        UserError: shapes, types, devices and plans that do not fit.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> map = ops.submanifold_map(x.coords, nn.SubMConv3d(4, 8, 3).window)
        >>> ops.convolution_weight_gradient(x.features, torch.ones(2, 8), map).shape
        torch.Size([27, 4, 8])
    """
    modes.look("grad_output", grad_output)
    if modes.traced(features) or type(map) is TracedMap:
        flops.announce()
        traced = as_traced(map)
        return _ops.convolution_weight_gradient(
            features, grad_output, *traced, groups, text_of(plan, "weight_gradient")
        )
    plans = None if plan is None else as_plans(plan, "weight_gradient")
    if modes.wants_gradient(features, grad_output):
        return _apply_weight_gradient(features, grad_output, map, groups, plans)
    return _C.convolution_weight_gradient(
        features, grad_output, map, groups, *modes.of(features), plans
    )


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        map: _C.Map,
        groups: int,
        dtype: torch.dtype | None,
        dataflow: str | None,
        plans: _C.Plans | None,
    ) -> Tensor:
        used = _cast(features, weight, groups, dtype, dataflow, plans)
        ctx.save_for_backward(features, weight)
        ctx.cast = None if used is weight else used
        ctx.call = (map, groups, dataflow, plans)
        ctx.bias_dtype = None if bias is None else bias.dtype
        return _C.convolution(
            features, used, map, modes.bias_for(bias, features), groups, *modes.of(features), dataflow, plans, None, 0
        )

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        features, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled() or modes.traced(grad_output):
            return (*_differentiable_gradients(ctx, grad_output), None, None, None, None, None)
        map, groups, dataflow, plans = ctx.call
        to_features, to_weight, to_bias = _C.convolution_gradients(
            features,
            weight if ctx.cast is None else ctx.cast,
            grad_output,
            map,
            groups,
            *modes.of(features),
            dataflow,
            plans,
            needs[0],
            needs[1],
            needs[2],
        )
        if to_weight is not None and to_weight.dtype != weight.dtype:
            to_weight = to_weight.to(weight.dtype)
        if to_bias is not None and to_bias.dtype != ctx.bias_dtype:
            to_bias = to_bias.to(ctx.bias_dtype)
        return to_features, to_weight, to_bias, None, None, None, None, None


_apply = modes.function(_Convolution)


def _differentiable_gradients(
    ctx: Any, grad_output: Tensor
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """For second derivatives: each step, and the cast of a weight, is part of the graph."""
    features, weight = ctx.saved_tensors
    map, groups, dataflow, plans = ctx.call
    to_features = to_weight = to_bias = None
    if ctx.needs_input_grad[0]:
        used = weight if weight.dtype == grad_output.dtype else weight.to(grad_output.dtype)
        to_features = convolution_input_gradient(grad_output, used, map, groups, dataflow, plans)
    if ctx.needs_input_grad[1]:
        to_weight = convolution_weight_gradient(features, grad_output, map, groups, plans)
        if to_weight.dtype != weight.dtype:
            to_weight = to_weight.to(weight.dtype)
    if ctx.needs_input_grad[2]:
        to_bias = sum_rows(grad_output, map).to(ctx.bias_dtype)
    return to_features, to_weight, to_bias


class _InputGradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        grad_output: Tensor,
        weight: Tensor,
        map: _C.Map,
        groups: int,
        dataflow: str | None,
        plans: _C.Plans | None,
    ) -> Tensor:
        ctx.save_for_backward(grad_output, weight)
        ctx.call = (map, groups, dataflow)
        return convolution_input_gradient(grad_output, weight, map, groups, dataflow, plans)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        grad_output, weight = ctx.saved_tensors
        map, groups, dataflow = ctx.call
        to_output = to_weight = None
        if ctx.needs_input_grad[0]:
            to_output = _convolve(grad, weight, map, None, groups, None, dataflow, None)
        if ctx.needs_input_grad[1]:
            to_weight = convolution_weight_gradient(grad, grad_output, map, groups)
        return to_output, to_weight, None, None, None, None


class _WeightGradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        grad_output: Tensor,
        map: _C.Map,
        groups: int,
        plans: _C.Plans | None,
    ) -> Tensor:
        ctx.save_for_backward(features, grad_output)
        ctx.call = (map, groups)
        return convolution_weight_gradient(features, grad_output, map, groups, plans)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, grad_output = ctx.saved_tensors
        map, groups = ctx.call
        to_features = to_output = None
        if ctx.needs_input_grad[0]:
            to_features = convolution_input_gradient(grad_output, grad, map, groups)
        if ctx.needs_input_grad[1]:
            to_output = _convolve(features, grad, map, None, groups, None, None, None)
        return to_features, to_output, None, None, None


_apply_input_gradient = modes.function(_InputGradient)
_apply_weight_gradient = modes.function(_WeightGradient)
