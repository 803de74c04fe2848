"""One size of scans that are given as points: their voxels are made inside the graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import _C, ops
from .._sites import standing_on
from ..coords import Coordinates
from ..tensor import SparseTensor
from ..voxels import TensorVoxels
from .bucket import Bucket
from .outputs import SitesOfRun
from .points import Points
from .recorder import MARGIN, Recorder
from .sizes import STEP, TooManyVoxels
from .tails import without_numbers


class PointBucket(Bucket):
    """Static points [capacity + 1, …] and how many are in use; the voxels have room in proportion to what was learned of
    scans, and some more."""

    max_voxels: int | None = None  # the room for voxels, where it is given

    def __init__(self, recorder: Recorder, capacity: int, points: Points) -> None:
        super().__init__(recorder, capacity, points)  # type: ignore[arg-type]
        self._voxelizer = points.voxelizer
        self._point_room = capacity + 1  # of points: no sites have as many
        self._voxels = 0  # of room
        self._margin = MARGIN
        self._spoils = False  # voxels that are not in use

    def learn(self, coords: Coordinates, scan: Any) -> None:
        """Learns from what an eager pass asked of the maps of `coords`, the voxels of `scan`. Waits. Raises
        TooManyVoxels."""
        voxels, most = coords.rows, self.max_voxels
        if most is not None and voxels > most:
            raise TooManyVoxels(
                f"{voxels} voxels of {scan.rows} points, max_voxels = {most}: compile with room for them, or with "
                "fallback='eager'"
            )
        larger = MARGIN * self.capacity / max(scan.rows, 1)  # a scan that fills the room, than this one
        if most is not None:
            self._voxels = min(most, self.capacity)
        else:
            wanted = math.ceil(voxels * larger / STEP) * STEP
            self._voxels = max(self._voxels, min(max(wanted, STEP), self.capacity))
        # Plans scale what follows from the voxels by the room for these, which is in proportion no longer.
        self._margin = larger * max(voxels, 1) / self._voxels
        super().learn(coords, scan)

    def _learn(self, sites: _C.Sites) -> None:
        low, high = self._bounds()
        self.plan = self.recorder.learn(sites, self._voxels, low, high, self.plan, self._margin, self._point_room)

    def _bounds(self) -> tuple[list[int], list[int]]:
        if self._voxelizer.range is not None and self._seen is not None:
            return self._seen  # those of the range
        return super()._bounds()

    @property
    def row_rooms(self) -> list[int]:
        """Room for what goes with the rows of a call, by its sizes."""
        return [self._point_room]

    def _static(self) -> list[Tensor]:
        if self._count is None:
            return []
        shared = self._features is self._positions
        kept = [self._positions, None if shared else self._features, self._batch, self._count]
        return [tensor for tensor in kept if tensor is not None]

    def _fill(self, scan: Any) -> None:
        rows = scan.rows
        if self._count is None:
            features, positions = scan.features, scan.positions
            self._positions = positions.new_zeros((self._point_room, positions.shape[1]))
            self._features = (
                self._positions if scan.are_features else features.new_zeros((self._point_room, features.shape[1]))
            )
            self._batch = None if scan.batch is None else scan.batch.new_zeros(self._point_room)
            self._count = torch.zeros(1, dtype=torch.int64, device=features.device)
        self._positions[:rows].copy_(scan.positions, non_blocking=True)
        if self._features is not self._positions:
            self._features[:rows].copy_(scan.features, non_blocking=True)
        if self._batch is not None:
            self._batch[:rows].copy_(scan.batch, non_blocking=True)
        self._count.fill_(rows)

    def _spoil(self, rows: int) -> None:
        super()._spoil(rows)
        self._positions[rows:] = float("nan")
        if self._batch is not None:
            self._batch[rows:] = -1
        self._spoils = True

    def _spare(self) -> None:
        self._spoils = False

    def _begun(self) -> tuple[SitesOfRun, Callable[[], Any]]:
        """The sites of a run by the plan, and the run."""
        assert self.plan is not None and self._count is not None
        how = self._voxelizer
        sites, row_of = self.plan.make_of_points(self._positions, self._batch, self._count, how.size, how.range)
        coords = Coordinates._of(sites)
        features = ops.reduce_rows(self._features, row_of, sites.rows, how.reduction)
        made = SitesOfRun(coords, self.grid, self._point_room, self._count)
        if self._spoils:
            features = without_numbers(0)(features, made.rows_of(coords).count)
        voxels = TensorVoxels(SparseTensor._of(coords, features), row_of.long())

        def run() -> Any:
            with standing_on(coords):
                return self.recorder.call(voxels)

        return made, run
