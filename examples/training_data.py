"""Streets to train on, in batches on the device."""

from __future__ import annotations

import multiprocessing.forkserver
import os
import pickle
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from pumice import data

LABELS = data.SEMANTIC_KITTI
# x, y, z, intensity have very different sizes. The network learns with them scaled, and the scales
# are multiplied into the weights of its first layer when they are written.
SCALES = (1 / 50, 1 / 50, 1 / 2, 2.0)
_FIRST_LAYER = "stem.0.weight"


class Draws(torch.utils.data.Sampler):
    """Numbers of samples without end: every scan once an epoch, from the `first` on, which is where a
    run had stopped. Of several processes each has its own part."""

    def __init__(
        self, scans: int, seed: int, first: int = 0, rank: int = 0, processes: int = 1
    ) -> None:
        self.scans, self.seed, self.first = scans, seed, first
        self.rank, self.processes = rank, processes

    def __iter__(self) -> Iterator[int]:
        drawn = self.first
        while True:
            epoch, skipped = divmod(drawn, self.scans)
            order = torch.Generator().manual_seed(self.seed + epoch)
            for index in torch.randperm(self.scans, generator=order)[skipped:].tolist():
                if drawn % self.processes == self.rank:
                    yield epoch * self.scans + index
                drawn += 1


class Batches:
    """A DataLoader over a dataset, its batches on the device and its features scaled."""

    def __init__(
        self,
        dataset: torch.utils.data.Dataset,
        device: torch.device | str,
        workers: int,
        sampler: torch.utils.data.Sampler | None = None,
        batch: int = 1,
    ) -> None:
        # Free shared memory tells whether a queue of batches fits into it.
        shared = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30
        self._by_value = workers > 0 and not shared
        self._device = torch.device(device)
        self._loader = torch.utils.data.DataLoader(
            dataset,
            batch_size=batch,
            sampler=sampler,
            num_workers=workers,
            collate_fn=_pickled if self._by_value else data.collate,
            pin_memory=self._device.type == "cuda" and not self._by_value,
            multiprocessing_context=_quiet_workers() if workers > 0 else None,
            worker_init_fn=_begin_worker,
            persistent_workers=workers > 0,
            prefetch_factor=3 if workers > 0 else None,
        )

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[data.Sample]:
        for batch in self._loader:
            batch = pickle.loads(batch) if self._by_value else batch
            batch = batch.to(self._device, non_blocking=True)
            batch.features = batch.features * batch.features.new_tensor(SCALES)
            yield batch


def _pickled(samples: list[data.Sample]) -> bytes:
    """A batch by value, where shared memory is too small for tensors."""
    return pickle.dumps(data.collate(samples), protocol=5)


def _quiet_workers() -> multiprocessing.context.BaseContext:
    """Processes that leave signals to the one that trains, so that it can end between two steps: a
    terminal sends Ctrl-C to all of them, and a launcher its signals. They inherit that it is ignored."""
    context = torch.multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "pumice.data"])
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    multiprocessing.forkserver.ensure_running()
    signal.signal(signal.SIGINT, before)
    return context


def _begin_worker(number: int) -> None:
    data.one_thread(number)
    os.setpgrp()  # signals to the group of the process that trains do not come here any more


def streets(first: int, count: int, beams: int, cache: Path) -> data.SimulatedScans:
    """Streets `first` to `first + count - 1`. Raises UserError where the cache is no folder."""
    return data.SimulatedScans(range(first, first + count), beams, cache=cache)


def training_set(
    scans: data.SimulatedScans, voxel: float, mix: float = 0.0, seed: int = 0
) -> data.VoxelDataset:
    """Augmented, some with a sector of another street."""
    steps = [data.Rotate(), data.Flip(), data.Scale(), data.Shift(), data.Jitter()]
    if mix > 0:
        steps.insert(0, data.Sometimes(mix, data.Mix(scans)))
    return data.VoxelDataset(scans, LABELS, voxel, data.Compose(*steps), seed=seed)


def class_weights(labels: Sequence[torch.Tensor]) -> torch.Tensor:
    """float32 [classes]: rare classes count more, as the inverse root of how often they occur."""
    classes = len(LABELS.names)
    counts = torch.zeros(classes)
    for found in labels:
        counts += torch.bincount(found[found >= 0], minlength=classes)
    present = counts > 0
    weights = (counts.sum() / counts.clamp(min=counts.sum() * 3e-4)).sqrt()
    return weights / weights[present].mean()


def with_scales(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of a network that takes features as they are, of one that learnt them scaled."""
    first = state[_FIRST_LAYER].float()
    return {**state, _FIRST_LAYER: first * first.new_tensor(SCALES)[None, :, None]}


def without_scales(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The other way round."""
    first = state[_FIRST_LAYER].float()
    return {**state, _FIRST_LAYER: first / first.new_tensor(SCALES)[None, :, None]}
