"""Points as a call of a compiled model is given them, and what the model is given in place of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from .. import _C
from .._checks import kind_of, whole_number
from .._sites import axis_numbers
from .._tensors import check_floating
from ..coords import Coordinates
from ..nn import deferred
from ..tensor import SparseTensor
from ..voxels import TensorVoxels, Voxelizer, check_points, int_items
from .rows_seen import RowsSeen
from .scans import OWN, Grid, Kind, kind_for


class Points(NamedTuple):
    """Points of a call; a scan as `Scan` is, whose rows are those of points."""

    positions: Tensor  # float32 [P, 3 or more]
    features: Tensor  # [P, C]
    batch: Tensor | None  # int32 [P]; None: all 0
    voxelizer: Voxelizer
    grid: Grid  # of the voxels
    kind: Kind = OWN
    given: None = None

    @property
    def rows(self) -> int:
        """How many points."""
        return self.features.shape[0]

    @property
    def sizes(self) -> list[int]:
        """What labels may have a row for each of."""
        return [self.rows]

    @property
    def key(self) -> tuple[Any, ...]:
        """What a graph takes for granted beside the type and width of features."""
        return self.positions.shape[1], self.batch is None, self.are_features

    @property
    def are_features(self) -> bool:
        """Whether positions and features are one tensor."""
        return self.positions is self.features

    @property
    def point_rows(self) -> int:
        """The rows of what a model makes for each point."""
        return self.rows

    def with_a_shared_voxel(self) -> Points:
        """The points, and one more where another is, so that there are more of them than voxels."""
        positions, features, batch = self.positions, self.features, self.batch
        low = [0.0] * 3 if self.voxelizer.range is None else self.voxelizer.range[:3]
        if self.rows == 0:  # two at the corner of cell 0
            positions, features = positions.new_zeros(1, positions.shape[1]), features.new_zeros(1, features.shape[1])
            positions[:, :3] = positions.new_tensor(low)
            batch = None if batch is None else batch.new_zeros(1)

        def longer(tensor: Tensor) -> Tensor:
            return torch.cat([tensor, tensor[:1]])

        return self._replace(
            positions=longer(positions), features=longer(features), batch=None if batch is None else longer(batch)
        )

    def first(self, rows: int) -> Points:
        """The first points alone."""
        positions = self.positions[:rows]
        features = positions if self.are_features else self.features[:rows]
        return self._replace(
            positions=positions, features=features, batch=None if self.batch is None else self.batch[:rows]
        )

    def fresh(self) -> TensorVoxels:
        """The voxels. Waits as `pumice.voxelize` does."""
        return self.voxelizer.of(self.positions, self.features, self.batch, self.grid.batch_size)

    def input(self) -> TensorVoxels:
        """What the model is called with where it runs as it is."""
        return self.fresh()

    def coords_of(self, x: TensorVoxels) -> Coordinates:
        """The sites of an input of the model."""
        return x.tensor.coords


def points_of(given: tuple[Any, ...], batch: Any, batch_size: int | None, voxelizer: Voxelizer) -> Points:
    """The points of one call's arguments. Raises UserError for what is not (points) or (points, features)."""
    if len(given) not in (1, 2) or not all(isinstance(one, Tensor) for one in given):
        kinds = ", ".join(kind_of(value) for value in given) or "nothing"
        raise _C.UserError(
            f"a model that was compiled with voxelize=… was given {kinds}: give points [P, 3 or more], and features [P, C] "
            "if they are not all columns of the points"
        )
    points = given[0]
    features = points if len(given) == 1 else given[1]
    check_points(points, features, batch)
    check_floating(features)
    items = 1 if batch_size is None else whole_number("batch_size", batch_size, 1, 2**31 - 1)
    if batch is not None and batch_size is None:
        raise _C.UserError("batch is given and batch_size is not: a graph has to know how many items there are")
    positions = points.detach()
    if positions.dtype != torch.float32 or not positions.is_contiguous():
        positions = positions.float().contiguous()
    elif features is points and not points.requires_grad:
        positions = features
    shape = axis_numbers("spatial_shape", voxelizer.spatial_shape, 3)
    grid = Grid(3, items, None if shape is None else tuple(shape), (1, 1, 1))
    return Points(positions, features, None if batch is None else int_items(batch), voxelizer, grid)


def at_points(
    value: Any, voxels: TensorVoxels, seen: RowsSeen, of_fewer: Callable[[TensorVoxels], Any] | None
) -> Any:
    """The same tuples, lists and dictionaries, with [P, C] of points in place of features on the voxels. A plain tensor has
    these where it has as many rows as there are voxels, in this call and in all that `seen` remembers; where that leaves it
    open, what the model returns `of_fewer` voxels tells."""
    leaves, structure = tree_flatten(value)
    possible = _rows_of(leaves, structure, voxels, seen)
    if of_fewer is not None and len(voxels) > 2 and any(len(some) > 1 for some in possible.values()):
        other = _without_the_last(voxels)
        _rows_of(*tree_flatten(of_fewer(other)), other, seen)
        possible = _rows_of(leaves, structure, voxels, seen)

    def moved(at: int, leaf: Any) -> Any:
        kind = kind_for(leaf)
        if kind is not None:
            coords, features = kind.parts(leaf)
            return voxels.at_points(deferred.plain(features)) if coords.is_same(voxels.tensor.coords) else leaf
        return voxels.at_points(deferred.plain(leaf)) if 0 in possible.get(at, ()) else leaf

    return tree_unflatten([moved(at, leaf) for at, leaf in enumerate(leaves)], structure)


def _rows_of(leaves: list[Any], structure: Any, voxels: TensorVoxels, seen: RowsSeen) -> dict[int, frozenset[Any]]:
    """Of each plain matrix, by its place: whether its rows are those of the voxels (0), or its own."""
    sightings = {
        at: seen.look((str(structure), at), leaf.shape[0], [len(voxels)])
        for at, leaf in enumerate(leaves)
        if isinstance(leaf, Tensor) and leaf.dim() == 2
    }
    seen.keep(list(sightings.values()))
    return {at: one.possible for at, one in sightings.items()}


def _without_the_last(voxels: TensorVoxels) -> TensorVoxels:
    x, last = voxels.tensor, len(voxels) - 1
    coords = Coordinates(
        x.indices[:last].contiguous(), spatial_shape=x.spatial_shape, batch_size=x.batch_size, stride=x.stride
    )
    row_of = voxels.point_to_voxel
    return TensorVoxels(SparseTensor(coords, x.features[:last].detach()), torch.where(row_of == last, -1, row_of))
