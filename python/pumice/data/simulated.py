"""Provides simulated streets as a dataset."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .. import _C
from .._checks import whole_number
from ..points import PointCloud, simulate


class SimulatedScans:
    """Scan i is the street that `seeds[i]` names, labels as SemanticKITTI's files have them.

    Args:
        seeds: whole numbers, one a scan.
        beams: of the sensor.
        cache: a folder where scans are kept once made; default: each is simulated anew (0.14 s on one core with 64
            beams).
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> scans = data.SimulatedScans(range(3), beams=32)
        >>> len(scans), scans[0].labels.dtype
        (3, dtype('int32'))
    """

    def __init__(
        self,
        seeds: Sequence[int],
        beams: int = 64,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        if not (hasattr(seeds, "__len__") and hasattr(seeds, "__getitem__")):
            raise _C.UserError(f"seeds = {seeds!r}: give a number for each street, as range(100)")
        if beams not in (32, 64):
            raise _C.UserError(f"beams = {beams!r}: give 32 or 64")
        self.seeds = seeds
        self.beams = beams
        self.cache = None if cache is None else Path(cache)
        if self.cache is not None:
            try:
                self.cache.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _C.UserError(
                    f"cache = {str(self.cache)!r}: the folder cannot be made: {error.strerror}; give another one"
                ) from error

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, index: int) -> PointCloud:
        seed = whole_number(f"seeds[{index}]", self.seeds[index], 0, 2**64 - 1)
        if self.cache is None:
            return simulate(seed, self.beams)
        path = self.cache / f"street_{self.beams}_{seed}.npy"
        if path.exists() and (kept := _load(path)) is not None:
            return _unpacked(kept)
        cloud = simulate(seed, self.beams)
        # Whole or not at all: several processes may make the same one.
        part = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.part")
        with open(part, "wb") as file:
            np.save(file, _packed(cloud))
        os.replace(part, path)
        return cloud


def _load(path: Path) -> np.ndarray | None:
    """float32 [P, 6]; None for a file of an earlier version, without rings."""
    try:
        columns = np.load(path)
    except (ValueError, EOFError) as error:
        raise _C.UserError(f"{path} is damaged: delete it, and the street is simulated anew") from error
    if columns.ndim != 2 or columns.shape[1] not in (5, 6) or columns.dtype != np.float32:
        raise _C.UserError(f"{path} holds no street: give a folder of its own as cache")
    return columns if columns.shape[1] == 6 else None


def _packed(cloud: PointCloud) -> np.ndarray:
    numbers = [cloud.intensity, cloud.labels, cloud.ring]  # those that are whole are below 2^24: exact
    return np.concatenate([cloud.positions, *(column[:, None].astype(np.float32) for column in numbers)], 1)


def _unpacked(columns: np.ndarray) -> PointCloud:
    return PointCloud(
        positions=np.ascontiguousarray(columns[:, :3]),
        intensity=np.ascontiguousarray(columns[:, 3]),
        labels=columns[:, 4].astype(np.int32),
        time=None,
        ring=columns[:, 5].astype(np.int32),
    )
