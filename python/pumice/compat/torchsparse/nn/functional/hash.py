"""Hashes of coordinates."""

from __future__ import annotations

import torch
from torch import Tensor

from ....foreign import PeerAssertionError
from ... import conventions

_START = 14695981039346656037 - (1 << 64)  # FNV-1a of four 32-bit numbers, as TorchSparse takes it
_PRIME = 1099511628211


def sphash(coords: Tensor, offsets: Tensor | None = None) -> Tensor:
    """int64 [N] of coords int [N, 4]; or [K, N] of the coords moved by each of offsets [K, 3].

    The hashes are those that TorchSparse has on a GPU, so that what is sorted by them has its order.
    Equal rows have equal hashes, and others almost never.
    """
    if coords.dtype not in (torch.int32, torch.int64) or coords.dim() != 2 or coords.shape[1] != 4:
        raise PeerAssertionError(
            f"coords are {coords.dtype} of shape {tuple(coords.shape)}: give int32 [rows, 4]"
        )
    rows = coords.to(torch.int64)
    if offsets is not None:
        if offsets.dim() != 2 or offsets.shape[1] != 3:
            raise PeerAssertionError(f"offsets have shape {tuple(offsets.shape)}: give [offsets, 3]")
        moved = rows[None].repeat(len(offsets), 1, 1)
        moved[:, :, conventions.axes()] += offsets.to(rows)[:, None]
        rows = moved
    hashes = of_rows(rows)
    if conventions.batch_first:
        return hashes
    return ((hashes >> 60) & 0xF) ^ (hashes & 0xFFFFFFFFFFFFFFF)  # folded before 2.1


def of_rows(rows: Tensor) -> Tensor:
    """int64 [...] of rows int64 [..., 4]; products wrap around."""
    hashes = torch.full(rows.shape[:-1], _START, dtype=torch.int64, device=rows.device)
    for column in range(rows.shape[-1]):
        hashes = (hashes ^ (rows[..., column] & 0xFFFFFFFF)) * _PRIME
    return hashes
