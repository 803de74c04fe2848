"""Adds what PyTorch's functions ask for to the link of a tensor. Each function here returns None where the
operation has to be done at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

import torch
from torch import Tensor

from .links import NORMED, Link
from .operations import IN_PLACE, KINDS, norm_given
from .tensors import ASKS, Deferred, Observed, has_history, observed, plain
from .uses import NORM, OTHER, RELU, SUM, Use


def _can_go_on(tensor: Any, kind: str) -> bool:
    """Whether `tensor` is a result that waits, whose next use is known to be `kind` and can still be added."""
    return type(tensor) is Deferred and tensor.use.known is kind and is_open(tensor)


def is_open(tensor: Deferred) -> bool:
    """Whether more can be added to the link of a tensor: it is not computed, and nothing else takes its result."""
    link = tensor.link
    return (
        not link.is_done
        and not link.users
        and tensor.stage == link.stage
        and torch.is_grad_enabled() is link.learns
    )


def _went_on(link: Link, use: Use | None, in_place: Deferred | None = None) -> Tensor:
    """The tensor that an operation returns after it was added to `link`."""
    assert use is not None, "of an operation that is known"
    link.use = use
    if in_place is not None:  # the tensor that the user holds changes
        in_place.stage, in_place.use = link.stage, use
        if use.known is None or use.known is OTHER:
            link.result()
        return in_place
    if use.known is None:
        return observed(link.result(), use)
    return link.result() if use.known is OTHER else Deferred(link)


def _batch_norm(input: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
    if len(args) < 2 or not _can_go_on(input, NORM):
        return None
    norm = norm_given(*args, **kwargs)
    link = input.link
    if norm is None or (norm[4] and link.shape[0] < 2) or norm[2].shape != link.shape[1:]:
        return None
    link.normalize(norm)
    return _went_on(link, input.use.then)


def _relu(input: Tensor, inplace: bool = False) -> Tensor | None:
    if not _can_go_on(input, RELU):
        return None
    link = input.link
    link.rectify()
    return _went_on(link, input.use.then, input if inplace else None)


def _relu_in_place(input: Tensor) -> Tensor | None:
    return _relu(input, True)


def _add(input: Any, other: Any, *, alpha: float = 1, out: Any = None) -> Tensor | None:
    if alpha != 1 or out is not None:
        return None
    made = _sum(input, other)
    return _sum(other, input) if made is None else made


def _add_in_place(input: Any, other: Any, *, alpha: float = 1) -> Tensor | None:
    return None if alpha != 1 else _sum(input, other, input)


def _sum(main: Any, other: Any, in_place: Deferred | None = None) -> Tensor | None:
    """The sum of the result of a norm and `other`."""
    if not _can_go_on(main, SUM) or main.stage != NORMED:
        return None
    link = main.link
    residual = residual_of(link, other)
    if residual is None:
        return None
    if residual is not other:
        other.use.note(SUM)
    link.add(residual)
    return _went_on(link, main.use.then, in_place)


def residual_of(link: Link, other: Any) -> Union[Link, Tensor, None]:
    """`other` as a link can add it, a link or an ordinary tensor; None where it cannot."""
    residual = other
    if type(other) is Deferred:
        residual = other.link
        if residual.is_done or has_history(other):
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


ASKS.update((function, _ask_of(function, kind)) for function, kind in KINDS.items())
