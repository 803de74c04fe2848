r"""Trains MinkUNet42 to name the class of every point, on simulated streets.

    python examples/train_segmentation.py --minutes 8 --out run
    pumice run minkunet42 scan.bin --weights run/model.safetensors --picture classes.png

Writes model.safetensors (the best weights so far, float16), checkpoint.pt (for --resume),
curves.csv and iou.txt. For data of your own put another dataset of `pumice.data` in `make_loaders`.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from training_log import TrainingLog

import pumice
from pumice import data
from pumice.losses import lovasz_softmax
from pumice.metrics import Confusion
from pumice.models import MinkUNet42

START = time.monotonic()
LABELS = data.SEMANTIC_KITTI
# x, y, z, intensity have very different sizes. The network learns with them scaled, and the scales
# are multiplied into the weights of its first layer when they are written.
SCALES = (1 / 50, 1 / 50, 1 / 2, 2.0)
VALIDATION_SEED, TEST_SEED = 1_000_000, 2_000_000


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("run"), help="folder for everything that is written")
    add("--minutes", type=float, help="stop in time to be finished after this long")
    add("--steps", type=int, help="stop after so many steps (default: 5000 without --minutes)")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--amp", choices=["off", "f16", "bf16"], default=None, help="default: f16 on a GPU")
    add("--widths", default="32,32,32,48,48,48,48,32,32", help="spvnas, driving or nine numbers")
    add("--voxel", type=float, default=0.1, help="metres")
    add("--beams", type=int, choices=[32, 64], default=64, help="of the simulated sensor")
    add("--scans", type=int, default=2000, help="streets to train on")
    add("--validation", type=int, default=16, help="other streets, measured now and then")
    add("--test", type=int, default=48, help="still others, measured at the end")
    add("--batch", type=int, default=8, help="scans a step")
    add("--rate", type=float, default=4e-3, help="highest learning rate")
    add("--mix", type=float, default=0.0, help="probability of a sector from another scan")
    add("--workers", type=int, default=max(1, len(os.sched_getaffinity(0)) - 2))
    add("--every", type=float, default=60, help="seconds between validations")
    add("--cache", type=Path, default=Path(tempfile.gettempdir()) / "pumice_streets")
    add("--seed", type=int, default=0)
    add("--resume", action="store_true", help="go on from the checkpoint in --out")
    arguments = parser.parse_args()
    if arguments.minutes is None and arguments.steps is None:
        arguments.steps = 5000
    if arguments.amp is None:
        arguments.amp = "f16" if arguments.device.startswith("cuda") else "off"
    return arguments


class Draws(torch.utils.data.Sampler):
    """Numbers of samples without end: every scan once an epoch, from where a run had stopped."""

    def __init__(self, scans: int, seed: int, first: int = 0) -> None:
        self.scans, self.seed, self.first = scans, seed, first

    def __iter__(self) -> Iterator[int]:
        epoch, skipped = divmod(self.first, self.scans)
        while True:
            order = torch.Generator().manual_seed(self.seed + epoch)
            for index in torch.randperm(self.scans, generator=order)[skipped:].tolist():
                yield epoch * self.scans + index
            epoch, skipped = epoch + 1, 0


def pickled(samples: list[data.Sample]) -> bytes:
    """A batch by value, where shared memory is too small for tensors."""
    return pickle.dumps(data.collate(samples), protocol=5)


class Batches:
    """A DataLoader over a dataset, its batches on the device."""

    def __init__(self, arguments, dataset, workers: int, sampler=None, batch: int = 1) -> None:
        # Free shared memory tells whether a queue of batches fits into it.
        shared = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30
        self._by_value = workers > 0 and not shared
        self._device = arguments.device
        context = None
        if workers > 0:
            context = torch.multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(["torch", "pumice.data"])
        self._loader = torch.utils.data.DataLoader(
            dataset,
            batch_size=batch,
            sampler=sampler,
            num_workers=workers,
            collate_fn=pickled if self._by_value else data.collate,
            pin_memory=self._device.startswith("cuda") and not self._by_value,
            multiprocessing_context=context,
            worker_init_fn=data.one_thread,
            persistent_workers=workers > 0,
            prefetch_factor=3 if workers > 0 else None,
        )

    def __iter__(self) -> Iterator[data.Sample]:
        for batch in self._loader:
            batch = pickle.loads(batch) if self._by_value else batch
            batch = batch.to(self._device, non_blocking=True)
            batch.features = batch.features * batch.features.new_tensor(SCALES)
            yield batch


def make_datasets(arguments) -> tuple[data.VoxelDataset, data.VoxelDataset, data.VoxelDataset]:
    def streets(first: int, count: int) -> data.SimulatedScans:
        seeds = range(first, first + count)
        return data.SimulatedScans(seeds, arguments.beams, cache=arguments.cache)

    def unchanged(first: int, count: int) -> data.VoxelDataset:
        return data.VoxelDataset(streets(first, count), LABELS, arguments.voxel, points=True)

    training = streets(arguments.seed, arguments.scans)
    steps = [data.Rotate(), data.Flip(), data.Scale(), data.Shift(), data.Jitter()]
    if arguments.mix > 0:
        steps.insert(0, data.Sometimes(arguments.mix, data.Mix(training)))
    return (
        data.VoxelDataset(
            training, LABELS, arguments.voxel, data.Compose(*steps), seed=arguments.seed
        ),
        unchanged(VALIDATION_SEED, arguments.validation),
        unchanged(TEST_SEED, arguments.test),
    )


def class_weights(dataset: data.VoxelDataset, scans: int = 24) -> torch.Tensor:
    """float32 [classes]: rare classes count more, as the inverse root of how often they occur."""
    classes = len(LABELS.names)
    counts = torch.zeros(classes)
    for index in range(min(scans, len(dataset))):
        labels = dataset[index].labels
        counts += torch.bincount(labels[labels >= 0], minlength=classes)
    present = counts > 0
    weights = (counts.sum() / counts.clamp(min=counts.sum() * 3e-4)).sqrt()
    return weights / weights[present].mean()


def one_cycle(progress: float, highest: float, rise: float = 0.15) -> float:
    """Cosines from highest / 25 up to the highest rate and down to 1 / 1000 of it."""
    if progress < rise:
        low, high, part = highest / 25, highest, progress / rise
    else:
        low, high, part = highest, highest / 1000, (progress - rise) / (1 - rise)
    return low + (high - low) * (1 - math.cos(math.pi * min(1.0, part))) / 2


def autocast(arguments) -> torch.autocast:
    dtype = torch.float16 if arguments.amp == "f16" else torch.bfloat16
    return torch.autocast(
        torch.device(arguments.device).type, dtype=dtype, enabled=arguments.amp != "off"
    )


@torch.no_grad()
def measure(model: MinkUNet42, batches: Batches, arguments) -> Confusion:
    """Over points, not voxels."""
    model.eval()
    confusion = Confusion(len(LABELS.names))
    for batch in batches:
        with autocast(arguments):
            scores = model(batch.tensor()).features
        confusion.add(batch.point_labels, scores.argmax(1)[batch.point_to_voxel])
    model.train()
    return confusion


def write_model(model: MinkUNet42, path: Path, arguments, confusion: Confusion) -> None:
    state = model.state_dict()
    first = state["stem.0.weight"]
    state["stem.0.weight"] = first * first.new_tensor(SCALES)[None, :, None]
    metadata = {
        "network": "minkunet42",
        "widths": ",".join(map(str, model.widths)),
        "voxel_size": str(arguments.voxel),
        "features": "x,y,z,intensity",
        **LABELS.metadata(),
        "trained_on": f"simulated streets, {arguments.beams} beams",
        "mean_iou": f"{confusion.mean_iou():.4f}",
    }
    pumice.save_weights(state, path, torch.float16, metadata)


def train(arguments) -> None:
    torch.manual_seed(arguments.seed)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    log = TrainingLog(out, append=arguments.resume)
    widths = arguments.widths
    if "," in widths:
        widths = [int(width) for width in widths.split(",")]
    model = MinkUNet42(4, len(LABELS.names), widths).to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.rate, weight_decay=0.01)
    scaler = torch.amp.GradScaler(
        torch.device(arguments.device).type, enabled=arguments.amp == "f16"
    )
    step, before, best = 0, 0.0, -1.0
    if arguments.resume:
        saved = torch.load(out / "checkpoint.pt", map_location="cpu", weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scaler.load_state_dict(saved["scaler"])
        step, before, best = saved["step"], saved["seconds"], saved["best"]

    training, validation, test = make_datasets(arguments)
    few = min(4, arguments.workers)
    draws = Draws(len(training), arguments.seed, step * arguments.batch)
    batches = iter(Batches(arguments, training, arguments.workers, draws, arguments.batch))
    validation_batches = Batches(arguments, validation, few)
    weights = class_weights(training).to(arguments.device)
    parameters = sum(p.numel() for p in model.parameters())
    log.say(
        f"MinkUNet42 of {parameters} parameters on {arguments.device}, {arguments.amp}; "
        f"{arguments.batch} scans a step, {arguments.workers} workers"
    )

    def seconds() -> float:
        return before + time.monotonic() - START

    begun = seconds() if before == 0 else 0.0  # when the schedule began
    reserve = 30.0  # for the last measurements; known better after the first validation
    last_validation = last_report = seconds()
    reported, loss_sum = step, torch.zeros((), device=arguments.device)
    while True:
        progress = 0.0 if arguments.steps is None else step / arguments.steps
        if arguments.minutes is not None:
            end = 60 * arguments.minutes - reserve
            progress = max(progress, (seconds() - begun) / max(1.0, end - begun))
        if progress >= 1:
            break
        batch = next(batches)
        rate = one_cycle(progress, arguments.rate)
        for group in optimizer.param_groups:
            group["lr"] = rate
        with autocast(arguments):
            scores = model(batch.tensor()).features
        scores = scores.float()
        loss = torch.nn.functional.cross_entropy(
            scores, batch.labels, weights, ignore_index=data.IGNORED
        ) + lovasz_softmax(scores, batch.labels)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        loss_sum += loss.detach()
        step += 1
        if step == 3 and before == 0:
            begun = seconds()  # kernels are compiled and workers run
        if step % 20 == 0 or step == 1:
            now = seconds()
            mean = float(loss_sum) / (step - reported)  # waits for the device
            speed = (step - reported) * arguments.batch / (now - last_report)
            log.add(step, now, loss=mean, rate=rate, scans_per_s=speed)
            log.progress(
                progress,
                f"step {step}, loss {mean:.3f}, {speed:.0f} scans/s, {now:.0f} s",
            )
            last_report, reported = seconds(), step
            loss_sum.zero_()
        if seconds() - last_validation > arguments.every:
            started = seconds()
            confusion = measure(model, validation_batches, arguments)
            found = confusion.mean_iou()
            log.add(step, seconds(), miou=found)
            log.say(f"step {step}: mIoU {found:.3f} on {arguments.validation} unseen streets")
            if found > best:
                best = found
                write_model(model, out / "model.safetensors", arguments, confusion)
            save_checkpoint(out, model, optimizer, scaler, step, seconds(), best)
            last_validation = last_report = seconds()
            reported = step
            loss_sum.zero_()
            each = (seconds() - started) / max(1, arguments.validation)
            reserve = 15 + 1.5 * each * (arguments.test + arguments.validation)

    del batches  # ends its workers
    finish(arguments, log, model, validation_batches, test, step, seconds, best)
    save_checkpoint(out, model, optimizer, scaler, step, seconds(), best)
    log.close()


def save_checkpoint(out, model, optimizer, scaler, step, seconds, best) -> None:
    """Whole or not at all: a run may be ended at any time."""
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "step": step,
        "seconds": seconds,
        "best": best,
    }
    torch.save(content, out / "checkpoint.part")
    os.replace(out / "checkpoint.part", out / "checkpoint.pt")


def finish(arguments, log, model, validation_batches, test, step, seconds, best) -> None:
    """Measures the best weights on streets that nothing was chosen by."""
    out: Path = arguments.out
    confusion = measure(model, validation_batches, arguments)
    log.add(step, seconds(), miou=confusion.mean_iou())
    log.say(f"step {step}: mIoU {confusion.mean_iou():.3f} at the end")
    if confusion.mean_iou() > best:
        write_model(model, out / "model.safetensors", arguments, confusion)
    # What was written is what is measured: rounded to float16, its scales taken out again.
    state, _ = pumice.read_weights(out / "model.safetensors")
    first = state["stem.0.weight"].float()
    state["stem.0.weight"] = first / first.new_tensor(SCALES)[None, :, None]
    model.load_state_dict(state, strict=False)
    confusion = measure(model, Batches(arguments, test, min(8, arguments.workers)), arguments)
    table = confusion.table(LABELS.names)
    log.say(f"Points of {arguments.test} streets never seen, accuracy {confusion.accuracy():.4f}")
    log.say(table)
    (out / "iou.txt").write_text(table + "\n")
    log.say(f"{out / 'model.safetensors'}: {os.path.getsize(out / 'model.safetensors')} bytes")
    log.say(f"{step} steps in {seconds():.0f} s")


if __name__ == "__main__":
    train(parse_arguments())
