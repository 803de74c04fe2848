"""Modes of TorchSparse's kernels, kept for code that reads and writes them. They change nothing there
either: layers read the configuration."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ......_checks import shown
from .....foreign import PeerAssertionError

_KMAP_MODES = ("hashmap_on_the_fly", "hashmap")
_DOWNSAMPLE_MODES = ("spconv", "minkowski")


class ConvMode(Enum):
    mode0 = 0
    mode1 = 1
    mode2 = 2


_conv_mode = ConvMode.mode0
_kmap_mode, _downsample_mode = _KMAP_MODES[0], _DOWNSAMPLE_MODES[0]


def get_conv_mode() -> ConvMode:
    return _conv_mode


def set_conv_mode(conv_mode: Any) -> None:
    global _conv_mode
    _conv_mode = checked_mode(conv_mode)


def checked_mode(conv_mode: Any) -> ConvMode:
    """The ConvMode that it is, or is the number of."""
    if not isinstance(conv_mode, (ConvMode, int)) or conv_mode not in (*ConvMode, 0, 1, 2):
        raise PeerAssertionError(f"conv_mode {shown(conv_mode)}: give a ConvMode, or 0, 1 or 2")
    return ConvMode(conv_mode)


def get_kmap_mode() -> str:
    return _kmap_mode


def set_kmap_mode(kmap_mode: str) -> None:
    global _kmap_mode
    _kmap_mode = checked_kmap_mode(kmap_mode)


def get_downsample_mode() -> str:
    return _downsample_mode


def set_downsample_mode(downsample_mode: str) -> None:
    global _downsample_mode
    _downsample_mode = checked_downsample_mode(downsample_mode)


def checked_kmap_mode(kmap_mode: Any) -> str:
    return _one_of("kmap_mode", kmap_mode, _KMAP_MODES)


def checked_downsample_mode(downsample_mode: Any) -> str:
    return _one_of("downsample_mode", downsample_mode, _DOWNSAMPLE_MODES)


def _one_of(name: str, value: Any, known: tuple[str, str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise PeerAssertionError(f"{name} {shown(value)}: give {known[0]!r} or {known[1]!r}")
    return value
