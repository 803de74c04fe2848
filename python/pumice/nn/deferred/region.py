"""Limits waiting to one call of the outermost module: when that call returns, everything has been computed.

Between calls, code writes weights, reads statistics, freezes and copies layers, and must find everything computed.
PyTorch reports the end of a call to hooks only, so the outermost module that calls such layers gets two of them. In its
first call, when it has none yet, its layers compute at once.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch

from ... import _C
from .links import CONVOLVED, Link

# The extension keeps the links of each thread (python/src/recorder/region.hpp) and calls functions of this module for
# what is seldom needed.
_CALLS = torch.nn.Module._call_impl.__code__


def is_own_hook(hook: object) -> bool:
    """Whether a hook of a module is one of those that this module registers."""
    return hook is _begin or hook is _end


def settle() -> None:
    """Computes the links that wait, if a tensor stands for them or they update statistics."""
    for link in _C.waiting_links():  # the last ones first, with the chains that lead to them
        if not link.is_done:
            link.result()
    for reference in _C.links_asked_again():
        link = reference()
        if link is not None:
            settle_convolution(link)


def settle_convolution(link: Link) -> None:
    """Computes the convolution of a link once more, if a tensor still stands for its result."""
    if link.again is not None and link.again() is not None:
        link.result(CONVOLVED)


def _begin(module: torch.nn.Module, args: Any) -> None:
    if torch.compiler.is_compiling():
        return
    frame = _C.region_frame()
    if frame is None or depth_of(frame) is None:
        _C.open_region(sys._getframe(1))


def _end(module: torch.nn.Module, args: Any, output: Any) -> None:
    if torch.compiler.is_compiling():
        return
    frame = _C.region_frame()
    if frame is None:
        return
    if sys._getframe(1) is not frame and depth_of(frame) is not None:
        return  # a call inside of the outermost one
    try:
        settle()
    finally:
        _C.open_region(None)


def depth_of(frame: FrameType) -> int | None:
    """How many frames above the caller a call is that is under way in this thread; None where it is not."""
    at: FrameType | None = sys._getframe(1)
    depth = 0
    while at is not None:
        if at is frame:
            return depth
        at = at.f_back
        depth += 1
    return None


def watch_the_outermost() -> None:
    outermost = None
    at: FrameType | None = sys._getframe(1)
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
