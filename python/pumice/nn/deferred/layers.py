"""How a layer asks whether its output may wait, and makes one that does."""

from __future__ import annotations

from typing import Any, Union

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ... import _C
from ..chain import hooks_on_saved
from .links import CONVOLVED, Link, Norm, Weight
from .tensors import Deferred
from .uses import Habit, Use

_every_module = torch.nn.modules.module


def can_wait(features: Any) -> bool:
    """Whether a layer called with these may compute later: nobody watches each call, and nothing is recorded
    or transformed."""
    kind = type(features)
    if kind is not Tensor and kind is not Deferred:
        return False
    return not (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._get_tracing_state() is not None
        or _every_module._global_forward_hooks
        or _every_module._global_forward_pre_hooks
        or (hooks_on_saved is not None and hooks_on_saved(True) is not None)
        or (features.is_cuda and torch._C._cuda_isCurrentStreamCapturing())
    )


def source_of(features: Any) -> Union[Link, Tensor]:
    """What a link takes of features that a sparse tensor holds."""
    if type(features) is not Deferred:
        return features
    link = features.link
    if not link.is_done and features.stage == link.stage != CONVOLVED:
        return link
    return link.result(features.stage)


def norm_of(module: torch.nn.BatchNorm1d, rows: int) -> Norm | None:
    """What PyTorch's module does to so many rows; None where no chain does that, and where it raises."""
    parameters, buffers = module._parameters, module._buffers
    weight, bias = parameters.get("weight"), parameters.get("bias")
    mean, variance = buffers.get("running_mean"), buffers.get("running_var")
    training, momentum = module.training, module.momentum
    if (
        weight is None
        or bias is None
        or mean is None
        or variance is None
        or not module.track_running_stats
        or (training and (rows < 2 or momentum is None))
    ):
        return None
    batches = buffers.get("num_batches_tracked") if training else None
    return mean, variance, weight, bias, training, momentum or 0.0, module.eps, batches


def wait(
    source: Union[Link, Tensor], weight: Weight, map: _C.Map, use: Use, habit: Habit,
    norm: Norm | None = None, relu: bool = False,
) -> Tensor:
    """A layer's output, [M, out], of `source` [N, in] through a map, with what else its container does; it is
    computed where somebody reads it."""
    link = Link(source, weight, map, use, habit)
    if norm is not None:
        link.normalize(norm)
        if relu:
            link.rectify()
    return Deferred(link)
