"""Makes batches of voxels from scans, for the semantic segmentation of points."""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import numpy as np
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from .. import _C
from .._checks import at_least_one, cell_size, kind_of, whole_number
from ..points import PointCloud, voxelize
from ..tensor import SparseTensor, of_tensor
from .augment import Augmentation, Scans, check_augmentation, check_scan, check_scans
from .labels import IGNORED, LabelMap


@dataclasses.dataclass
class Sample:
    """Voxels of one scan, or (after `collate`) of several.

    Args:
        coordinates: int32 [N, 4], item, x, y, z.
        features: float32 [N, C].
        labels: int64 [N], the class that most points of a voxel have.
        point_to_voxel: int64 [P], row of each point's voxel, -1 out of range; or None.
        point_labels: int64 [P]; or None.
        items: how many scans.
    Example:
        >>> sample = data.VoxelDataset(data.SimulatedScans([1], 32), data.SEMANTIC_KITTI)[0]
        >>> sample.tensor().batch_size
        1
    """

    coordinates: torch.Tensor  # int32 [N, 4]: item, x, y, z
    features: torch.Tensor  # float32 [N, C]
    labels: torch.Tensor  # int64 [N]: the class that most points of a voxel have
    point_to_voxel: torch.Tensor | None  # int64 [P]: row of each point's voxel, -1 out of range
    point_labels: torch.Tensor | None  # int64 [P]
    items: int = 1

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Sample:
        """All tensors on `device`. Their types stay."""
        if isinstance(device, (torch.dtype, torch.Tensor)):
            raise _C.UserError(f"device = {device!r}: give a device; autocast changes the type of features")
        return self._each(lambda value: value.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Sample:
        """Called by torch.utils.data.DataLoader."""
        return self._each(lambda value: value.pin_memory())

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Sample has no {name!r}{of_tensor(name, 'batch.tensor()')}")

    def tensor(self) -> SparseTensor:
        """The voxels, in a batch of `items`. On a GPU waits for it, as SparseTensor does."""
        return SparseTensor(self.coordinates, self.features, batch_size=self.items)

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Sample:
        values = {
            field.name: change(value)
            for field in dataclasses.fields(self)
            if isinstance(value := getattr(self, field.name), torch.Tensor)
        }
        return dataclasses.replace(self, **values)


class VoxelDataset(torch.utils.data.Dataset[Sample]):
    """Sample i is scan i of `scans`, augmented, in voxels; iterating over it makes each once.

    An index of len(scans) or more is scan (index mod len) with other random numbers: a sampler that counts on from
    epoch to epoch gets the same samples in every run, whichever worker makes them.

    Args:
        scans: a dataset, or a list of scans.
        labels: from the numbers of the scans' labels to classes.
        voxel: metres a cell, one number or one an axis.
        augment: an augmentation; default: none.
        range: x0, y0, z0, x1, y1, z1, metres; points outside are left out.
        points: keep what leads from voxels back to points, as measuring needs it.
        seed: of the random numbers.
    Raises:
        UserError: for arguments of another kind; when a sample is made, for a scan without labels.
    Example:
        >>> samples = data.VoxelDataset(data.SimulatedScans([1, 2], 32), data.SEMANTIC_KITTI, voxel=0.2)
        >>> len(samples), samples[0].features.shape[1]
        (2, 4)
    """

    def __init__(
        self,
        scans: Scans,
        labels: LabelMap,
        voxel: float | Sequence[float] = 0.1,
        augment: Augmentation | None = None,
        range: Sequence[float] | None = None,
        points: bool = False,
        seed: int = 0,
    ) -> None:
        check_scans(scans)
        if not callable(labels) or not hasattr(labels, "names"):
            raise _C.UserError(
                f"labels is {kind_of(labels)}: give a LabelMap, as pumice.data.SEMANTIC_KITTI or "
                "pumice.data.LabelMap(names, ids)"
            )
        if augment is not None:
            check_augmentation("augment", augment)
        # Refuses what no scan can take.
        voxelize(np.zeros((0, 3), np.float32), size=cell_size("voxel", voxel), range=range)
        self.scans = scans
        self.labels = labels
        self.voxel = voxel
        self.augment = augment
        self.range = range
        self.points = points
        self.seed = whole_number("seed", seed, 0)

    def __len__(self) -> int:
        return len(self.scans)

    def __getitem__(self, index: int) -> Sample:
        index = whole_number("index", index, 0)
        number = index % len(self.scans)
        cloud = check_scan(f"scans[{number}]", self.scans[number])
        if cloud.labels is None:
            why = getattr(self.scans, "why_unlabelled", None)
            raise _C.UserError(
                f"scans[{number}] has no labels"
                + ("" if why is None else f", since {why(number)}")
                + ": training and measuring need them"
            )
        if self.augment is not None:
            cloud = self.augment(cloud, np.random.default_rng((self.seed, index)))
            check_scan("what augment returned", cloud)
        return self.sample(cloud)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in builtins.range(len(self)))

    def sample(self, cloud: PointCloud) -> Sample:
        """The voxels of a scan, not augmented. Raises UserError for one without labels."""
        check_scan("cloud", cloud)
        if cloud.labels is None:
            raise _C.UserError("the scan has no labels: training and measuring need them")
        truth = self.labels(cloud.labels)
        voxels = voxelize(cloud.positions, cloud.features(), size=self.voxel, range=self.range)
        majority = majority_labels(
            truth, voxels.point_to_voxel, len(voxels), len(self.labels.names)
        )
        return Sample(
            torch.from_numpy(voxels.coordinates),
            torch.from_numpy(voxels.features),
            torch.from_numpy(majority),
            torch.from_numpy(voxels.point_to_voxel) if self.points else None,
            torch.from_numpy(truth) if self.points else None,
        )


def majority_labels(
    truth: np.ndarray, point_to_voxel: np.ndarray, voxels: int, classes: int
) -> np.ndarray:
    """The class that most points of each voxel have; ignored points do not vote.

    Args:
        truth: whole numbers [P], 0 … classes - 1 or `IGNORED`.
        point_to_voxel: whole numbers [P], below `voxels`; negative where a point has no voxel.
        voxels: how many there are.
        classes: how many there are.
    Returns:
        int64 [voxels], `IGNORED` where nobody votes.
    Raises:
        UserError: for other shapes, and numbers out of range.
    Example:
        >>> data.majority_labels(np.array([0, 1, 1]), np.array([0, 0, 0]), 2, 2)
        array([ 1, -1])
    """
    if truth.shape != point_to_voxel.shape or truth.ndim != 1:
        raise _C.UserError(
            f"truth has shape {truth.shape} and point_to_voxel {point_to_voxel.shape}: give [P] both"
        )
    wrong = (truth != IGNORED) & ((truth < 0) | (truth >= classes))
    if wrong.any():
        raise _C.UserError(
            f"truth holds {truth[wrong][0]} outside the classes 0 to {classes - 1}: bring labels to classes "
            "with a label map, as pumice.data.SEMANTIC_KITTI is"
        )
    if point_to_voxel.max(initial=-1) >= voxels:
        raise _C.UserError(
            f"point_to_voxel holds {point_to_voxel.max()}, and there are {voxels} voxels: give both of one "
            "call of voxelize"
        )
    votes = (truth != IGNORED) & (point_to_voxel >= 0)
    cells = point_to_voxel[votes] * classes + truth[votes]
    counts = np.bincount(cells, minlength=voxels * classes).reshape(voxels, classes)
    return np.where(counts.any(1), counts.argmax(1), IGNORED)


def collate(samples: Sequence[Sample]) -> Sample:
    """One batch: sample i becomes item i. A DataLoader without `collate_fn` does this too.

    Args:
        samples: of one item each.
    Returns:
        A `Sample` of len(samples) items.
    Raises:
        UserError: for an empty list, for other things than samples of one item each, and for samples with different
        numbers of features.
    Example:
        >>> samples = data.VoxelDataset(data.SimulatedScans([1, 2], 32), data.SEMANTIC_KITTI, voxel=0.2)
        >>> data.collate([samples[0], samples[1]]).items
        2
    """
    if isinstance(samples, Sample):
        raise _C.UserError("samples is one Sample: give a list of them, as [sample]")
    at_least_one("collate: samples", samples, "Sample")
    for number, sample in enumerate(samples):
        _check_sample(number, sample, samples[0])
    coordinates = torch.cat([sample.coordinates for sample in samples])
    rows = torch.tensor([len(sample.coordinates) for sample in samples])
    coordinates[:, 0] = torch.repeat_interleave(
        torch.arange(len(samples), dtype=torch.int32), rows
    )
    to_voxel = None
    if all(sample.point_to_voxel is not None for sample in samples):
        first = (rows.cumsum(0) - rows).tolist()
        parts = [sample.point_to_voxel for sample in samples]
        to_voxel = torch.cat([torch.where(p < 0, p, p + f) for p, f in zip(parts, first)])
    return Sample(
        coordinates,
        torch.cat([sample.features for sample in samples]),
        torch.cat([sample.labels for sample in samples]),
        to_voxel,
        None if to_voxel is None else torch.cat([sample.point_labels for sample in samples]),
        len(samples),
    )


def _check_sample(number: int, sample: object, first: Sample) -> None:
    if not isinstance(sample, Sample):
        remedy = "give what a VoxelDataset holds"
        if isinstance(sample, SparseTensor):
            remedy = "pumice.collate joins sparse tensors"
        raise _C.UserError(f"samples[{number}] is {kind_of(sample)}: {remedy}")
    if sample.items != 1:
        raise _C.UserError(
            f"samples[{number}] is a batch of {sample.items} items already: give samples of one scan each"
        )
    if sample.features.shape[1] != first.features.shape[1]:
        raise _C.UserError(
            f"samples[{number}] has {sample.features.shape[1]} features a voxel and samples[0] "
            f"{first.features.shape[1]}: give as many"
        )
    if (sample.point_to_voxel is None) is not (first.point_to_voxel is None):
        raise _C.UserError(
            f"one of samples[{number}] and samples[0] has points, and the other has not: give samples of datasets with "
            "the same points="
        )


torch.serialization.add_safe_globals([Sample])  # for torch.load of batches that were kept
default_collate_fn_map[Sample] = lambda samples, *, collate_fn_map=None: collate(samples)


def one_thread(worker: int = 0) -> None:
    """`worker_init_fn` of a DataLoader: its workers are many, so each computes on one thread.

    Args:
        worker: its number, which does not matter.
    Returns:
        None.
    Raises:
        Nothing.
    Example:
        >>> samples = data.VoxelDataset(data.SimulatedScans([1], 32), data.SEMANTIC_KITTI)
        >>> loader = torch.utils.data.DataLoader(samples, worker_init_fn=data.one_thread)
    """
    torch.set_num_threads(1)
    _C.set_threads(1)
