"""Points in metres, from files or simulated, and the voxels they fall into. Works with NumPy alone."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from . import _C
from ._checks import whole_number

if TYPE_CHECKING:
    from torch import Tensor

    from .voxels import TensorVoxels


@dataclasses.dataclass
class PointCloud:
    """What a sensor saw. What a scan does not have is None."""

    positions: np.ndarray  # float32 [P, 3], metres
    intensity: np.ndarray | None  # float32 [P]
    labels: np.ndarray | None  # int32 [P]
    time: np.ndarray | None  # float32 [P], seconds before the last sweep
    ring: np.ndarray | None  # int32 [P]

    def __len__(self) -> int:
        return len(self.positions)

    def features(self) -> np.ndarray:
        """float32 [P, 4]: x, y, z, intensity (0 where there is none)."""
        intensity = self.intensity
        if intensity is None:
            intensity = np.zeros(len(self), dtype=np.float32)
        return np.concatenate([self.positions, intensity[:, None]], axis=1)


@dataclasses.dataclass
class Voxels:
    """Occupied cells, one row each."""

    coordinates: np.ndarray  # int32 [N, 4]: batch (0), x, y, z
    features: np.ndarray  # float32 [N, C]
    point_to_voxel: np.ndarray  # int64 [P]: row of each point's voxel, -1 out of range

    def __len__(self) -> int:
        return len(self.coordinates)


def read_points(path: str | os.PathLike[str], layout: str = "") -> PointCloud:
    """Reads .bin, .pcd.bin, .pcd, .ply, .npy or .npz, by name.

    `layout`: columns of a raw file whose name does not tell, as in "f32x5".
    """
    return PointCloud(**_C.read_points(os.fspath(path), layout))


def read_labels(path: str | os.PathLike[str]) -> np.ndarray:
    """The class of every point of a SemanticKITTI .label file: int32 [P]."""
    return _C.read_labels(os.fspath(path))


def simulate(seed: int = 0, beams: int = 64, sweeps: int = 1) -> PointCloud:
    """A LiDAR scan of a made-up street with labels; the same bits for the same seed."""
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    return PointCloud(**_C.simulate(seed, beams, sweeps))


def voxelize(
    points: np.ndarray | Tensor,
    features: np.ndarray | Tensor | None = None,
    *,
    size: float | Sequence[float],
    range: Sequence[float] | None = None,
    reduction: str = "mean",
    batch: Tensor | None = None,
    batch_size: int | None = None,
    spatial_shape: Sequence[int] | None = None,
) -> Voxels | TensorVoxels:
    """Points [P, 3 + more], x, y, z first, into cells of `size` metres; features [P, C] (default: all
    columns of the points) reduced.

    `range`: x0, y0, z0, x1, y1, z1; points outside are left out, and cell 0 begins at its low
    corner. `reduction`: "mean", "first", "max" or "sum". Cells are found in float32.

    Of tensors of PyTorch it gives `TensorVoxels`, made where the tensors are, and the features have
    gradients. There `batch` is the batch item of each point, integers [P] in any order, and points
    whose cell is outside `spatial_shape` are left out too. On a GPU it waits for how many voxels
    there are; without `range` and `spatial_shape` once more for the extent of the points, and
    without `batch_size` for the largest item.
    """
    # NumPy is asked last: in a graph it is not there to be asked.
    one = isinstance(size, (int, float)) or (
        not isinstance(size, (list, tuple)) and np.ndim(size) == 0
    )
    sizes = [float(size)] * 3 if one else [float(value) for value in size]
    if len(sizes) != 3:
        raise _C.UserError(f"size has {len(sizes)} numbers: give one, or one each for x, y and z")
    bounds = None if range is None else [float(value) for value in range]
    if bounds is not None and len(bounds) != 6:
        raise _C.UserError(f"range has {len(bounds)} numbers: give x0, y0, z0, x1, y1, z1")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(points, torch.Tensor):
        from .voxels import voxelize_tensor

        return voxelize_tensor(
            points, features, sizes, bounds, reduction, batch, batch_size, spatial_shape
        )
    if not (batch is None and batch_size is None and spatial_shape is None):
        raise _C.UserError("batch, batch_size and spatial_shape are for tensors of PyTorch")
    points = _matrix(points, "points")
    features = points if features is None else _matrix(features, "features")
    positions = np.ascontiguousarray(points[:, :3])
    return Voxels(**_C.voxelize(positions, features, sizes, bounds, reduction))


def _matrix(values: np.ndarray, name: str) -> np.ndarray:
    matrix = np.ascontiguousarray(values, dtype=np.float32)
    if matrix.ndim != 2:
        raise _C.UserError(f"{name} have shape {matrix.shape}: give [points, columns]")
    return matrix
