"""Points into voxels, and results of voxels back to points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import torch
from torch import Tensor

from .... import _C
from ...._checks import kind_of, shown
from ...._tensors import as_device
from ..voxels import Grid, voxelize


class PointToVoxel:
    """Sizes and ranges are given as x, y, z; indices come back as z, y, x. Voxels are in the order
    of their first points, on a GPU too (where spconv's order differs from run to run)."""

    def __init__(
        self,
        vsize_xyz: Sequence[float],
        coors_range_xyz: Sequence[float],
        num_point_features: int,
        max_num_voxels: int,
        max_num_points_per_voxel: int,
        device: torch.device | str = "cpu",
    ) -> None:
        if not hasattr(vsize_xyz, "__len__"):
            raise _C.UserError(f"vsize_xyz {shown(vsize_xyz)}: give a size for each axis, as [0.1, 0.1, 0.2]")
        self.ndim = len(vsize_xyz)
        self.device = as_device(device)
        self.num_point_features = num_point_features
        self.max_num_voxels = max_num_voxels
        self.max_num_points_per_voxel = max_num_points_per_voxel
        self._grid = Grid(vsize_xyz, coors_range_xyz)
        self.vsize = list(reversed(self._grid.size.tolist()))
        self.grid_size = list(reversed(self._grid.cells.tolist()))
        self.coors_range = [
            *reversed(self._grid.low.tolist()),
            *reversed([float(value) for value in coors_range_xyz[self.ndim :]]),
        ]

    def __call__(
        self, pc: Tensor, clear_voxels: bool = True, empty_mean: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """pc [N, C] to voxels [V, P, C], indices int32 [V, D], points in each int32 [V]."""
        return self.generate_voxel_with_id(pc, clear_voxels, empty_mean)[:3]

    def generate_voxel_with_id(
        self, pc: Tensor, clear_voxels: bool = True, empty_mean: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The same, and the voxel of every point: int64 [N], -1 where it has none."""
        if not isinstance(pc, Tensor):
            raise _C.UserError(f"pc is {kind_of(pc)}: give a tensor [points, C], as torch.from_numpy(pc)")
        if pc.device.type != self.device.type:
            raise _C.UserError(f"points are on {pc.device}, and PointToVoxel on {self.device}")
        if pc.dim() != 2 or pc.shape[1] != self.num_point_features:
            raise _C.UserError(
                f"points have shape {tuple(pc.shape)}: give [points, {self.num_point_features}]"
            )
        with torch.no_grad():
            return tuple(
                voxelize(
                    pc, self._grid, self.max_num_voxels, self.max_num_points_per_voxel, empty_mean
                )
            )


def gather_features_by_pc_voxel_id(
    seg_res_features: Tensor, pc_voxel_id: Tensor, invalid_value: Union[int, float] = 0
) -> Tensor:
    """What was found for voxels [V, …], for their points [N, …]; `invalid_value` where one has no
    voxel."""
    of_point = pc_voxel_id.to(seg_res_features.device)
    shape = (len(of_point), *seg_res_features.shape[1:])
    result = seg_res_features.new_full(shape, invalid_value)
    valid = (of_point != -1).nonzero()[:, 0]
    return result.index_copy(0, valid, seg_res_features[of_point[valid]])
