"""Makes voxels from points that are tensors of PyTorch, on the device where they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NoReturn

import torch
from torch import Tensor

from . import _C, ops
from ._checks import warn_of_columns, warn_of_no_voxels
from ._sites import axis_numbers
from ._tensors import INTEGERS, check_tensor
from .coords import Coordinates
from .ops import traced
from .ops.library.sites import find_voxels
from .tensor import SparseTensor, of_tensor

_MOST_ITEMS = 2**31 - 1


@dataclasses.dataclass
class TensorVoxels:
    """Occupied cells, one row each, and where each point went.

    Args:
        tensor: x, y, z; features differentiable in those of the points.
        point_to_voxel: int64 [P], row of each point's voxel, -1 for one that is left out.
    Example:
        >>> voxels = pumice.voxelize(torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.2, 0.3]]), size=1.0)
        >>> voxels.tensor.indices
        tensor([[0, 0, 0, 0]], dtype=torch.int32)
        >>> voxels.at_points(voxels.features).shape
        torch.Size([2, 3])
    """

    tensor: SparseTensor  # x, y, z; features differentiable in those of the points
    point_to_voxel: Tensor  # int64 [P]: row of each point's voxel, -1 for one that is left out

    @property
    def coordinates(self) -> Tensor:
        """int32 [N, 4]: batch, x, y, z."""
        return self.tensor.indices

    @property
    def features(self) -> Tensor:
        """[N, C]"""
        return self.tensor.features

    def __len__(self) -> int:
        return len(self.tensor)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"TensorVoxels have no {name!r}{of_tensor(name, 'voxels.tensor')}")

    def at_points(self, features: Tensor | SparseTensor) -> Tensor:
        """For each point the features of its voxel, as a network made them. `ops.interpolate` mixes the features of
        the voxels around a point.

        Args:
            features: [N, C'], or the sparse tensor that has them.
        Returns:
            [P, C'], 0 for points that were left out.
        Raises:
            UserError: for another number of rows.
        Waits:
            Never.
        """
        if isinstance(features, SparseTensor):
            features = features.features
        check_tensor("features", features)
        if features.dim() != 2:
            raise _C.UserError(f"features have shape {tuple(features.shape)}: give [voxels, channels]")
        if not torch.compiler.is_compiling() and features.shape[0] != len(self):
            raise _C.UserError(
                f"features have {features.shape[0]} rows, and there are {len(self)} voxels: give what a network made of "
                "voxels.tensor"
            )
        return ops.take_rows(features, self.point_to_voxel)


def voxelize_tensor(
    points: Tensor,
    features: Tensor | None,
    size: Sequence[float],
    range: Sequence[float] | None,
    reduction: str,
    batch: Tensor | None,
    batch_size: int | None,
    spatial_shape: Sequence[int] | None,
) -> TensorVoxels:
    """See `pumice.voxelize`."""
    _check(points, features, batch)
    positions = points.detach().float().contiguous()
    items = None if batch is None else _items(batch)
    shape = axis_numbers("spatial_shape", spatial_shape, 3)
    call = (positions, items, size, range, shape, batch_size)
    if torch.compiler.is_compiling():
        coords, row_of = traced.voxel_sites(*call)
    else:
        sites, row_of = find_voxels(*call)
        coords = Coordinates._of(sites).traceable()
        warn_of_no_voxels(len(points), len(coords), range)
    reduced = ops.reduce_rows(points if features is None else features, row_of, coords.rows, reduction)
    return TensorVoxels(SparseTensor._of(coords, reduced), row_of.long())


def _items(batch: Tensor) -> Tensor:
    """`batch` as int32 [P]. Numbers beyond int32 become the nearest one, which is no valid item, so that the engine
    raises the error and nothing waits for the device here."""
    if batch.dtype == torch.int64:
        batch = batch.clamp(-1, _MOST_ITEMS)
    return batch.to(torch.int32).contiguous()


def _check(points: Tensor, features: Tensor | None, batch: Tensor | None) -> None:
    check_tensor("points", points)
    if points.dim() != 2 or points.shape[1] < 3 or not points.is_floating_point():
        raise _C.UserError(
            f"points have shape {tuple(points.shape)} and are {points.dtype}: give floating "
            "[points, 3 or more], x, y and z first"
        )
    if not torch.compiler.is_compiling():
        warn_of_columns(points.shape)
    for name, values in (("features", features), ("batch", batch)):
        if values is None:
            continue
        check_tensor(name, values)
        if values.device != points.device:
            raise _C.UserError(
                f"{name} are on {values.device} and points on {points.device}: .to() brings one "
                "to the other"
            )
        if values.dim() == 0:
            raise _C.UserError(f"{name} are a single number: give a row for each of {len(points)} points")
        if values.shape[0] != points.shape[0]:
            raise _C.UserError(f"{name} have {len(values)} rows: give one for each of {len(points)} points")
    if features is not None and features.dim() != 2:
        raise _C.UserError(f"features have shape {tuple(features.shape)}: give [points, channels]")
    if batch is not None and (batch.dim() != 1 or batch.dtype not in INTEGERS):
        raise _C.UserError(
            f"batch has shape {tuple(batch.shape)} and is {batch.dtype}: give integers [points]"
        )


# torch.load reads what torch.save wrote without `weights_only=False`.
torch.serialization.add_safe_globals([TensorVoxels])
