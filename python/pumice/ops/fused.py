"""Computes a convolution, its folded batch norm, a residual and a ReLU in one pass, for inference."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _C
from .._checks import true_or_false
from . import modes
from .library import flops
from .maps import Map, TracedMap, as_traced
from .plans import Plan, as_plans, text_of

_ops = torch.ops.pumice
_RELU = 1  # the extension's number of this activation


def fused_convolution(
    features: Tensor,
    weight: Tensor,
    map: Map,
    scale: Tensor,
    shift: Tensor,
    residual: Tensor | None = None,
    relu: bool = False,
    groups: int = 1,
    kept: _C.PackedWeights | None = None,
    plan: Plan | None = None,
) -> Tensor:
    """relu(convolution · scale + shift + residual) in one pass, for inference: without gradients.

    Args:
        features: floating [in rows, C_in].
        weight: [offsets, C_in / groups, C_out].
        map: which rows meet.
        scale: [C_out], as `fold_batch_norm` makes it.
        shift: [C_out], as `fold_batch_norm` makes it.
        residual: [out rows, C_out]; default: none.
        relu: whether negative results become 0.
        groups: a divisor of both numbers of channels.
        kept: keeps packed weights from call to call.
        plan: how it runs: a `Plan`, its text, or a mapping, of which "forward" counts; default: the planner chooses.
            In a function that is compiled, a text.
    Returns:
        [out rows, C_out].
    Raises:
        UserError: shapes, types, devices and a plan that do not fit; one of the tensors wants a gradient.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> map = ops.submanifold_map(x.coords, nn.SubMConv3d(4, 8, 3).window)
        >>> one, none = torch.ones(8), torch.zeros(8)
        >>> ops.fused_convolution(x.features, -torch.ones(27, 4, 8), map, one, none, relu=True).sum()
        tensor(0.)
    """
    modes.refuse_gradient(
        "fused_convolution", features=features, weight=weight, scale=scale, shift=shift, residual=residual
    )
    modes.look("weight", weight)
    true_or_false("relu", relu)
    if modes.traced(features) or type(map) is TracedMap:
        flops.announce()
        traced = as_traced(map)
        return _ops.fused_convolution(
            features, weight, traced.token, traced.out_rows, scale, shift, residual, relu, groups, text_of(plan)
        )
    return _C.fused_convolution(
        features,
        weight,
        map,
        scale,
        shift,
        residual,
        _RELU if relu else 0,
        0.0,
        groups,
        *modes.of(features),
        as_plans(plan),
        kept,
        modes.version_of(weight),
    )


def fold_batch_norm(
    mean: Tensor,
    variance: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    added_before: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """A norm in evaluation as a factor and a summand: norm(x + added_before) = x · scale + shift.

    Args:
        mean: [C], the running mean.
        variance: [C], the running variance.
        weight: [C]; None: 1.
        bias: [C]; None: 0.
        added_before: [C], the bias of a convolution in front; None: 0.
        eps: is added to the variance.
    Returns:
        (scale, shift), [C] each: float32 (float64 of float64), whatever the types of the norm are.
    Raises:
        UserError: shapes and types that do not fit; one of the tensors wants a gradient.
    Waits:
        Never.
    Example:
        >>> mean, variance = torch.zeros(2), torch.ones(2)
        >>> ops.fold_batch_norm(mean, variance, None, None, None, 0.0)
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    modes.refuse_gradient(
        "fold_batch_norm", mean=mean, variance=variance, weight=weight, bias=bias, added_before=added_before
    )
    if torch.compiler.is_compiling():
        wide = modes.sum_type(mean.dtype)
        mean, variance, weight, bias, added_before = (
            None if t is None else t.to(wide)
            for t in (mean, variance, weight, bias, added_before)
        )
        scale = torch.rsqrt(variance + eps)
        if weight is not None:
            scale = scale * weight
        shift = -mean if added_before is None else added_before - mean
        return scale, shift * scale if bias is None else shift * scale + bias
    return _C.fold_batch_norm(mean, variance, weight, bias, added_before, eps)
