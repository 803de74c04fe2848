"""Numbers for every axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def make_ntuple(x: Any, ndim: int) -> tuple[Any, ...]:
    """One number for all axes, or one each."""
    if isinstance(x, int):
        return (x,) * ndim
    if isinstance(x, torch.Tensor):
        x = x.reshape(-1).tolist()
    if not isinstance(x, Sequence) or len(x) != ndim:
        raise ValueError(f"{x!r}: give one number, or {ndim}")
    return tuple(x)
