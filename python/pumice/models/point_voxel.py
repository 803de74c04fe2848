"""Carries features between points and voxels, at every level of a network."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .. import _C, ops
from .._checks import cell_size
from .._tensors import check_tensor
from ..coords import Coordinates
from ..points import PointCloud
from ..tensor import SparseTensor


class PointTensor:
    """Features of points that need not be distinct, and where the points are among the voxels. Tensors made with
    `replace` share what is known of the way to the voxels of each level.

    Args:
        positions: float32 [P, 4], the batch index, then x, y, z in cells of the finest level: a point in cell c is
            between c and c + 1.
        features: [P, C], on the same device.
    Raises:
        UserError: for other shapes, types and devices.
    Waits:
        Never.
    Example:
        >>> points = models.PointTensor(torch.tensor([[0, 1.5, 2.5, 3.5]]), torch.ones(1, 4))
        >>> points.voxels().indices
        tensor([[0, 1, 2, 3]], dtype=torch.int32)
    """

    __slots__ = ("_levels", "features", "positions")

    def __init__(self, positions: Tensor, features: Tensor) -> None:
        """The arguments are those of the class."""
        check_tensor("positions", positions)
        check_tensor("features", features)
        if positions.dim() != 2 or positions.shape[1] != 4 or positions.dtype != torch.float32:
            raise _C.UserError(
                f"positions have shape {tuple(positions.shape)} and are {positions.dtype}: give "
                "float32 [points, 4], the batch index first"
            )
        if features.dim() != 2 or features.shape[0] != positions.shape[0]:
            raise _C.UserError(
                f"features have shape {tuple(features.shape)}: give [{len(positions)}, channels], "
                "a row for each point"
            )
        if features.device != positions.device:
            raise _C.UserError(
                f"positions are on {positions.device} and features on {features.device}: .to() "
                "brings one to the other"
            )
        self.positions = positions.detach()
        self.features = features
        self._levels: list[_Level] = []

    @classmethod
    def of(
        cls,
        points: Tensor,
        features: Tensor | None = None,
        *,
        size: float | Sequence[float],
        origin: Sequence[float] = (0.0, 0.0, 0.0),
        batch: Tensor | None = None,
    ) -> PointTensor:
        """Points [P, 3 or more] in metres, x, y, z first, among cells of `size` metres of which cell 0
        begins at `origin`. features: [P, C], by default all columns. batch: integers [P], by default
        all 0."""
        if isinstance(points, PointCloud):
            raise _C.UserError(
                "points are a PointCloud: give its columns, PointTensor.of(torch.from_numpy(scan.features()), size=…)"
            )
        check_tensor("points", points)
        if points.dim() != 2 or points.shape[1] < 3:
            raise _C.UserError(f"points have shape {tuple(points.shape)}: give [points, 3 or more]")
        sizes = cell_size("size", size)
        if not all(0 < side < math.inf for side in sizes):
            raise _C.UserError(f"size = {size}: give metres above 0, one number or one each for x, y, z")
        positions = points.new_zeros((points.shape[0], 4), dtype=torch.float32)
        if batch is not None:
            check_tensor("batch", batch)
            if batch.shape != points.shape[:1]:
                raise _C.UserError(
                    f"batch has shape {tuple(batch.shape)}: give an item for each of {len(points)} points"
                )
            positions[:, 0] = batch
        for axis, (side, low) in enumerate(zip(sizes, origin)):
            positions[:, axis + 1] = (points[:, axis].detach() - low) / side
        return cls(positions, points if features is None else features)

    @classmethod
    def at_sites(cls, x: SparseTensor) -> PointTensor:
        """A point at each site, with its features."""
        return cls(x.indices.float(), x.features)

    def replace(self, features: Tensor) -> PointTensor:
        """Other features on the same points."""
        result = PointTensor(self.positions, features)
        result._levels = self._levels
        return result

    def voxels(self, batch_size: int | None = None) -> SparseTensor:
        """The cells that points are in, with the mean of their features."""
        from ..points import voxelize

        found = voxelize(
            self.positions[:, 1:],
            self.features,
            size=1.0,
            batch=self.positions[:, 0].int(),
            batch_size=batch_size,
        )
        level = _Level(found.tensor.coords, self.positions)
        level.rows = found.point_to_voxel
        self._levels.append(level)
        return found.tensor

    def to_voxels(self, coords: Coordinates) -> SparseTensor:
        """On the sites of `coords`, at any stride: the mean of the points in each, 0 where there is
        none. Points whose cell is not there are left out."""
        rows = self._level(coords).row_of_points()
        return SparseTensor._of(coords, ops.reduce_rows(self.features, rows, coords.rows, "mean"))

    def from_voxels(self, x: SparseTensor) -> Tensor:
        """[P, C] interpolated between the up to 8 voxels of x around each point, whose weights sum
        to 1; the value of a voxel is at its lower corner."""
        return ops.interpolate(x.features, self._level(x.coords).corners())

    def _level(self, coords: Coordinates) -> _Level:
        for level in self._levels:
            if level.coords.is_same(coords):
                return level
        self._levels.append(_Level(coords, self.positions))
        return self._levels[-1]

    def __len__(self) -> int:
        return len(self.positions)

    def __getstate__(self) -> tuple[Tensor, Tensor]:
        return self.positions, self.features

    def __setstate__(self, state: tuple[Tensor, Tensor]) -> None:
        self.positions, self.features = state
        self._levels = []


class _Level:
    """The maps between points and the voxels of one stride, each made when it is first needed."""

    def __init__(self, coords: Coordinates, positions: Tensor) -> None:
        """The arguments are those of the class."""
        self.coords = coords
        self.positions = positions
        self.rows: Tensor | None = None
        self.map: ops.InterpolationMap | None = None

    def _scaled(self) -> Tensor:
        stride = self.coords.stride
        if all(step == 1 for step in stride):
            return self.positions
        scaled = self.positions.clone()
        for axis, step in enumerate(stride, start=1):
            scaled[:, axis] /= step
        return scaled

    def row_of_points(self) -> Tensor:
        if self.rows is None:
            cells = self._scaled().floor()
            self.rows = ops.interpolation_map(self.coords, cells, nearest=True).rows.flatten()
        return self.rows

    def corners(self) -> ops.InterpolationMap:
        if self.map is None:
            self.map = ops.interpolation_map(self.coords, self._scaled(), renormalize=True)
        return self.map


# torch.load reads what torch.save wrote without `weights_only=False`; the maps of each level are made again.
torch.serialization.add_safe_globals([PointTensor])
