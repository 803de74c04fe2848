"""What inference does in one pass: a convolution with its batch norm, a residual and a ReLU."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _C
from . import modes
from .maps import Map, TracedMap, as_traced

_ops = torch.ops.pumice
_RELU = 1  # the extension's number of it


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
) -> Tensor:
    """relu(convolution · scale + shift + residual) in one pass; `scale` and `shift` [C_out] as
    `fold_batch_norm` makes them, `residual` [out rows, C_out].

    It has no gradients: raises UserError where one of the tensors wants one."""
    modes.refuse_gradient("fused_convolution", features, weight, scale, shift, residual)
    if modes.traced(features) or type(map) is TracedMap:
        traced = as_traced(map)
        return _ops.fused_convolution(
            features, weight, traced.token, traced.out_rows, scale, shift, residual, relu, groups
        )
    return _C.fused_convolution(
        features.contiguous(),
        weight.contiguous(),
        map,
        scale,
        shift,
        None if residual is None else residual.contiguous(),
        _RELU if relu else 0,
        0.0,
        groups,
        *modes.of(features),
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
    """(scale, shift) [C], so that norm(x + added_before) = x · scale + shift: float32 (float64 of
    float64), whatever the types of the norm and of what is added.

    It has no gradients: raises UserError where one of the tensors wants one."""
    modes.refuse_gradient("fold_batch_norm", mean, variance, weight, bias, added_before)
    if torch.compiler.is_compiling():
        wide = torch.float64 if mean.dtype == torch.float64 else torch.float32
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
