"""Voxels of a workload: of a dataset's folder where one is given, else of scans below PUMICE_DATA, else of simulated
streets. Each batch says which."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from adapters import Voxels

import pumice
from pumice import data

from .workloads import Workload

WAYMO_HEIGHT = 2.18  # metres; Waymo's positions count from the ground, those of a simulated sensor from the sensor
TINY_REACH, TINY_VOXELS = 8.0, 300  # metres around the sensor; voxels
VALIDATION = 8  # SemanticKITTI's sequence


@dataclasses.dataclass
class Sources:
    """Where scans are looked for, in this order."""

    folders: Mapping[str, Path]  # by dataset
    nuscenes_version: str
    recorded: Path | None  # PUMICE_DATA


@dataclasses.dataclass
class Batch:
    """What a network is given, on a device, and what its loss wants."""

    voxels: Voxels
    features: torch.Tensor  # float32 [N, C]
    labels: torch.Tensor  # int64 [N]


def scans_of(work: Workload, sources: Sources, count: int, seed: int) -> tuple[list[pumice.PointCloud], str]:
    """`count` scans, and what they are in words. Of a folder they lie evenly apart; where there are fewer, they repeat."""
    dataset = _folder(work, sources)
    if dataset is not None:
        places = np.linspace(0, len(dataset) - 1, count).round().astype(int)
        return [dataset[int(i)] for i in places], f"{work.dataset}, {_counted(len(set(places)), 'scan')} of a folder"
    files = _recorded(work, sources)
    if files:
        files = files[:count]
        clouds = [pumice.read_points(path) for path in files]
        names = files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
        return [clouds[i % len(clouds)] for i in range(count)], names
    clouds = [pumice.simulate(seed + i, sweeps=work.sweeps, sensor=work.sensor) for i in range(count)]
    if work.dataset == "waymo":
        for cloud in clouds:
            cloud.positions[:, 2] += np.float32(WAYMO_HEIGHT)
    return clouds, f"simulated {work.sensor}, {_counted(work.sweeps, 'sweep')}"


def _folder(work: Workload, sources: Sources) -> Sequence[pumice.PointCloud] | None:
    root = sources.folders.get(work.dataset)
    if root is None:
        return None
    if work.dataset == "semantickitti":
        return data.SemanticKitti(root, [VALIDATION])
    if work.dataset == "nuscenes":
        return data.NuScenes(root, sources.nuscenes_version, sweeps=work.sweeps)
    return data.Waymo(root, frames=work.sweeps)


def _recorded(work: Workload, sources: Sources) -> list[Path]:
    """Files with all the sweeps of the workload."""
    if sources.recorded is None:
        return []
    lidar = sources.recorded / "lidar"
    patterns = {
        ("semantickitti", 1): "semantickitti/*.bin",
        ("nuscenes", 1): "nuscenes/*.pcd.bin",
        ("nuscenes", 10): "nuscenes/ten_sweeps_f16x5.bin",
    }
    pattern = patterns.get((work.dataset, work.sweeps))
    return sorted(lidar.glob(pattern)) if pattern else []


def columns_of(cloud: pumice.PointCloud, channels: int) -> np.ndarray:
    """float32 [P, channels]: the first of x, y, z, intensity, ring, time."""
    none = np.zeros(len(cloud), np.float32)
    ring = none if cloud.ring is None else cloud.ring.astype(np.float32)
    time = none if cloud.time is None else cloud.time
    return np.column_stack([cloud.features(), ring, time])[:, :channels]


def voxels_of(work: Workload, cloud: pumice.PointCloud, tiny: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """int32 [N, 3] and float32 [N, C]: cells of one scan from 0 on, at most so many, and the means of their points."""
    columns = columns_of(cloud, work.in_channels)
    if tiny:
        columns = columns[np.hypot(columns[:, 0], columns[:, 1]) < TINY_REACH]
    found = pumice.voxelize(columns[:, :3], columns, size=work.voxel, range=work.range)
    cells, features = found.coordinates[:, 1:].astype(np.int32), found.features
    most = TINY_VOXELS if tiny else work.most_voxels
    if most and len(cells) > most:
        stay = np.sort(np.random.default_rng(seed).choice(len(cells), most, replace=False))
        cells, features = cells[stay], features[stay]
    if len(cells) == 0:
        raise pumice.UserError(f"{work.name}: no point of a scan lies in a voxel; give scans of its sensor")
    if work.range is None:
        cells = cells - cells.min(0)
    return cells, features


def batch_of(
    work: Workload, clouds: Sequence[pumice.PointCloud], tiny: bool, seed: int, device: torch.device
) -> Batch:
    """Scans side by side, in the grid of the workload, or in one that halves four times."""
    parts = [voxels_of(work, cloud, tiny, seed + item) for item, cloud in enumerate(clouds)]
    cells = np.concatenate([np.insert(cells, 0, item, axis=1) for item, (cells, _) in enumerate(parts)])
    shape = list(work.grid) if work.grid else [int(most) // 16 * 16 + 16 for most in cells[:, 1:].max(0)]
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, max(1, work.classes), (len(cells),), generator=generator)
    return Batch(
        Voxels(torch.from_numpy(cells).to(device), shape, len(clouds)),
        torch.from_numpy(np.concatenate([features for _, features in parts])).to(device),
        labels.to(device),
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
