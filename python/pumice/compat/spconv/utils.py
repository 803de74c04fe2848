"""`spconv.utils`: voxels of points that cumm.tensorview holds."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import torch

from .cppconstants import CPU_ONLY_BUILD  # noqa: F401  (spconv has it here)
from .cumm.tensorview import Tensor, from_numpy
from .voxels import Grid, voxelize

nullcontext = contextlib.nullcontext

Points = Union[Tensor, np.ndarray]


class _Point2Voxel:
    """Points [N, C] to voxels [V, P, C], indices int32 [V, D] and points in each int32 [V]. Sizes
    and ranges are given as x, y, z; indices come back as z, y, x."""

    _axes: int

    def __init__(
        self,
        vsize_xyz: Sequence[float],
        coors_range_xyz: Sequence[float],
        num_point_features: int,
        max_num_voxels: int,
        max_num_points_per_voxel: int,
    ) -> None:
        self._grid = Grid([float(v) for v in vsize_xyz], [float(v) for v in coors_range_xyz])
        self._most = (max_num_voxels, max_num_points_per_voxel)
        self.num_point_features = num_point_features
        self.grid_size = list(reversed(self._grid.cells.tolist()))

    def point_to_voxel(self, pc: Points, clear_voxels: bool = True) -> tuple[Tensor, ...]:
        return self._run(pc, False)[:3]

    def point_to_voxel_empty_mean(
        self, pc: Points, clear_voxels: bool = True
    ) -> tuple[Tensor, ...]:
        return self._run(pc, True)[:3]

    def _run(self, pc: Any, empty_mean: bool) -> tuple[Tensor, ...]:
        array = pc.numpy_view() if isinstance(pc, Tensor) else np.asarray(pc)
        points = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        found = voxelize(points, self._grid, *self._most, empty_mean)
        return tuple(from_numpy(value.numpy()) for value in found)


def _named(name: str) -> type:
    return type(name, (_Point2Voxel,), {"__module__": __name__, "__doc__": _Point2Voxel.__doc__})


Point2VoxelCPU1d, Point2VoxelCPU2d, Point2VoxelCPU3d, Point2VoxelCPU4d = (
    _named(f"Point2VoxelCPU{d}d") for d in range(1, 5)
)
# cumm's arrays lie on the host here; PointToVoxel of spconv.pytorch.utils takes tensors on a GPU.
Point2VoxelGPU1d, Point2VoxelGPU2d, Point2VoxelGPU3d, Point2VoxelGPU4d = (
    _named(f"Point2VoxelGPU{d}d") for d in range(1, 5)
)


def __getattr__(name: str) -> Any:
    # Code tries the names of spconv 1 first; that they are not there says that this is 2.
    if name in ("rbbox_iou", "rbbox_intersection", "non_max_suppression_cpu",
                "rotate_non_max_suppression_cpu"):  # fmt: skip
        raise AttributeError(f"spconv.utils.{name} works on boxes, which pumice.compat has not")
    raise AttributeError(f"module 'spconv.utils' (pumice.compat.spconv) has no {name!r}")
