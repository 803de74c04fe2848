"""Which rows meet: the maps that a coordinate manager hands out as tensors of rows.

The engine's own maps stay inside; these are looked up again, for code that reads them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from ...coords import Coordinates
from ..foreign import PeerAssertionError
from .order import floor_divide, numbers, rows_at


def kernel_offsets(size: Sequence[int], dilation: Sequence[int], cross: bool) -> list[tuple[int, ...]]:
    """In MinkowskiEngine's order, the first axis fastest; a cross has its centre first, then +1 ... +r and
    -r ... -1 of each axis. Odd axes are centred, even ones begin at 0."""
    if cross:
        steps = [(0, 0)] + [
            (axis, step)
            for axis, k in enumerate(size)
            for step in (*range(1, k // 2 + 1), *range(-(k // 2), 0))
        ]
        return [
            tuple(step * d if a == axis else 0 for a, d in enumerate(dilation)) for axis, step in steps
        ]
    ranges = [
        [(i - (k // 2 if k % 2 else 0)) * d for i in range(k)] for k, d in zip(size, dilation)
    ]
    return [offset[::-1] for offset in itertools.product(*reversed(ranges))]


def kernel_map(
    fine: Coordinates, coarse: Coordinates, offsets: Sequence[Sequence[int]], transposed: bool
) -> dict[int, Tensor]:
    """{offset number: int32 [2, pairs] of (input rows, output rows)}, offsets without pairs left out: where
    the cell of `fine` at that offset (in its own cells) from a corner of `coarse` is a site. The input is the
    fine side, and the coarse one where it is transposed. Waits for a GPU twice."""
    if len(fine) == 0 or len(coarse) == 0:
        return {}
    corners = _corners(coarse)
    shifts = [[step * s for step, s in zip(offset, fine.stride)] for offset in offsets]
    found = torch.stack([_rows_of_corners(fine, corners, numbers(s, corners)) for s in shifts])
    there = found >= 0
    coarse_row = there.nonzero()[:, 1].int()
    both = torch.stack([found[there].int(), coarse_row])
    if transposed:
        both = both.flip(0)
    parts = both.split(there.sum(1).tolist(), 1)
    return {number: pairs for number, pairs in enumerate(parts) if pairs.shape[1] > 0}


def stride_map(fine: Coordinates, coarse: Coordinates) -> tuple[Tensor, Tensor]:
    """int64 (rows of `fine`, the row of `coarse` that holds each)."""
    if any(c % f != 0 for c, f in zip(coarse.stride, fine.stride)):
        raise PeerAssertionError(
            f"stride_map: the strides are {list(fine.stride)} and {list(coarse.stride)}: give a key whose "
            "stride the other one's divides"
        )
    cells = _corners(fine)
    cells[:, 1:] = floor_divide(cells[:, 1:], coarse.stride)
    rows = rows_at(coarse, cells)
    if bool((rows < 0).any()):
        raise PeerAssertionError(
            f"stride_map: {int((rows < 0).sum())} sites are in no site of the strided key: give a key that "
            "stride() made of the first one"
        )
    return torch.arange(len(rows), device=rows.device), rows


def item_rows(items: Tensor, batch_size: int) -> list[Tensor]:
    """For each batch item the rows of it, int64, ascending; items [N] is the batch index of each row."""
    order = torch.argsort(items, stable=True)
    counts = torch.bincount(items.long(), minlength=batch_size).tolist()
    return list(order.split(counts))


def _corners(sites: Coordinates) -> Tensor:
    """int32 [N, 1 + D] in cells of the finest level; a copy."""
    corners = sites.indices.clone()
    corners[:, 1:] *= numbers(list(sites.stride), corners)
    return corners


def _rows_of_corners(sites: Coordinates, corners: Tensor, shift: Tensor) -> Tensor:
    """int64 [N]: the row of the site whose corner is `shift` from each of `corners`, -1 without one."""
    moved = corners[:, 1:] + shift
    stride = sites.stride
    rows = rows_at(sites, torch.cat([corners[:, :1], floor_divide(moved, stride)], 1))
    if all(s == 1 for s in stride):
        return rows
    return rows.where((moved % numbers(list(stride), moved) == 0).all(1), -1)
