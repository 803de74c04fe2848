"""Points into voxels with their points listed, as `PointToVoxel` and its relatives do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ... import _C


class Grid:
    """Cells of `size` metres from `low` to `high`, axes in the order x, y, z."""

    def __init__(self, vsize_xyz: Sequence[float], coors_range_xyz: Sequence[float]) -> None:
        axes = len(vsize_xyz)
        if not 1 <= axes <= 4 or len(coors_range_xyz) != 2 * axes:
            raise _C.UserError(
                f"vsize_xyz has {axes} numbers and coors_range_xyz {len(coors_range_xyz)}: give "
                "one size an axis, and the low corner followed by the high one"
            )
        if any(size <= 0 for size in vsize_xyz):
            raise _C.UserError(f"vsize_xyz = {list(vsize_xyz)}: give sizes above 0")
        self.size = torch.tensor(list(vsize_xyz), dtype=torch.float32)
        self.low = torch.tensor(list(coors_range_xyz[:axes]), dtype=torch.float32)
        high = torch.tensor(list(coors_range_xyz[axes:]), dtype=torch.float32)
        self.cells = torch.round((high - self.low) / self.size).long()
        if not bool((self.cells > 0).all()):
            raise _C.UserError(
                f"coors_range_xyz = {list(coors_range_xyz)} holds no cell of {list(vsize_xyz)}"
            )


class Voxels(NamedTuple):
    points: Tensor  # float32 [V, P, C], 0 where there are fewer points
    indices: Tensor  # int32 [V, D], the last axis of points first: z, y, x
    counts: Tensor  # int32 [V]
    of_point: Tensor  # int64 [N]: row of each point's voxel, -1 for none


def voxelize(
    points: Tensor, grid: Grid, max_voxels: int, max_points: int, empty_mean: bool = False
) -> Voxels:
    """points: float [N, C], of which the first D columns are the position.

    Voxels come in the order of their first points, of which there are `max_voxels` at most; each
    keeps its first `max_points` points. `empty_mean`: places that stay empty hold the mean.
    """
    axes = len(grid.cells)
    if points.dim() != 2 or points.shape[1] < axes:
        raise _C.UserError(
            f"points have shape {tuple(points.shape)}: give [points, columns], of which the first "
            f"{axes} are the position"
        )
    device = points.device
    low, size, extent = grid.low.to(device), grid.size.to(device), grid.cells.to(device)
    cells = torch.floor((points[:, :axes].float() - low) / size)
    # Compared as numbers with a fraction, so that what is no number at all is outside too.
    inside = ((cells >= 0) & (cells < extent)).all(1)
    chosen = inside.nonzero()[:, 0]
    cells = cells[chosen].long().flip(1)
    row, first, order_of = _in_order_of_first(_key(cells, extent.flip(0)))
    of_point = torch.full((points.shape[0],), -1, dtype=torch.int64, device=device)
    of_point[chosen] = torch.where(row < max_voxels, row, -1)
    first = first[:max_voxels]
    counts = torch.bincount(row, minlength=len(first))[: len(first)]
    # The place of each point among those of its voxel.
    begin = torch.cumsum(torch.bincount(row, minlength=1), 0) - torch.bincount(row, minlength=1)
    place = torch.empty_like(row)
    place[order_of] = torch.arange(len(row), device=device) - begin[row[order_of]]
    taken = ((row < max_voxels) & (place < max_points)).nonzero()[:, 0]
    voxels = points.new_zeros((len(first), max_points, points.shape[1]), dtype=torch.float32)
    voxels[row[taken], place[taken]] = points[chosen[taken]].float()
    counts = counts.clamp_max(max_points).int()
    if empty_mean and len(first):
        mean = voxels.sum(1, keepdim=True) / counts[:, None, None]
        empty = torch.arange(max_points, device=device) >= counts[:, None]
        voxels = torch.where(empty[:, :, None], mean, voxels)
    return Voxels(voxels, cells[first].int(), counts, of_point)


def _key(cells: Tensor, extent: Tensor) -> Tensor:
    key = torch.zeros(len(cells), dtype=torch.int64, device=cells.device)
    for axis in range(cells.shape[1]):
        key = key * extent[axis] + cells[:, axis]
    return key


def _in_order_of_first(keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(number of each key, equal for equal keys, in the order in which they first occur; where each
    first occurs; all places sorted by number, in order)."""
    _, group = torch.unique(keys, return_inverse=True)
    places = torch.arange(len(keys), device=keys.device)
    count = int(group.max()) + 1 if len(keys) else 0
    first = places.new_full((count,), len(keys)).scatter_reduce(0, group, places, "amin")
    first, order = first.sort()
    number = torch.empty_like(order)
    number[order] = torch.arange(count, device=keys.device)
    row = number[group]
    return row, first, torch.argsort(row, stable=True)
