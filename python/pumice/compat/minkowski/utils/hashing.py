"""Hashes of integer rows, as numbers of 64 bits that wrap."""

from __future__ import annotations

import numpy as np

from ...foreign import PeerAssertionError

_FNV_START, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def fnv_hash_vec(arr: np.ndarray) -> np.ndarray:
    """uint64 [N] of rows [N, D]: Fowler, Noll and Vo's hash of whole columns, not of bytes."""
    hashed = np.full(len(_rows(arr)), _FNV_START, dtype=np.uint64)
    for column in arr.astype(np.uint64).T:
        hashed = hashed * np.uint64(_FNV_PRIME) ^ column
    return hashed


def ravel_hash_vec(arr: np.ndarray) -> np.ndarray:
    """uint64 [N] of rows [N, D]: the place of each in the box around all, the last axis fastest. Different
    rows have different ones where the box holds fewer than 2^64 cells."""
    if len(_rows(arr)) == 0:
        return np.zeros(0, dtype=np.uint64)
    cells = (arr - arr.min(0)).astype(np.uint64)
    keys = np.zeros(len(arr), dtype=np.uint64)
    for column, extent in zip(cells.T, cells.max(0) + np.uint64(1)):
        keys = keys * extent + column
    return keys


def _rows(arr: np.ndarray) -> np.ndarray:
    if arr.ndim != 2:
        raise PeerAssertionError(f"arr has shape {arr.shape}: give [N, D]")
    return arr
