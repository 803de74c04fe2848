"""Trains MinkUNet42 with several processes, one for each GPU (or on the CPU, through gloo).

    torchrun --standalone --nproc-per-node 2 examples/train_distributed.py --steps 200

Norms take their statistics over all processes, and the loss is normalised over all of them, so that
a step is that of one process with the joint batch, however unequal the parts are. The folder --out
gets model.safetensors at the end, and checkpoint.pt there and on Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from training_data import LABELS, Batches, Draws, streets, training_set, with_scales
from training_log import TrainingLog
from training_options import above_zero, cache_folder, not_negative, parse_resumed, positive, to_save
from training_run import (
    WEIGHTS,
    CannotBegin,
    Stop,
    check_unchanged,
    check_unused,
    make_folder,
    save_checkpoint,
    stopped,
)

import pumice
from pumice import data
from pumice.models import MinkUNet42

SCRIPT = "train_distributed.py"
LAUNCHER = "torchrun --standalone --nproc-per-node"
FIXED = ("width_factor", "voxel", "beams", "scans")  # for as long as a training is gone on with


def joint_mean_loss(scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Cross entropy whose gradients, averaged over processes as DistributedDataParallel does, are
    those of the mean over the labelled rows of all processes."""
    total = torch.nn.functional.cross_entropy(
        scores.float(), truth, ignore_index=data.IGNORED, reduction="sum"
    )
    rows = (truth != data.IGNORED).sum()
    processes = 1
    if dist.is_initialized():
        dist.all_reduce(rows)
        processes = dist.get_world_size()
    return total * processes / rows.clamp(min=1)


kept_sums: list[dist.Work] = []


def any_process(true_here: bool) -> bool:
    """Whether it is true in one of the processes. On the CPU, so that no GPU is waited for."""
    flag = torch.tensor(int(true_here))
    # Kept until the next one, for PyTorch's thread may let go of it later than this one, and then aborts where Python has ended.
    kept_sums[:] = [dist.all_reduce(flag, dist.ReduceOp.MAX, async_op=True)]
    kept_sums[0].wait()
    return bool(flag)


def train(
    options: argparse.Namespace, saved: dict[str, Any] | None, device: torch.device, stop: Stop
) -> None:
    """Until `options.steps` or a signal. The process of rank 0 says how far it is and writes."""
    rank, processes = dist.get_rank(), dist.get_world_size()
    on_gpu = device.type == "cuda"
    torch.manual_seed(0)
    network = MinkUNet42(4, len(LABELS.names), width_factor=options.width_factor).to(device)
    network = pumice.nn.SyncBatchNorm.convert(network)
    model = DistributedDataParallel(network, device_ids=[device] if on_gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler(device.type, enabled=on_gpu)
    step = drawn = 0
    if saved is not None:
        network.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scaler.load_state_dict(saved["scaler"])
        step, drawn = saved["step"], saved["drawn"]
    scans = streets(0, options.scans, options.beams, options.cache)
    draws = Draws(options.scans, 0, drawn, rank, processes)
    dataset = training_set(scans, options.voxel)
    batches = iter(Batches(dataset, device, options.workers, draws, options.batch))
    log = TrainingLog(options.out, append=saved is not None) if rank == 0 else None
    if log is not None:
        log.say(
            f"{processes} processes on {device.type}, {options.batch} scans a step each; simulated streets are kept "
            f"in {options.cache}"
        )

    begun = last_report = time.monotonic()
    reported = step
    while step < options.steps and not any_process(bool(stop.asked)):
        batch = next(batches)
        with torch.autocast(device.type, torch.float16, enabled=on_gpu):
            scores = model(batch.tensor()).features
        loss = joint_mean_loss(scores, batch.labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        step += 1
        drawn += processes * options.batch
        now = time.monotonic()
        if log is not None and (now - last_report > 1 or step in (1, options.steps)):
            share = loss.item()  # of the joint loss, times the processes; waits for the device
            speed = (step - reported) * processes * options.batch / (now - last_report)
            log.add(step, now - begun, loss=share, scans_per_s=speed)
            text = f"step {step} of {options.steps}, loss {share:.3f}, {speed:.1f} scans/s"
            log.progress(step / options.steps, text)
            last_report, reported = now, step
    if log is None:
        return
    content = {
        "script": SCRIPT,
        "options": to_save(options),
        "model": network.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "step": step,
        "drawn": drawn,
    }
    save_checkpoint(options.out, content)
    if step < options.steps:
        log.say(stopped(options.out, step, f"{LAUNCHER} {processes}"))
    else:
        write_weights(network, options)
        took = time.monotonic() - begun
        log.say(f"{step} steps in {took:.0f} s; the weights are in {options.out / WEIGHTS}")
    log.close()


def write_weights(network: MinkUNet42, options: argparse.Namespace) -> None:
    """With what `pumice run` has to know of them."""
    metadata = {
        **pumice.model_card(network),
        "voxel_size": str(options.voxel),
        "features": "x,y,z,intensity",
        **LABELS.metadata(),
        "trained_on": f"simulated streets, {options.beams} beams",
    }
    state = with_scales(network.state_dict())
    pumice.save_weights(state, options.out / WEIGHTS, torch.float16, metadata)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=SCRIPT,
        description=__doc__.splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("run_distributed"), help="folder, the same of all processes")
    add("--steps", type=positive, default=200)
    add("--batch", type=positive, default=4, help="scans of each process a step")
    add("--voxel", type=above_zero, default=0.1, help="metres")
    add("--beams", type=int, choices=[32, 64], default=64)
    add("--scans", type=positive, default=2000, help="streets to train on")
    add("--width-factor", type=above_zero, default=0.5)
    add("--workers", type=not_negative, default=2, help="of each process, which make batches")
    add("--cache", type=Path, default=cache_folder(), help="folder that simulated streets are kept in")
    add("--cpu", action="store_true", help="even where there are GPUs")
    add("--resume", action="store_true", help="go on from the checkpoint in --out, with its options")
    return parser


def begin(
    arguments: Sequence[str] | None,
) -> tuple[argparse.Namespace, dict[str, Any] | None, torch.device]:
    """Options, checkpoint or None, and the device of this process. Raises CannotBegin, in every
    process alike: no files are written yet."""
    options, saved = parse_resumed(make_parser(), arguments)
    if "RANK" not in os.environ:
        raise CannotBegin(
            f"it is one of several processes, which torchrun starts: {LAUNCHER} 2 {sys.argv[0]}"
        )
    device = torch.device("cpu")
    if torch.cuda.is_available() and not options.cpu:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        if device.index >= torch.cuda.device_count():
            raise CannotBegin(
                f"process {device.index} of this machine has no GPU: give --nproc-per-node "
                f"{torch.cuda.device_count()}, or --cpu"
            )
    streets(0, options.scans, options.beams, options.cache)  # refuses a cache that cannot be made
    if saved is None:
        check_unused(options.out)
        make_folder(options.out)
    else:
        check_unchanged(options.out, saved["options"], {n: getattr(options, n) for n in FIXED})
        if saved["step"] >= options.steps:
            raise CannotBegin(
                f"the training in {options.out} has ended after {saved['step']} steps: give more --steps"
            )
    return options, saved, device


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 2 it could not begin, 130 stopped by Ctrl-C."""
    first = os.environ.get("RANK", "0") == "0"
    with Stop(quiet=not first) as stop:
        try:
            options, saved, device = begin(arguments)
        except CannotBegin as error:
            if first:
                print(f"{SCRIPT}: {error}", file=sys.stderr)
            return 2
        if device.type == "cuda":
            torch.cuda.set_device(device)
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
        train(options, saved, device, stop)
        dist.destroy_process_group()
    return stop.exit_code


if __name__ == "__main__":
    sys.exit(main())
