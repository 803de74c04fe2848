"""Limits waiting to one call of the outermost module: when that call returns, everything has been computed.

Between calls, code writes weights, reads statistics, freezes and copies layers, and must find everything computed.
PyTorch reports the end of a call to hooks only, so the outermost module that calls such layers gets two of them. In its
first call, when it has none yet, its layers compute at once.
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
_frame_at = sys._getframe
_reference_to = weakref.ref


class Waiting(Protocol):
    """A link, as this module sees it (links.py)."""

    norm: Any
    is_done: bool

    def result(self) -> Any:
        """Its result, computed if it is not there yet."""

    def settle(self) -> None:
        """Computes its convolution once more, if a tensor still stands for that."""

    def held(self) -> int:
        """0 where no tensor stands for its result."""


class _Region(threading.local):
    """The state of one thread. `frame`: the frame of the outermost call, None outside of one. `depth`: how many frames
    above `is_open` it was found last. `waiting`: the links made in it. `training`: those whose norms update running statistics, which have to be computed even if nothing reads
    them. `norms`: the last of these by the running mean that it updates. `held`: links whose convolution may have to
    be computed again."""

    def __init__(self) -> None:
        self.frame: FrameType | None = None
        self.depth = 0
        self.clear()

    def clear(self) -> None:
        self.waiting: list[weakref.ref[Waiting]] = []
        self.training: dict[int, Waiting] = {}
        self.norms: dict[int, weakref.ref[Waiting]] = {}
        self.held: list[weakref.ref[Waiting]] = []


_region = _Region()


def is_open() -> bool:
    """Whether a layer that is called now may wait."""
    frame = _region.frame
    if frame is not None:
        # Layers of one loop are called at one depth, which takes a tenth of the time of looking at all frames.
        try:
            if _frame_at(_region.depth) is frame:
                return True
        except ValueError:  # there are not as many now
            pass
        depth = _depth_of(frame)
        if depth is not None:
            _region.depth = depth
            return True
        _region.frame = None  # the hooks do not run after a KeyboardInterrupt
        _region.clear()
    _watch_the_outermost()
    return False


def is_own_hook(hook: object) -> bool:
    """Whether a hook of a module is one of those that this module registers."""
    return hook is _begin or hook is _end


def add(link: Waiting) -> None:
    """Adds a link that waits."""
    waiting = _region.waiting
    if len(waiting) >= _MOST_WAITING:
        alive = [(reference, reference()) for reference in waiting]
        _region.waiting = [reference for reference, link in alive if link is not None and not link.is_done]
        if len(_region.waiting) >= _MOST_WAITING // 2:
            settle()
        waiting = _region.waiting
    waiting.append(_reference_to(link))


def moves_statistics(link: Waiting) -> None:
    """Adds a link whose norm is in training; an earlier one that updates the same statistics is computed first."""
    assert link.norm is not None
    settle_norm(link.norm[0])
    _region.training[id(link)] = link
    _region.norms[id(link.norm[0])] = weakref.ref(link)


def settle_norm(mean: Any) -> None:
    """Computes the link that waits and updates this running mean."""
    last = _region.norms.pop(id(mean), None)
    link = None if last is None else last()
    if link is not None and not link.is_done and link.norm is not None and link.norm[0] is mean:
        link.result()


def is_computed(link: Waiting) -> None:
    """Removes a link that has been computed."""
    _region.training.pop(id(link), None)


def may_be_asked_for(link: Waiting) -> None:
    """Adds a link whose convolution a tensor stands for although the chain did not keep its result."""
    _region.held.append(weakref.ref(link))


def settle() -> None:
    """Computes the links that wait, if a tensor stands for them or they update statistics."""
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
    if torch.compiler.is_compiling() or (_region.frame is not None and _depth_of(_region.frame) is not None):
        return
    _region.clear()  # links of a call that was interrupted
    _region.frame = sys._getframe(1)


def _end(module: torch.nn.Module, args: Any, output: Any) -> None:
    if torch.compiler.is_compiling() or _region.frame is None:
        return
    if sys._getframe(1) is not _region.frame and _depth_of(_region.frame) is not None:
        return  # a call inside of the outermost one
    try:
        settle()
    finally:
        _region.frame = None
        _region.clear()


def _depth_of(frame: FrameType) -> int | None:
    """How many frames above the caller a call is that is under way in this thread; None where it is not."""
    at: FrameType | None = sys._getframe(1)
    depth = 0
    while at is not None:
        if at is frame:
            return depth
        at = at.f_back
        depth += 1
    return None


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
