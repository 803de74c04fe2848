"""Scans as the networks of the benchmarks take them, for Pumice and for what it is compared with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

import pumice

CLASSES = 19


@dataclasses.dataclass
class Workload:
    """Voxels of a batch of scans on a device, and what the loss wants."""

    network: str  # "minkunet42" or "centerpoint"
    cells: torch.Tensor  # int32 [N, 4]: batch, x, y, z, none of them negative
    features: torch.Tensor  # float32 [N, 4]: x, y, z, intensity
    labels: torch.Tensor  # int64 [N]
    spatial_shape: list[int]
    batch_size: int

    def sparse(self) -> pumice.SparseTensor:
        """A tensor without maps, as each step gets one."""
        return pumice.SparseTensor(
            self.cells,
            self.features,
            spatial_shape=self.spatial_shape,
            batch_size=self.batch_size,
        )

    def loss(self, output: torch.Tensor) -> torch.Tensor:
        """Cross entropy of scores; the mean square of an encoder's features."""
        if self.network == "minkunet42":
            return torch.nn.functional.cross_entropy(output, self.labels)
        return output.float().square().mean()


def workload(
    network: str, scans: Sequence[str], batch_size: int, device: torch.device
) -> Workload:
    """`scans`: files, used in turn; none: simulated streets with seeds 0, 1, ….

    MinkUNet42 on voxels of 0.05 m, CenterPoint's encoder on its grid of 0.075 x 0.075 x 0.2 m.
    """
    detector = network == "centerpoint"
    size = (0.075, 0.075, 0.2) if detector else 0.05
    bounds = (-54, -54, -5, 54, 54, 3) if detector else None
    cells, features = [], []
    for item in range(batch_size):
        scan = (
            pumice.read_points(scans[item % len(scans)]) if scans else pumice.simulate(seed=item)
        )
        voxels = pumice.voxelize(scan.positions, scan.features(), size=size, range=bounds)
        coordinates = torch.from_numpy(voxels.coordinates).int().clone()
        coordinates[:, 0] = item
        cells.append(coordinates)
        features.append(torch.from_numpy(voxels.features).float())
    joint = torch.cat(cells)
    shape = [1440, 1440, 41]
    if not detector:
        joint[:, 1:] -= joint[:, 1:].min(0).values
        shape = [int(most) // 16 * 16 + 16 for most in joint[:, 1:].max(0).values]
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, CLASSES, (len(joint),), generator=generator)
    return Workload(
        network,
        joint.to(device),
        torch.cat(features).to(device),
        labels.to(device),
        shape,
        batch_size,
    )


def model(network: str, width_factor: float = 1.0) -> torch.nn.Module:
    torch.manual_seed(0)
    if network == "centerpoint":
        return pumice.models.CenterPointEncoder()
    return pumice.models.MinkUNet42(classes=CLASSES, width_factor=width_factor)
