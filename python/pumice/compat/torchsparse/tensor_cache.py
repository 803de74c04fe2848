"""What tensors of one network share."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..foreign import PeerAssertionError


class TensorCacheMode(Enum):
    SEPARATE_TENSOR_CACHE = 0
    GLOBAL_TENSOR_CACHE = 1


class TensorCache:
    """`cmaps`, coordinates by stride; `kmaps`, sites and windows; and what code keeps in it besides."""

    def __init__(self) -> None:
        self.cmaps: dict[Any, Any] = {}
        self.kmaps: dict[Any, Any] = {}
        self.hashmaps: dict[Any, Any] = {}


_mode = TensorCacheMode.SEPARATE_TENSOR_CACHE
_shared: TensorCache | None = None


def set_tensor_cache_mode(mode: TensorCacheMode) -> None:
    """Global: all tensors made from here on share one cache, until it is cleared."""
    global _mode
    if not isinstance(mode, TensorCacheMode):
        raise PeerAssertionError(f"mode = {mode!r}: give a TensorCacheMode")
    _mode = mode


def get_tensor_cache_mode() -> TensorCacheMode:
    return _mode


def get_global_tensor_cache() -> TensorCache | None:
    return _shared


def set_global_tensor_cache(tensor_cache: TensorCache | None) -> None:
    global _shared
    _shared = tensor_cache


def clear_global_tensor_cache() -> None:
    """Where the cache is global: after each forward and backward, or else every scan is kept."""
    set_global_tensor_cache(None)


def fresh() -> TensorCache:
    """Of a new tensor."""
    if _mode is TensorCacheMode.SEPARATE_TENSOR_CACHE:
        return TensorCache()
    if _shared is None:
        set_global_tensor_cache(TensorCache())
    assert _shared is not None
    return _shared
