"""Trains MinkUNet42 to name the class of every point.

    python train_network.py /data/semantickitti      # without a folder: on simulated streets
    pumice run minkunet42 scan.bin --weights model.safetensors --picture classes.png
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch

import pumice
from pumice import data, losses, metrics, models

LABELS = data.SEMANTIC_KITTI
Scans = data.SemanticKitti | data.SimulatedScans


def make_scans(folder: str | None) -> tuple[Scans, Scans]:
    if folder is None:
        return data.SimulatedScans(range(200)), data.SimulatedScans(range(1000, 1010))
    validation = data.SemanticKitti(folder, data.SEMANTIC_KITTI_VALIDATION)
    return data.SemanticKitti(folder), validation


def make_loader(dataset: data.VoxelDataset, options: argparse.Namespace, shuffle: bool) -> Any:
    return torch.utils.data.DataLoader(
        dataset,
        batch_size=options.batch,
        shuffle=shuffle,
        collate_fn=data.collate,
        num_workers=options.workers,
        multiprocessing_context="forkserver" if options.workers else None,
        worker_init_fn=data.one_thread if options.workers else None,
    )


def train(
    model: models.MinkUNet42, loader: Any, optimizer: Any, scaler: Any, device: torch.device
) -> None:
    model.train()
    for step, batch in enumerate(loader, 1):
        batch = batch.to(device)
        with torch.autocast(device.type, torch.float16, enabled=device.type == "cuda"):
            scores = model(batch.tensor()).features
        loss = losses.lovasz_softmax(scores, batch.labels)
        loss = loss + torch.nn.functional.cross_entropy(
            scores.float(), batch.labels, ignore_index=data.IGNORED
        )
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(f"\r  step {step} of {len(loader)}, loss {loss.item():.3f}", end="", flush=True)
    print()


@torch.no_grad()
def validate(model: models.MinkUNet42, loader: Any, device: torch.device) -> None:
    model.eval()
    confusion = metrics.Confusion(len(LABELS.names))
    for step, batch in enumerate(loader, 1):
        batch = batch.to(device)
        scores = model(batch.tensor()).features
        confusion.add(batch.point_labels, scores.argmax(1)[batch.point_to_voxel])
        print(f"\r  validation {step} of {len(loader)}", end="", flush=True)
    print(f", mIoU {confusion.mean_iou():.3f}")


def whole(text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
    return int(text)


def positive(text: str) -> int:
    return whole(text, 1)


def usable_device(name: str) -> torch.device:
    kind, count = name.split(":")[0], torch.cuda.device_count()
    try:
        device = torch.device(name if kind in ("cpu", "cuda") else "")
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"{name!r} is not cpu, cuda, cuda:0, cuda:1, …") from None
    if kind == "cuda" and (device.index or 0) >= count:
        raise argparse.ArgumentTypeError(f"{name!r}: PyTorch finds {count} GPUs here")
    return device


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", help="of SemanticKITTI; default: simulated streets")
    parser.add_argument("--out", default="model.safetensors")
    parser.add_argument("--epochs", type=positive, default=10)
    parser.add_argument("--batch", type=positive, default=4)
    parser.add_argument("--voxel", type=float, default=0.1, help="metres")
    parser.add_argument("--width-factor", type=float, default=0.5)
    parser.add_argument("--workers", type=whole, default=2)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", type=usable_device, default=default)
    options = parser.parse_args()
    if os.path.exists(options.out):
        parser.error(f"{options.out} is there already: name another file with --out")
    try:
        run(options)
    except (pumice.Error, pumice.UserError) as error:  # one of a worker ends with the sentence
        sentence = str(error).splitlines()[-1].removeprefix("pumice.UserError: ")
        raise SystemExit(f"train_network.py: {sentence}") from None


def run(options: argparse.Namespace) -> None:
    scans, others = make_scans(options.folder)
    augment = data.Compose(
        data.Sometimes(0.5, data.Mix(scans)),  # a sector of another scan
        data.Rotate(), data.Flip(), data.Scale(0.95, 1.05), data.Jitter(0.01),
    )  # fmt: skip
    training = data.VoxelDataset(scans, LABELS, options.voxel, augment)
    validation = data.VoxelDataset(others, LABELS, options.voxel, points=True)
    model = models.MinkUNet42(4, len(LABELS.names), width_factor=options.width_factor)
    model = model.to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler(options.device.type, enabled=options.device.type == "cuda")
    known = {"voxel_size": str(options.voxel), **LABELS.metadata()}  # for `pumice run`
    # A file that cannot be written is found out now, and not after the first epoch.
    pumice.save_weights(model, options.out, torch.float16, known)
    os.remove(options.out)
    try:
        for epoch in range(1, options.epochs + 1):
            print(f"epoch {epoch} of {options.epochs}")
            train(model, make_loader(training, options, True), optimizer, scaler, options.device)
            validate(model, make_loader(validation, options, False), options.device)
            pumice.save_weights(model, options.out, torch.float16, known)
            print(f"  the weights are in {options.out}")
    except KeyboardInterrupt:
        raise SystemExit(f"\nstopped in epoch {epoch}; weights are written after each") from None
    except pumice.UserError:
        print()  # the end of the line of steps
        raise


if __name__ == "__main__":  # the loader's workers import this file too
    main()
