"""Makes voxels from points that are tensors of PyTorch, on the device where they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from . import _C, ops
from ._checks import box, cell_size, warn_of_columns, warn_of_no_voxels
from ._sites import axis_numbers
from ._tensors import INTEGERS, check_tensor
from .coords import Coordinates
from .ops import traced
from .ops.library.sites import find_voxels
from .tensor import SparseTensor, of_tensor

_MOST_ITEMS = 2**31 - 1
REDUCTIONS = ("mean", "first", "max", "sum")


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


@dataclasses.dataclass(frozen=True)
class Voxelizer:
    """How points become voxels, as `pumice.voxelize` is told: for `pumice.compile`, which makes the voxels inside its
    graphs, and to be called.

    Args:
        size: of a cell, metres, one number or one each for x, y and z.
        range: x0, y0, z0, x1, y1, z1; points outside are left out, and cell 0 begins at its low corner.
        reduction: "mean", "first", "max" or "sum" of the points in a cell.
        spatial_shape: cells an axis; points whose cell is outside are left out.
        at_points: of compiled models: what the model returns on the voxels comes back for each point, [P, C'], 0
            for points that were left out.
    Raises:
        UserError: for numbers out of range, by name.
    Example:
        >>> voxelizer = pumice.Voxelizer(size=0.5, range=[-50, -50, -4, 50, 50, 2])
        >>> len(voxelizer(torch.tensor([[0.1, 0.2, 0.3], [0.2, 0.2, 0.3], [99.0, 0.0, 0.0]])))
        1
    """

    size: Any
    range: Any = None
    reduction: str = "mean"
    spatial_shape: Any = None
    at_points: bool = False

    def __post_init__(self) -> None:
        sizes, bounds = cell_size("size", self.size), box("range", self.range)
        shape = axis_numbers("spatial_shape", self.spatial_shape, 3)
        if self.reduction not in REDUCTIONS:
            raise _C.UserError(f"reduction = {self.reduction!r}: give one of {', '.join(REDUCTIONS)}")
        for name, value in (
            ("size", tuple(sizes)),
            ("range", None if bounds is None else tuple(bounds)),
            ("spatial_shape", None if shape is None else tuple(shape)),
            ("at_points", bool(self.at_points)),
        ):
            object.__setattr__(self, name, value)
        # Of no points: the engine says what is wrong with sizes, ranges and shapes.
        find_voxels(torch.zeros(0, 3), None, self.size, self.range, shape, 1)

    def of(self, points: Tensor, features: Tensor | None, batch: Tensor | None, batch_size: int | None) -> TensorVoxels:
        """The voxels of points, as `pumice.voxelize` makes them."""
        return voxelize_tensor(
            points, features, self.size, self.range, self.reduction, batch, batch_size, self.spatial_shape
        )

    def __call__(
        self,
        points: Tensor,
        features: Tensor | None = None,
        *,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> TensorVoxels:
        """`pumice.voxelize` of these points, with its waits."""
        return self.of(points, features, batch, batch_size)


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
    check_points(points, features, batch)
    positions = points.detach().float().contiguous()
    items = None if batch is None else int_items(batch)
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


def int_items(batch: Tensor) -> Tensor:
    """`batch` as int32 [P]. Numbers beyond int32 become the nearest one, which is no valid item, so that the engine
    raises the error and nothing waits for the device here."""
    if batch.dtype == torch.int64:
        batch = batch.clamp(-1, _MOST_ITEMS)
    return batch.to(torch.int32).contiguous()


def check_points(points: Tensor, features: Tensor | None, batch: Tensor | None) -> None:
    """Raises UserError, naming the argument, for what does not fit each other."""
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
        raise _C.UserError(f"features have shape {tuple(features.shape)} and must be 2-D: give [points, channels]")
    if batch is not None and (batch.dim() != 1 or batch.dtype not in INTEGERS):
        raise _C.UserError(
            f"batch has shape {tuple(batch.shape)} and is {batch.dtype}: give integers [points]"
        )


# torch.load reads what torch.save wrote without `weights_only=False`.
torch.serialization.add_safe_globals([TensorVoxels])
