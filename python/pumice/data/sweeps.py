"""Brings sweeps of a moving sensor into the frame of the last of them, by the poses that datasets record."""

from __future__ import annotations

import dataclasses
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _C
from ..points import PointCloud

MOST_SWEEPS = 100
_WAYMO_TURN = 0.1  # seconds of a turn, where frames have no timestamps


@dataclasses.dataclass(frozen=True)
class Sweep:
    """One turn of a sensor: its file, where it stood, and when."""

    path: Path
    pose: np.ndarray  # float64 [4, 4]: from the frame of its points to one that all sweeps share
    seconds: float


def together(clouds: Sequence[PointCloud], sweeps: Sequence[Sweep]) -> PointCloud:
    """Sweeps as one cloud in the frame of the last, oldest first.

    Args:
        clouds: at least one, in the order of time.
        sweeps: one for each.
    Returns:
        A `PointCloud` with `time`, seconds before the last sweep. Of intensity and ring, what all sweeps have; labels
        where any has, and 0 for the points of those that have none, which the label maps of `pumice.data` ignore.
    Raises:
        Nothing.
    Waits:
        Never.
    """
    last = sweeps[-1]
    back = np.linalg.inv(last.pose)
    positions = []
    for cloud, sweep in zip(clouds[:-1], sweeps[:-1], strict=True):
        move = back @ sweep.pose
        moved = cloud.positions.astype(np.float64) @ move[:3, :3].T + move[:3, 3]
        positions.append(moved.astype(np.float32))
    positions.append(clouds[-1].positions)
    age = [np.full(len(c), last.seconds - s.seconds, np.float32) for c, s in zip(clouds, sweeps, strict=True)]
    labels = None
    if any(cloud.labels is not None for cloud in clouds):
        labels = np.concatenate([np.zeros(len(c), np.int32) if c.labels is None else c.labels for c in clouds])
    return PointCloud(
        positions=np.concatenate(positions),
        intensity=_of_all([cloud.intensity for cloud in clouds]),
        labels=labels,
        time=np.concatenate(age),
        ring=_of_all([cloud.ring for cloud in clouds]),
    )


def _of_all(columns: Sequence[np.ndarray | None]) -> np.ndarray | None:
    there = [column for column in columns if column is not None]
    return np.concatenate(there) if len(there) == len(columns) else None


def rigid(translation: Sequence[float], rotation: Sequence[float], where: str) -> np.ndarray:
    """float64 [4, 4] of a translation (metres) and a quaternion (w, x, y, z) of any length but 0; `where` names what
    has them, for the UserError about anything else."""
    try:
        shift, turn = np.asarray(translation, np.float64), np.asarray(rotation, np.float64)
    except (TypeError, ValueError):
        shift = turn = np.empty(0)
    length = np.linalg.norm(turn)
    if shift.shape != (3,) or turn.shape != (4,) or not np.isfinite([*shift, *turn]).all() or length == 0:
        raise _C.UserError(f"{where} has translation {translation} and rotation {rotation}: they are no pose")
    w, x, y, z = turn / length
    pose = np.eye(4)
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    pose[:3, 3] = shift
    return pose


def nuscenes_sweeps(
    root: Path,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    names: Sequence[str],
    count: int,
) -> dict[str, list[Sweep]]:
    """For the key frame of each of the file names, up to `count` sweeps, oldest first, the key frame last: fewer where a
    scene begins. `tables`: the records of `sample_data`, `ego_pose` and `calibrated_sensor`. UserError for key frames
    that they lack, and records that name others that are not there."""
    data = {r["token"]: r for r in tables["sample_data"] if "/LIDAR_TOP/" in str(r["filename"])}
    by_name = {Path(r["filename"]).name: token for token, r in data.items()}
    poses = {kind: {r["token"]: r for r in tables[kind]} for kind in ("ego_pose", "calibrated_sensor")}

    def named(record: Mapping[str, Any], kind: str) -> np.ndarray:
        token = record[f"{kind}_token"]
        if token not in poses[kind]:
            raise _C.UserError(f"sample_data.json names {kind} {token!r}, which {kind}.json lacks")
        row = poses[kind][token]
        return rigid(row["translation"], row["rotation"], f"{kind}.json, token {token!r},")

    found = {}
    for name in names:
        if name not in by_name:
            raise _C.UserError(f"{root}: sample_data.json lacks {name}, so that nobody knows what was before it")
        token, sweeps = by_name[name], []
        while token in data and len(sweeps) < count:
            record = data[token]
            pose = named(record, "ego_pose") @ named(record, "calibrated_sensor")
            if not isinstance(record["timestamp"], (int, float)):
                raise _C.UserError(f"sample_data.json has the timestamp {record['timestamp']!r}: it is no number of microseconds")
            sweeps.append(Sweep(root / record["filename"], pose, record["timestamp"] * 1e-6))
            token = record["prev"]
        found[name] = sweeps[::-1]
    return found


def waymo_sweeps(paths: Sequence[Path]) -> list[Sweep]:
    """Frames of one drive, in the order of time: `pose` [4, 4] of each .npz, vehicle to world, and `timestamp`,
    microseconds, or else ten frames a second. UserError for files without a pose."""
    sweeps = []
    for number, path in enumerate(paths):
        if path.suffix != ".npz":
            raise _C.UserError(f"{path} has no pose: frames above 1 need .npz files with pose [4, 4]")
        try:
            with np.load(path) as arrays:
                pose = np.asarray(arrays["pose"], np.float64) if "pose" in arrays else None
                stamp = float(arrays["timestamp"]) * 1e-6 if "timestamp" in arrays else number * _WAYMO_TURN
        except (ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise _C.UserError(f"{path} is no .npz file of arrays: {error}") from error
        if pose is None or pose.shape != (4, 4) or not np.isfinite(pose).all():
            raise _C.UserError(f"{path} has no pose of shape [4, 4], from the vehicle to the world, which frames above 1 need")
        sweeps.append(Sweep(path, pose, stamp))
    return sweeps
