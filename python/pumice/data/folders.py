"""Reads recorded datasets from the folders in which they are distributed. Scans and labels keep the numbers of
the dataset's files."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _C
from .._checks import check_file, check_path, whole_number
from ..points import PointCloud, read_labels, read_points
from .sweeps import MOST_SWEEPS, nuscenes_sweeps, together, waymo_sweeps

Folder = str | os.PathLike[str]

# Tables of nuScenes that say where a sensor stood at each sweep, and what is read of them.
_POSES = {
    "sample_data": ("token", "filename", "prev", "timestamp", "ego_pose_token", "calibrated_sensor_token"),
    "ego_pose": ("token", "translation", "rotation"),
    "calibrated_sensor": ("token", "translation", "rotation"),
}
# Of SemanticKITTI: what people train on, and measure on.
SEMANTIC_KITTI_TRAIN = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10)
SEMANTIC_KITTI_VALIDATION = (8,)


class _Files:
    """Scans that are files: `files` holds (points, labels or None)."""

    def __init__(self, files: Sequence[tuple[Path, Path | None]], looked_for: str, root: Folder) -> None:
        if not files:
            raise _C.UserError(f"there is no {looked_for}{_what_is_there(Path(root))}")
        self.files = list(files)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> PointCloud:
        path, labels = self.files[index]
        cloud = self.read(path)
        if labels is None:
            return cloud
        return _labelled(cloud, self.read_labels(labels), labels)

    def why_unlabelled(self, index: int) -> str:
        """Of a scan without labels: what they were looked for in."""
        raise NotImplementedError

    def read(self, path: Path) -> PointCloud:
        """The points of one file."""
        return read_points(path)

    def read_labels(self, path: Path) -> np.ndarray:
        """The labels of one file: int32 [P], as the file numbers them."""
        return read_labels(path)


class SemanticKitti(_Files):
    """`root`/sequences/08/velodyne/000000.bin, and labels/000000.label where they are. Label map: `SEMANTIC_KITTI`.

    Args:
        root: the folder of the dataset.
        sequences: their numbers; default: those people train on.
    Raises:
        UserError: where there is no such file.
    Example:
        >>> scans = data.SemanticKitti("kitti", sequences=[8])               # doctest: +SKIP
    """

    def __init__(self, root: Folder, sequences: Sequence[int] = SEMANTIC_KITTI_TRAIN) -> None:
        if isinstance(sequences, (int, str)):
            raise _C.UserError(f"sequences = {sequences!r}: give a list of numbers, as [8]")
        files = []
        for sequence in sequences:
            if isinstance(sequence, str):
                raise _C.UserError(f"sequences = [{sequence!r}, …]: give their numbers, as [8] for the folder 08")
            whole_number("sequences", sequence, 0)
            folder = _root(root) / "sequences" / f"{sequence:02d}"
            for path in sorted((folder / "velodyne").glob("*.bin")):
                files.append((path, _existing(folder / "labels" / f"{path.stem}.label")))
        looked_for = f"{Path(root) / 'sequences'}/NN/velodyne/*.bin for NN in {list(sequences)}"
        super().__init__(files, looked_for, root)

    def why_unlabelled(self, index: int) -> str:
        path, _ = self.files[index]
        return f"there is no {path.parents[1] / 'labels' / path.stem}.label"


class NuScenes(_Files):
    """Key frames: `root`/samples/LIDAR_TOP/*.pcd.bin, with the labels of nuScenes-lidarseg where
    `root`/`version`/lidarseg.json names them. Label map: `NUSCENES`. Intensities are 0 to 255 in its files, here 0
    to 1.

    Args:
        root: the folder of the dataset.
        version: the folder of its tables.
        sweeps: turns of the sensor in a scan, the key frame and those before it, brought into its frame by the poses
            of `root`/`version`; fewer where a scene begins. Their points have `time`, and only those of the key frame
            labels above 0.
    Raises:
        UserError: where there is no such file, and for tables that are none.
    Example:
        >>> scans = data.NuScenes("nuscenes", sweeps=10)                      # doctest: +SKIP
    """

    def __init__(self, root: Folder, version: str = "v1.0-trainval", sweeps: int = 1) -> None:
        root = _root(root)
        check_path("version", version)
        self.sweeps = whole_number("sweeps", sweeps, 1, MOST_SWEEPS)
        labels = _nuscenes_labels(root, version)
        found = sorted((root / "samples" / "LIDAR_TOP").glob("*.pcd.bin"))
        files: list[tuple[Path, Path | None]]
        if labels:
            files = [(path, labels[path.name]) for path in found if path.name in labels]
        else:
            files = [(path, None) for path in found]
        super().__init__(files, f"{root / 'samples' / 'LIDAR_TOP'}/*.pcd.bin", root)
        self._table = root / version / "lidarseg.json"
        if sweeps > 1:
            tables = {name: _table(root / version / f"{name}.json", *columns) for name, columns in _POSES.items()}
            self._before = nuscenes_sweeps(root, tables, [path.name for path, _ in self.files], sweeps)

    def __getitem__(self, index: int) -> PointCloud:
        cloud = super().__getitem__(index)
        if self.sweeps == 1:
            return cloud
        sweeps = self._before[self.files[index][0].name]
        return together([*(self.read(sweep.path) for sweep in sweeps[:-1]), cloud], sweeps)

    def why_unlabelled(self, index: int) -> str:
        return f"there is no {self._table}"

    def read(self, path: Path) -> PointCloud:
        """The points of one file, intensities from 0 to 1."""
        cloud = read_points(path)
        if cloud.intensity is None:
            return cloud
        return dataclasses.replace(cloud, intensity=cloud.intensity / np.float32(255))

    def read_labels(self, path: Path) -> np.ndarray:
        return np.fromfile(_regular(path), np.uint8).astype(np.int32)


class Waymo(_Files):
    """Frames converted to files, anywhere below `root`. Label map: `WAYMO`.

    NAME.npz: `points`, `coord` or `positions` [P, 3 or more: x, y, z, intensity], `strength` or `intensity` [P]
    where it is apart, `labels` or `segment` [P] or [P, 2] (instance, class). NAME.bin: float32 [P, 4], with
    NAME.label or NAME.npy for the labels. Intensities are brought below 1 by tanh, as Waymo's have no bound.

    Args:
        root: the folder of the files.
        frames: of a scan, a frame and those before it in its folder, by name, brought into its own frame; fewer where a
            folder begins. NAME.npz then has `pose` [4, 4], from the vehicle to the world, and may have `timestamp`
            in microseconds; without, ten frames are a second. Their points have `time`.
    Raises:
        UserError: where there is no such file.
    Example:
        >>> np.savez("frame.npz", points=np.zeros((5, 4)), labels=np.zeros(5, int))
        >>> len(data.Waymo(".")[0])
        5
    """

    def __init__(self, root: Folder, frames: int = 1) -> None:
        self.frames = whole_number("frames", frames, 1, MOST_SWEEPS)
        files: list[tuple[Path, Path | None]] = []
        root = _root(root)
        for path in sorted([*root.rglob("*.npz"), *root.rglob("*.bin")]):
            _check_waymo(path)
            files.append((path, next((p for p in self._beside(path) if p.exists()), None)))
        super().__init__(files, f".npz or .bin file below {root}", root)

    def __getitem__(self, index: int) -> PointCloud:
        if self.frames == 1:
            return super().__getitem__(index)
        last = range(len(self))[index]
        path = self.files[last][0]
        before = [i for i in range(max(0, last - self.frames + 1), last + 1) if self.files[i][0].parent == path.parent]
        sweeps = waymo_sweeps([self.files[i][0] for i in before])
        return together([super(Waymo, self).__getitem__(i) for i in before], sweeps)

    @staticmethod
    def _beside(path: Path) -> list[Path]:
        return [path.with_suffix(suffix) for suffix in (".label", ".npy")]

    def why_unlabelled(self, index: int) -> str:
        path, _ = self.files[index]
        if path.suffix == ".npz":
            return f"{path} has no labels or segment"
        return "there is neither {} nor {}".format(*self._beside(path))

    def read(self, path: Path) -> PointCloud:
        """The points of one file, intensities from 0 to 1."""
        cloud = read_points(path) if path.suffix == ".bin" else _read_npz(path)
        if cloud.intensity is None:
            return cloud
        return dataclasses.replace(cloud, intensity=np.tanh(cloud.intensity))

    def read_labels(self, path: Path) -> np.ndarray:
        if path.suffix == ".label":
            return read_labels(path)
        _regular(path)
        try:
            return _classes(np.load(path))
        except (ValueError, EOFError) as error:
            raise _C.UserError(f"{path} is no .npy file of labels: {error}") from error


def _what_is_there(root: Path) -> str:
    """Of a folder in which nothing was found: what to do instead."""
    if not root.is_dir():
        return f": {root} is no folder"
    for kind, inside in (("SemanticKitti", "sequences"), ("NuScenes", "samples/LIDAR_TOP")):
        if (root / inside).is_dir():
            return f": {root} has {inside}, which pumice.data.{kind} reads"
    for suffix in (".tfrecord", ".parquet"):
        if next(root.rglob(f"*{suffix}"), None) is not None:
            return f": {root} has {suffix} files, as Waymo publishes them; pumice.data.Waymo reads frames converted to .npz"
    return ""


def _check_waymo(path: Path) -> None:
    """Raises UserError for a file that another dataset has in such a place."""
    other = None
    if path.name.endswith(".pcd.bin") or path.parent.name == "lidarseg":
        other = "nuScenes: pumice.data.NuScenes reads its folder"
    elif path.parent.name == "velodyne":
        other = "KITTI: pumice.data.SemanticKitti reads the folder that has its sequences"
    if other is not None:
        raise _C.UserError(f"{path} is no frame of Waymo, but a file of {other}")


def _root(root: Any) -> Path:
    check_path("root", root)
    return Path(root)


def _nuscenes_labels(root: Path, version: str) -> dict[str, Path]:
    """Label files by the names of scan files; empty without labels."""
    tables = root / version
    if not (tables / "lidarseg.json").exists():
        return {}
    files = {r["sample_data_token"]: r["filename"] for r in _table(
        tables / "lidarseg.json", "sample_data_token", "filename")}
    return {
        Path(record["filename"]).name: root / files[record["token"]]
        for record in _table(tables / "sample_data.json", "token", "filename")
        if record["token"] in files
    }


def _table(path: Path, *columns: str) -> list[dict[str, Any]]:
    """The records of a table, each with `columns`."""
    if not path.exists():
        raise _C.UserError(f"there is no {path}, a table of nuScenes that this needs")
    _regular(path)
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise _C.UserError(f"{path} is no JSON: {error}") from error
    is_table = isinstance(records, list) and all(isinstance(record, dict) for record in records)
    for column in columns:
        if not is_table or not all(column in record for record in records):
            raise _C.UserError(f"{path} is no table of nuScenes: its records have no {column}")
    return records


def _read_npz(path: Path) -> PointCloud:
    try:
        _check_growth(path)
        with np.load(path) as arrays:
            points = _first(arrays, ("points", "coord", "positions"))
            intensity = _first(arrays, ("strength", "intensity"))
            labels = _first(arrays, ("labels", "segment"))
    except _C.UserError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _C.UserError(f"{path} is no .npz file of arrays: {error}") from error
    if points is None or points.ndim != 2 or points.shape[1] < 3:
        raise _C.UserError(f"{path} has no points, coord or positions of shape [P, 3 or more]")
    if intensity is None and points.shape[1] > 3:
        intensity = points[:, 3]
    cloud = PointCloud(
        positions=np.ascontiguousarray(points[:, :3], np.float32),
        intensity=None if intensity is None else intensity.reshape(-1).astype(np.float32),
        labels=None,
        time=None,
        ring=None,
    )
    return cloud if labels is None else _labelled(cloud, _classes(labels), path)


# The limits of `pumice.read_points`: any growth up to 256 MiB, a hundredfold beyond.
_ANY_GROWTH, _USUAL_GROWTH = 256 << 20, 100


def _check_growth(path: Path) -> None:
    with zipfile.ZipFile(_regular(path)) as archive:
        for member in archive.infolist():
            if member.file_size > max(_ANY_GROWTH, _USUAL_GROWTH * member.compress_size):
                raise _C.UserError(
                    f"{path}: member {_C.printable(member.filename)} would grow from "
                    f"{member.compress_size} to {member.file_size} bytes; beyond {_ANY_GROWTH} no more "
                    f"than {_USUAL_GROWTH}-fold is inflated: store it as .npy if it is no mistake"
                )


def _regular(path: Path) -> Path:
    """`path`, which is a file."""
    check_file(path)
    return path


def _first(arrays: np.lib.npyio.NpzFile, names: Sequence[str]) -> np.ndarray | None:
    return next((arrays[name] for name in names if name in arrays), None)


def _classes(labels: np.ndarray) -> np.ndarray:
    return (labels[:, -1] if labels.ndim == 2 else labels).astype(np.int32)


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def _labelled(cloud: PointCloud, labels: np.ndarray, path: Path) -> PointCloud:
    if len(labels) != len(cloud):
        raise _C.UserError(f"{path} has {len(labels)} labels for a scan of {len(cloud)} points")
    return dataclasses.replace(cloud, labels=labels)
