"""Layers wait inside of one call of the outermost module, and nothing waits any longer when that returns.

What people do between calls, write weights, read statistics, freeze and copy, then finds everything computed. PyTorch
tells nobody when a call ends but hooks, so the outermost module that calls such layers gets two; the first time, when it
has none yet, its layers compute at once.
"""

from __future__ import annotations

import sys
import threading
import weakref
from types import FrameType
from typing import Any, Protocol

import torch

_MOST_WAITING = 200  # links: more than a network has, fewer than Python calls that may be inside of each other
_CALLS = torch.nn.Module._call_impl.__code__


class Waiting(Protocol):
    """A link, as this module sees it (links.py)."""

    norm: Any
    is_done: bool

    def result(self) -> Any:
        """What it makes, computed if it is not there yet."""

    def settle(self) -> None:
        """Computes its convolution once more, if somebody still holds that."""

    def held(self) -> int:
        """0 where nobody holds a tensor that stands for it."""


class _Region(threading.local):
    """Of a thread: `frame` runs the outermost call, None outside of one; `waiting`: the links of it; `training`: those
    whose norms move running statistics, which are computed whether somebody reads them or not; `norms`: the last of
    them by the mean that it moves; `held`: convolutions that may have to be computed again."""

    def __init__(self) -> None:
        self.frame: FrameType | None = None
        self.clear()

    def clear(self) -> None:
        self.waiting: list[weakref.ref[Waiting]] = []
        self.training: dict[int, Waiting] = {}
        self.norms: dict[int, weakref.ref[Waiting]] = {}
        self.held: list[weakref.ref[Waiting]] = []


_region = _Region()


def is_open() -> bool:
    """Whether a layer that is called now may wait."""
    if _region.frame is not None:
        if _runs(_region.frame):
            return True
        _region.frame = None  # KeyboardInterrupt passes hooks by
        _region.clear()
    _watch_the_outermost()
    return False


def add(link: Waiting) -> None:
    """One that waits."""
    if len(_region.waiting) >= _MOST_WAITING:
        alive = [(reference, reference()) for reference in _region.waiting]
        _region.waiting = [reference for reference, link in alive if link is not None and not link.is_done]
        if len(_region.waiting) >= _MOST_WAITING // 2:
            settle()
    _region.waiting.append(weakref.ref(link))


def moves_statistics(link: Waiting) -> None:
    """One whose norm is in training, behind all that moved the same statistics."""
    assert link.norm is not None
    settle_norm(link.norm[0])
    _region.training[id(link)] = link
    _region.norms[id(link.norm[0])] = weakref.ref(link)


def settle_norm(mean: Any) -> None:
    """Computes what waits and moves this running mean."""
    last = _region.norms.pop(id(mean), None)
    link = None if last is None else last()
    if link is not None and not link.is_done and link.norm is not None and link.norm[0] is mean:
        link.result()


def is_computed(link: Waiting) -> None:
    """One that waited."""
    _region.training.pop(id(link), None)


def may_be_asked_for(link: Waiting) -> None:
    """One whose convolution somebody holds that went on without it."""
    _region.held.append(weakref.ref(link))


def settle() -> None:
    """Computes all that waits and that somebody holds, or that moves statistics."""
    waiting, held = _region.waiting, _region.held
    _region.waiting, _region.held, _region.norms = [], [], {}
    try:
        for reference in reversed(waiting):  # the last ones first, with the chains that lead to them
            link = reference()
            if link is not None and not link.is_done and (id(link) in _region.training or link.held()):
                link.result()
        for reference in (*held, *_region.held):
            link = reference()
            if link is not None:
                link.settle()
    finally:
        _region.training, _region.held = {}, []


def _begin(module: torch.nn.Module, args: Any) -> None:
    if torch.compiler.is_compiling() or (_region.frame is not None and _runs(_region.frame)):
        return
    _region.clear()  # of a call that was broken off
    _region.frame = sys._getframe(1)


def _end(module: torch.nn.Module, args: Any, output: Any) -> None:
    if torch.compiler.is_compiling() or _region.frame is None:
        return
    if sys._getframe(1) is not _region.frame and _runs(_region.frame):
        return  # a call inside of the outermost one
    try:
        settle()
    finally:
        _region.frame = None
        _region.clear()


def _runs(frame: FrameType) -> bool:
    """Whether a call is under way in this thread."""
    at: FrameType | None = sys._getframe(1)
    while at is not None:
        if at is frame:
            return True
        at = at.f_back
    return False


def _watch_the_outermost() -> None:
    outermost = None
    at: FrameType | None = sys._getframe(2)
    while at is not None:
        if at.f_code is _CALLS:
            outermost = at
        at = at.f_back
    if outermost is None:
        return
    module = outermost.f_locals["self"]
    if module._modules and _end not in module._forward_hooks.values():
        module.register_forward_pre_hook(_begin, prepend=True)
        module.register_forward_hook(_end, always_call=True)
