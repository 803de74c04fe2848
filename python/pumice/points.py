"""Provides points in metres, read from files or simulated, and the voxels that they fall into. Works with NumPy
alone."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from . import _C
from ._checks import box, cell_size, kind_of, real_array, warn_of_columns, warn_of_no_voxels, whole_number

if TYPE_CHECKING:
    from torch import Tensor

    from .voxels import TensorVoxels


@dataclasses.dataclass
class PointCloud:
    """One scan of a sensor. Columns that it does not have are None.

    Args:
        positions: float32 [P, 3], metres.
        intensity: float32 [P].
        labels: int32 [P], as the scan's file numbers classes.
        time: float32 [P], seconds before the last sweep.
        ring: int32 [P], the beam.
    Raises:
        UserError: for arrays of other shapes.
    Example:
        >>> scan = pumice.simulate(seed=1, beams=32)
        >>> scan.positions.shape == (len(scan), 3), scan.labels.dtype
        (True, dtype('int32'))
    """

    positions: np.ndarray  # float32 [P, 3], metres
    intensity: np.ndarray | None = None  # float32 [P]
    labels: np.ndarray | None = None  # int32 [P]
    time: np.ndarray | None = None  # float32 [P], seconds before the last sweep
    ring: np.ndarray | None = None  # int32 [P]

    def __post_init__(self) -> None:
        check_columns("PointCloud", self)

    def __len__(self) -> int:
        return len(self.positions)

    def features(self) -> np.ndarray:
        """float32 [P, 4]: x, y, z, intensity (0 where there is none)."""
        intensity = self.intensity
        if intensity is None:
            intensity = np.zeros(len(self), dtype=np.float32)
        return np.concatenate([self.positions, intensity[:, None]], axis=1)


def check_columns(name: str, cloud: PointCloud) -> None:
    """Raises UserError, naming the column, unless the columns of `cloud` are NumPy arrays that fit each other."""
    for field in dataclasses.fields(cloud):
        value = getattr(cloud, field.name)
        if value is None and field.name != "positions":
            continue
        if not isinstance(value, np.ndarray):
            raise _C.UserError(
                f"{name}.{field.name} is {kind_of(value)}: give a NumPy array, as np.asarray() does"
            )
        points = cloud.positions.shape[:1]
        wanted = (*points, 3) if field.name == "positions" else points
        if value.shape != wanted:
            shape = "[P, 3]" if field.name == "positions" else f"[P], here {list(points)}"
            raise _C.UserError(f"{name}.{field.name} has shape {value.shape}: give {shape}")


@dataclasses.dataclass
class Voxels:
    """Occupied cells, one row each.

    Args:
        coordinates: int32 [N, 4], batch (0), x, y, z.
        features: float32 [N, C].
        point_to_voxel: int64 [P], row of each point's voxel, -1 out of range.
    Example:
        >>> voxels = pumice.voxelize(np.array([[0.1, 0.2, 0.3], [1.5, 0.2, 0.3]]), size=1.0)
        >>> voxels.coordinates.tolist()
        [[0, 0, 0, 0], [0, 1, 0, 0]]
    """

    coordinates: np.ndarray  # int32 [N, 4]: batch (0), x, y, z
    features: np.ndarray  # float32 [N, C]
    point_to_voxel: np.ndarray  # int64 [P]: row of each point's voxel, -1 out of range

    def __len__(self) -> int:
        return len(self.coordinates)

    def __getattr__(self, name: str) -> NoReturn:
        remedy = ""
        if name in ("tensor", "at_points"):
            remedy = ", since they are arrays: pumice.voxelize(torch.from_numpy(points), size=…) makes TensorVoxels"
        raise AttributeError(f"Voxels have no {name!r}{remedy}")


def read_points(path: str | os.PathLike[str], layout: str = "") -> PointCloud:
    """Reads .bin, .pcd.bin, .pcd, .ply, .npy or .npz, by name.

    Args:
        path: of the file.
        layout: columns of a raw file whose name does not tell, as in "f32x5".
    Returns:
        A `PointCloud`.
    Raises:
        UserError: for a file that is not what its name says, in a sentence.
    Waits:
        Never.
    Example:
        >>> np.save("scan.npy", np.zeros((5, 4), np.float32))
        >>> len(pumice.read_points("scan.npy"))
        5
    """
    return PointCloud(**_C.read_points(path, layout))


def read_labels(path: str | os.PathLike[str]) -> np.ndarray:
    """The class of every point of a SemanticKITTI .label file.

    Args:
        path: of the file.
    Returns:
        int32 [P], the lower 16 bits of each number; the upper ones name instances.
    Raises:
        UserError: for a file that cannot be read, or has a part of a number at its end.
    Waits:
        Never.
    Example:
        >>> np.array([40, 10], np.uint32).tofile("scan.label")
        >>> pumice.read_labels("scan.label").tolist()
        [40, 10]
    """
    return _C.read_labels(path)


def simulate(seed: int = 0, beams: int | None = None, sweeps: int = 1, sensor: str | None = None) -> PointCloud:
    """A LiDAR scan of a made-up street with labels; the same bits for the same seed.

    Args:
        seed: from 0 to 2^64 - 1, which street.
        beams: of the sensor, one above the other: 64, the default, or 32.
        sweeps: rounds of the sensor that are put together.
        sensor: instead of `beams`: "beams64", "beams32", or "waymo64", which has 64 beams from +2.4° to -17.6° and 2650
            columns.
    Returns:
        A `PointCloud`.
    Raises:
        UserError: for numbers out of range.
    Waits:
        Never.
    Example:
        >>> pumice.simulate(seed=1, beams=32).features().shape[1]
        4
    """
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    if beams is not None and sensor is not None:
        raise _C.UserError(f"beams = {beams!r} and sensor = {sensor!r}: give one of them")
    if sensor is None:
        beams = 64 if beams is None else whole_number("beams", beams, 0)
        if beams not in (32, 64):
            raise _C.UserError(f"beams = {beams}: there are sensors of 64 and 32")
        sensor = f"beams{beams}"
    return PointCloud(**_C.simulate(seed, sensor, sweeps))


@overload
def voxelize(
    points: np.ndarray,
    features: np.ndarray | None = None,
    *,
    size: float | Sequence[float],
    range: Sequence[float] | None = None,
    reduction: str = "mean",
) -> Voxels: ...


@overload
def voxelize(
    points: Tensor,
    features: Tensor | None = None,
    *,
    size: float | Sequence[float],
    range: Sequence[float] | None = None,
    reduction: str = "mean",
    batch: Tensor | None = None,
    batch_size: int | None = None,
    spatial_shape: Sequence[int] | None = None,
) -> TensorVoxels: ...


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
    """Points into cells, and their features reduced. Cells are found in float32.

    Args:
        points: [P, 3 + more], x, y, z first, in metres; an array of NumPy or a tensor of PyTorch.
        features: [P, C]; default: all columns of the points.
        size: of a cell, metres, one number or one each for x, y and z.
        range: x0, y0, z0, x1, y1, z1; points outside are left out, and cell 0 begins at its low corner.
        reduction: "mean", "first", "max" or "sum" of the points in a cell.
        batch: of tensors, the batch item of each point, integers [P] in any order; default: all 0.
        batch_size: of tensors, the number of batch items, 1 or more; default: the largest item and one.
        spatial_shape: of tensors, cells an axis; points whose cell is outside are left out.
    Returns:
        `Voxels` of arrays; of tensors `TensorVoxels`, made where the tensors are, with gradients to the
        features.
    Raises:
        UserError: for shapes, sizes and numbers that do not fit, by name. A warning, once, where no point is inside.
    Waits:
        On a GPU for how many voxels there are; without `range` and `spatial_shape` once more for the extent
        of the points, and without `batch_size` for the largest item.
    Example:
        >>> scan = pumice.simulate(seed=1, beams=32)
        >>> voxels = pumice.voxelize(scan.positions, scan.features(), size=0.2)
        >>> voxels.coordinates.shape == (len(voxels), 4)
        True
    """
    sizes = cell_size("size", size)
    bounds = box("range", range)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(points, torch.Tensor):
        from .voxels import voxelize_tensor

        return voxelize_tensor(
            points, features, sizes, bounds, reduction, batch, batch_size, spatial_shape
        )
    if not (batch is None and batch_size is None and spatial_shape is None):
        raise _C.UserError("batch, batch_size and spatial_shape are for points that are tensors of PyTorch")
    if isinstance(points, PointCloud):
        raise _C.UserError(
            "points are a PointCloud: give its columns, pumice.voxelize(scan.positions, scan.features(), size=…)"
        )
    if isinstance(points, (str, os.PathLike)):
        raise _C.UserError(
            f"points are {kind_of(points)}, {os.fspath(points)!r}: read the file, scan = pumice.read_points(path), and give "
            "scan.positions, scan.features()"
        )
    given = _matrix(points, "points")
    warn_of_columns(given.shape)
    values = given if features is None else _matrix(features, "features")
    positions = np.ascontiguousarray(given[:, :3])
    voxels = Voxels(**_C.voxelize(positions, values, sizes, bounds, reduction))
    warn_of_no_voxels(len(given), len(voxels), bounds)
    return voxels


def _matrix(values: Any, name: str) -> np.ndarray:
    matrix = np.ascontiguousarray(real_array(name, values), dtype=np.float32)
    if matrix.ndim != 2:
        raise _C.UserError(f"{name} have shape {matrix.shape}: give [points, columns]")
    return matrix
