"""Sites in the order of MinkowskiEngine's rows: first come, first row.

There a row is the place at which a site was first met. The engine makes new sites in key order, so what is
made here is put into the order in which the input's rows lead to it: without a sort, and without waiting for
a GPU more often than making the sites does. (MinkowskiEngine itself walks through a hash table to make the
sites of strided, generative and united tensors, on a GPU from many threads at once, which leaves their order
open; that of the caller's own coordinates it keeps.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _C, ops
from ...coords import Coordinates
from ...window import Window


def numbers(values: Sequence[Any], like: Tensor) -> Tensor:
    """Numbers as a tensor of the type and on the device of `like`, without waiting for a GPU (as
    like.new_tensor(values) does)."""
    return torch.tensor(values, dtype=like.dtype).to(like.device, non_blocking=True)


def floor_divide(cells: Tensor, stride: Sequence[int]) -> Tensor:
    """[N, D] by D numbers, rounded down for negative cells too."""
    if all(s & (s - 1) == 0 for s in stride):   # in a tenth of the time
        return cells >> numbers([s.bit_length() - 1 for s in stride], cells)
    return torch.div(cells, numbers(list(stride), cells), rounding_mode="floor")


def coarse_cells(cells: Tensor, steps: Sequence[int]) -> Tensor:
    """The cells [N, 1 + D] of `steps` cells an axis that hold cells [N, 1 + D]."""
    return torch.cat([cells[:, :1], floor_divide(cells[:, 1:], steps)], 1)


def rows_at(sites: Coordinates, cells: Tensor) -> Tensor:
    """int64 [P]: the row of each cell int32 [P, 1 + D], -1 for those that are not there. Does not wait."""
    if len(sites) == 0 or len(cells) == 0:
        return cells.new_full((len(cells),), -1, dtype=torch.int64)
    there = (cells[:, 0] >= 0) & (cells[:, 0] < sites.batch_size)
    points = cells.double()   # which holds every int32
    points[:, 0] *= there
    rows = ops.interpolation_map(sites, points, nearest=True).rows[:, 0].long()
    return rows.where(there, -1)


def unique_sites(
    cells: Tensor, stride: Sequence[int], batch_size: int | None = None, bounds: object = None
) -> tuple[Coordinates, Tensor, Tensor]:
    """(sites, int64 [N] the first of the cells [P, 1 + D] of each, int64 [P] the row of each cell). A GPU is
    waited for twice, with `bounds` ((lowest, highest cell)) and the batch size once."""
    if bounds is None or len(cells) == 0:
        sites, row_of, first = Coordinates.unique(cells, stride=stride, batch_size=batch_size)
        keyed = sites.sites
    else:
        keyed, row_of, first = _C.unique_sites(cells, list(stride), None, batch_size, *bounds)
    count = len(cells)
    if keyed.rows == count:   # the cells themselves
        places = torch.arange(count, device=cells.device)
        return Coordinates._of(keyed.reorder(first.int())), places, places
    row = _first_come(first.long(), count)
    ordered = torch.empty_like(row).index_copy_(0, row, first.long())
    return Coordinates._of(keyed.reorder(row.int())), ordered, row[row_of.long()]


def coarsened(sites: Coordinates, steps: Sequence[int]) -> Coordinates:
    """The occupied cells of `steps` cells an axis, of a grid without bounds. Waits for a GPU once."""
    window = Window(steps, steps, [0] * len(steps), [1] * len(steps))
    coarse = Coordinates._of(_C.strided_sites(sites.sites, window.c, True))
    row_of = rows_at(coarse, coarse_cells(sites.indices, steps))
    places = torch.arange(len(sites), device=row_of.device)
    first = places.new_full((len(coarse),), len(sites)).scatter_reduce(0, row_of, places, "amin")
    return Coordinates._of(coarse.sites.reorder(_first_come(first, len(sites)).int()))


def reached(
    sites: Coordinates, offsets: Sequence[Sequence[int]], steps: Sequence[int], finer: bool
) -> Coordinates:
    """All cells at one of `offsets` (in cells of the finer side) from a site: of the finer grid, `steps` cells
    to one of `sites`; or of the coarser one, those whose corner is at an offset. Where a site leads to several
    new ones, they come in the order of the offsets. Waits for a GPU once; a coarser grid once more."""
    cells = sites.indices
    shifts = numbers(offsets, cells)
    corners = cells[:, 1:] * numbers(list(steps), cells) if finer else cells[:, 1:]
    near = corners[:, None] + shifts
    items = cells[:, None, :1].expand(-1, len(shifts), 1)
    near = torch.cat([items, near], 2).reshape(-1, cells.shape[1])
    stride = stride_reached(sites.stride, steps, finer)
    bounds = sites.sites.bounds
    if bounds is not None:
        most = [steps[axis] if finer else 1 for axis in range(len(steps))]
        edges = [min(axis) for axis in zip(*offsets)], [max(axis) for axis in zip(*offsets)]
        bounds = tuple(
            [value * step + edge for value, step, edge in zip(values, most, edge_values)]
            for values, edge_values in zip(bounds, edges)
        )
    if not finer and any(step != 1 for step in steps):
        near = near[(near[:, 1:] % numbers(list(steps), near) == 0).all(1)]
        near = coarse_cells(near, steps)
        if bounds is not None:
            bounds = tuple([value // step for value, step in zip(values, steps)] for values in bounds)
    return unique_sites(near.contiguous(), stride, sites.batch_size, bounds)[0]


def stride_reached(stride: Sequence[int], steps: Sequence[int], finer: bool) -> list[int]:
    """Of a grid `steps` times finer or coarser than one of `stride`; where that is no whole number it is a
    new finest level, 1."""
    if not finer:
        return [s * step for s, step in zip(stride, steps)]
    return [s // step if s % step == 0 else 1 for s, step in zip(stride, steps)]


def united(left: Coordinates, right: Coordinates) -> tuple[Coordinates, Tensor]:
    """(the sites of either, int64 [rows of right] where each of right is): first those of left, row by row,
    then what right adds, in its order. Waits for a GPU once."""
    keyed, left_row, right_row = left.sites.unite(right.sites)
    left_row, right_row = left_row.long(), right_row.long()
    places = torch.arange(keyed.rows, device=left_row.device)
    added = torch.ones_like(places).index_fill_(0, left_row, 0)[right_row]
    row = torch.empty_like(places).index_copy_(0, right_row, len(left) - 1 + added.cumsum(0))
    row.index_copy_(0, left_row, places[: len(left)])
    return Coordinates._of(keyed.reorder(row.int())), row[right_row]


def _first_come(first: Tensor, count: int) -> Tensor:
    """int64 [N]: rows by the first of `count` places that lead to each site, int64 [N], all different."""
    met = torch.zeros(count, dtype=torch.int64, device=first.device).index_fill_(0, first, 1)
    return met.cumsum(0)[first] - 1
