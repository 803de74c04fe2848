"""Numbers for every axis."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ..foreign import PeerAssertionError


def make_ntuple(x: Any, ndim: int, name: str = "") -> tuple[Any, ...]:
    """One number for all axes, or one each. Raises PeerAssertionError, in the name of the argument, for anything else."""
    if isinstance(x, int):
        return (x,) * ndim
    if isinstance(x, torch.Tensor):
        x = x.reshape(-1).tolist()
    if not isinstance(x, Sequence) or isinstance(x, str) or len(x) != ndim:
        raise PeerAssertionError(f"{name + ' = ' if name else ''}{x!r}: give one number, or {ndim}")
    return tuple(x)


@functools.lru_cache(maxsize=1024)
def make_tensor(x: tuple[Any, ...], dtype: torch.dtype, device: Any) -> torch.Tensor:
    """torch.tensor(x); the same tensor for the same arguments, so nobody may write into it."""
    with torch.inference_mode(False):  # it outlives the mode that it is made in
        return torch.tensor(x, dtype=dtype, device=device)


def make_divisible(x: int, divisor: int) -> int:
    """The next multiple of `divisor`."""
    return (x + divisor - 1) // divisor * divisor
