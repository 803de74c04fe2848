"""Trains MinkUNet42 with several processes, one for each GPU (or on the CPU, through gloo).

    torchrun --standalone --nproc-per-node 2 examples/train_distributed.py --steps 200

Norms take their statistics over all processes, and the loss is normalised over all of them, so that
a step is that of one process with the joint batch, however unequal the parts are.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import pumice
from pumice import data
from pumice.models import MinkUNet42


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=4, help="scans of each process a step")
    parser.add_argument("--voxel", type=float, default=0.1)
    parser.add_argument("--beams", type=int, choices=[32, 64], default=64)
    parser.add_argument("--width-factor", type=float, default=0.5)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--out", default="model.safetensors")
    arguments = parser.parse_args()

    on_gpu = torch.cuda.is_available() and not arguments.cpu
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, processes = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)

    torch.manual_seed(0)
    classes = len(data.SEMANTIC_KITTI.names)
    network = MinkUNet42(4, classes, width_factor=arguments.width_factor).to(device)
    network = pumice.nn.SyncBatchNorm.convert(network)
    model = DistributedDataParallel(network, device_ids=[device] if on_gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler(device.type, enabled=on_gpu)
    augment = data.Compose(data.Rotate(), data.Flip(), data.Scale())
    scans = data.SimulatedScans(range(10_000), arguments.beams)
    dataset = data.VoxelDataset(scans, data.SEMANTIC_KITTI, arguments.voxel, augment)
    begin, seen = time.monotonic(), 0
    for step in range(arguments.steps):
        first = (step * processes + rank) * arguments.batch
        batch = data.collate([dataset[first + i] for i in range(arguments.batch)]).to(device)
        with torch.autocast(device.type, torch.float16, enabled=on_gpu):
            scores = model(batch.tensor()).features
        loss = joint_mean_loss(scores, batch.labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        seen += processes * arguments.batch
        if rank == 0 and (step + 1) % 10 == 0:
            speed = seen / (time.monotonic() - begin)
            print(f"step {step + 1}, loss {loss.item():.3f}, {speed:.1f} scans/s", flush=True)
    if rank == 0:
        pumice.save_weights(network, arguments.out, torch.float16)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
