"""The seven driving benchmarks by which engines for sparse convolution are compared, as data.

`pumice bench driving --list --json` prints the same table, and a test compares them. Axes are x, y, z with z up,
metres. The published ranges of height are -3 to 5 m (nuScenes) and -4 to 2 m (Waymo) along an axis that points down.
Published three-sweep scans are drawn from ten; here they are the last three.
"""

from __future__ import annotations

import dataclasses

import torch

import pumice


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    dataset: str  # "semantickitti", "nuscenes" or "waymo"
    sensor: str  # of pumice.simulate, where no scan is at hand
    sweeps: int
    voxel: tuple[float, float, float]
    range: tuple[float, ...] | None  # x0, y0, z0, x1, y1, z1; None: no crop, coordinates from 0 on
    grid: tuple[int, int, int] | None  # of that range
    most_voxels: int  # of a scan, the rest left out at random; 0: all stay
    in_channels: int  # the first of x, y, z, intensity, ring, time; a column that a scan does not have is 0
    network: str
    width_factor: float  # of the widths called "driving", of minkunet42
    classes: int  # of minkunet42; 0 for an encoder
    training_batch: int = 2

    @property
    def widths(self) -> tuple[int, ...]:
        """Of MinkUNet42: the stem, four stages down and four up."""
        return network(self).widths


def _segmentation(name: str, dataset: str, sensor: str, sweeps: int, factor: float = 1.0) -> Workload:
    kitti = dataset == "semantickitti"
    size = 0.05 if kitti else 0.1
    channels, classes = (4, 19) if kitti else (6, 32)
    return Workload(name, dataset, sensor, sweeps, (size,) * 3, None, None, 0, channels, "minkunet42", factor, classes)


def _detection(name: str, dataset: str, sensor: str, sweeps: int) -> Workload:
    if dataset == "waymo":
        height, reach, low, high, cells, most = 0.15, 75.2, -2.0, 4.0, 1504, 150_000
    else:
        height, reach, low, high, cells, most = 0.2, 51.2, -5.0, 3.0, 1024, 60_000
    bounds = (-reach, -reach, low, reach, reach, high)
    # 40 cells of height and one more, as detectors have it.
    return Workload(
        name, dataset, sensor, sweeps, (0.1, 0.1, height), bounds, (cells, cells, 41), most, 6, "centerpoint", 1.0, 0
    )


WORKLOADS = (
    _segmentation("SK-M-1x", "semantickitti", "beams64", 1),
    _segmentation("SK-M-0.5x", "semantickitti", "beams64", 1, 0.5),
    _segmentation("NS-M-1f", "nuscenes", "beams32", 1),
    _segmentation("NS-M-3f", "nuscenes", "beams32", 3),
    _detection("NS-C-10f", "nuscenes", "beams32", 10),
    _detection("WM-C-1f", "waymo", "waymo64", 1),
    _detection("WM-C-3f", "waymo", "waymo64", 3),
)
NAMES = tuple(work.name for work in WORKLOADS)
TINY_WIDTHS = 0.25  # of MinkUNet42, for tests


def slim(work: Workload) -> Workload:
    """The same with a quarter of MinkUNet42's widths."""
    return dataclasses.replace(work, width_factor=work.width_factor * TINY_WIDTHS)


def network(work: Workload) -> torch.nn.Module:
    """Pumice's network with seeded weights, on the CPU."""
    torch.manual_seed(0)
    if work.network == "centerpoint":
        return pumice.models.CenterPointEncoder(work.in_channels)
    return pumice.models.MinkUNet42(work.in_channels, work.classes, "driving", work.width_factor)

