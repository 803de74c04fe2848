"""Adds what PyTorch's functions ask for to the link of a tensor. Each function here returns None where the
operation has to be done at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

import torch
from torch import Tensor

from ... import _C
from .links import JOINED, NORMED, Link
from .operations import IN_PLACE, KINDS
from .tensors import ASKS, Deferred, Observed, has_history, observed, plain
from .uses import NORM, RELU, SUM, Use

_learns_now = torch.is_grad_enabled
_Parameter = torch.nn.Parameter
is_open = _C.takes_more  # whether more can be added to the link of a tensor


def goes_back(tensor: Deferred) -> bool:
    """Whether gradients of what is computed of a tensor now have to go to the tensor itself, not to its link."""
    # Without gradients, and where the link has some, nobody has to ask for it, which takes a microsecond.
    return _learns_now() and not tensor.link.requires_grad and has_history(tensor)


def went_on(link: Link, use: Use) -> Tensor:
    """The tensor after an operation on a result. Of that it is not known yet, or not the same each time, what is
    done to it."""
    return observed(link.result(), use) if use.known is None else link.result()


def _batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor | None:
    if type(input) is not Deferred or input.use.known is not NORM or not is_open(input):
        return None
    link = input.link
    for tensor in (weight, bias, running_mean, running_var):
        if type(tensor) is not _Parameter and type(tensor) is not Tensor:
            return None
    if weight.shape != link.shape[1:] or (training and link.shape[0] < 2):
        return None
    # PyTorch's norm has counted the batch.
    return _C.normalized(input, (running_mean, running_var, weight, bias, training, momentum, eps, None))


def _relu(input: Any, inplace: bool = False) -> Tensor | None:
    if type(input) is not Deferred or input.use.known is not RELU or not is_open(input):
        return None
    return _C.rectified(input, inplace)


def _relu_in_place(input: Tensor) -> Tensor | None:
    return _relu(input, True)


def _add(input: Any, other: Any, *, alpha: float = 1, out: Any = None) -> Tensor | None:
    if alpha != 1 or out is not None:
        return None
    made = _sum(input, other)
    return _sum(other, input) if made is None else made


def _add_in_place(input: Any, other: Any, *, alpha: float = 1) -> Tensor | None:
    return None if alpha != 1 else _sum(input, other, True)


def _sum(main: Any, other: Any, in_place: bool = False) -> Tensor | None:
    """The sum of the result of a norm and `other`."""
    if type(main) is not Deferred or main.use.known is not SUM or main.stage != NORMED or not is_open(main):
        return None
    residual = residual_of(main.link, other)
    if residual is None:
        return None
    if residual is not other:
        other.use.note(SUM)
    return _C.added(main, residual, in_place)


def residual_of(link: Link, other: Any) -> Union[Link, Tensor, None]:
    """`other` as a link can add it, a link or an ordinary tensor; None where it cannot."""
    residual = other
    if type(other) is Deferred:
        residual = other.link
        if residual.is_done or residual.stage == JOINED or goes_back(other):
            residual = plain(other)
        elif residual is link or residual.mode != link.mode or other.stage != residual.stage:
            return None
    elif type(other) is Observed:
        residual = plain(other)
    elif type(other) is not Tensor:
        return None
    if residual.shape != link.shape or residual.dtype != link.dtype or residual.device != link.device:
        return None
    return residual


def _ask_of(function: Any, kind: str) -> Callable[..., Tensor | None]:
    if kind is NORM:
        return _batch_norm
    if kind is RELU:
        return _relu_in_place if function in IN_PLACE else _relu
    return _add_in_place if function in IN_PLACE else _add


ASKS.update((function, _ask_of(function, kind)) for function, kind in KINDS.items() if kind in (NORM, RELU, SUM))
