"""Decides whether the output of a layer may wait, and makes an output that does."""

from __future__ import annotations

from typing import Any, Union

import torch
from torch import Tensor

from ... import _C
from ...ops import modes
from . import region
from .asks import goes_back, is_open, residual_of
from .links import CONVOLVED, NORMED, SUMMED, Layout, Link, Norm
from .tensors import Deferred, leaves_gradients, plain
from .uses import UNSEEN, Use

_compiles = torch.compiler.is_compiling


def can_wait(features: Any) -> bool:
    """Whether a layer that is called with these features may compute later: no hooks watch its call, and no graph
    or transform is being made."""
    return not _compiles() and _C.can_wait(features)


def source_of(features: Any) -> Union[Link, Tensor]:
    """The input of a link for the features that a sparse tensor holds: another link, or an ordinary tensor."""
    if type(features) is not Deferred:
        return plain(features)
    link = features.link
    is_wanted = link.is_done or features.stage != link.stage or link.stage == CONVOLVED
    if not is_wanted and not leaves_gradients(features) and not goes_back(features):
        return link
    return plain(features)


# For layers that take the sparse tensor itself and return one that holds their result. No user sees a tensor that is
# not computed, so there is no use to learn. Each returns None where the layer has to compute now.


def convolved(
    held: Any, parameter: Tensor, layout: Any, training: bool, map: Any, bias: Tensor | None,
    plans: _C.Plans | None = None,
) -> Tensor | None:  # fmt: skip
    """A convolution of what a sparse tensor holds."""
    if (
        bias is not None
        or type(parameter) is not torch.nn.Parameter
        or type(map) is not _C.Map
        or not can_wait(held)
        or held.shape[1] != parameter.shape[-2]
        or (held.dtype is not parameter.dtype and modes.autocast_dtype(held) is None)
    ):
        return None
    return wait(source_of(held), parameter, layout, training, parameter.shape[-1], map, UNSEEN, plans=plans)


def normalized(held: Any, module: torch.nn.BatchNorm1d) -> Tensor | None:
    """The batch norm of what a sparse tensor holds."""
    if type(held) is not Deferred or held.stage != CONVOLVED or not is_open(held):
        _C.settle_norm(module._buffers.get("running_mean"))
        return None
    norm = _C.norm_of(module, *held.link.shape)
    if norm is None:
        _C.settle_norm(module._buffers.get("running_mean"))
        return None
    held.link.normalize(norm)
    return _C.stand_in(held.link)


def rectified(held: Any, in_place: bool) -> Tensor | None:
    """The ReLU of what a sparse tensor holds."""
    if type(held) is not Deferred:
        if in_place:
            region.settle()  # links may have taken it
        return None
    if held.stage not in (NORMED, SUMMED) or not is_open(held):
        if in_place:
            held.link.before_a_change()
        return None
    held.link.rectify()
    if in_place:  # the tensor that the user holds changes
        held.ticket.stage = held.link.stage
        return held
    return _C.stand_in(held.link)


def added(left: Any, right: Any) -> Tensor | None:
    """The sum of what two sparse tensors on the same sites hold."""
    for main, other in ((left, right), (right, left)):
        if type(main) is Deferred and main.stage == NORMED and is_open(main):
            residual = residual_of(main.link, other)
            if residual is not None:
                main.link.add(residual)
                return _C.stand_in(main.link)
    return None


norm_of = _C.norm_of  # of a link, for features [rows, channels]; None where no chain has such a norm


def wait(
    source: Union[Link, Tensor], parameter: Tensor, layout: Layout, training: bool, out_channels: int,
    map: _C.Map, use: Use, norm: Norm | None = None, relu: bool = False, plans: _C.Plans | None = None,
) -> Tensor:  # fmt: skip
    """The output [M, out] of a layer for `source` [N, in], with the norm and the ReLU of its container. It is computed
    when it is read."""
    return _C.waiting_output(source, parameter, layout, training, out_channels, map, use, norm, relu, plans)
