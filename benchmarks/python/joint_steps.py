"""Training steps on several GPUs at once, single ones and those of a DistributedDataParallel, by hand and compiled: milliseconds.

    python benchmarks/python/joint_steps.py [--processes 2] [--scan scan.bin ...] [--sweeps sweep.bin ...] [--passes 20]
        [--rounds 3] [--cases minkunet42 ...] [--dtype float16]

A process a GPU, over NCCL, each of which begins with another scan; steps and columns as in compiled_steps.py. "single":
each process trains a network by itself, all at the same time, so that the host has the same to do; "joint": gradients are
averaged over all processes. Times are of the slowest process, and the efficiency is single over joint, in a row. Afterwards parameters of
joint steps have to be the same in all processes, and the first losses by hand and compiled within a tolerance.
Without a GPU two processes train small networks over gloo, and compiled steps run as those by hand.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from compiled import Timed, parser_of
from compiled_steps import CHECKED, TOLERANCE, Way, steps_of
from training_step import waiter
from workloads import model

KINDS = ("single", "joint")
HOWS = ("by hand", "compiled")
PATIENCE = datetime.timedelta(minutes=5)  # kernels that one process compiles and another has


def same_in_all(net: torch.nn.Module) -> bool:
    """Whether all processes have the bits of the first."""
    same = True
    for parameter in net.parameters():
        first = parameter.detach().clone()
        dist.broadcast(first, 0)
        same &= torch.equal(first, parameter)
    return same


def measure(case: str, rank: int, device: torch.device, dtype: torch.dtype, options: argparse.Namespace) -> None:
    network, factor, works = steps_of(case, options, device, first=rank)
    wait = waiter(device)
    ways: dict[tuple[str, str], Way] = {}
    curves: dict[tuple[str, str], torch.Tensor] = {}
    for kind, how in itertools.product(KINDS, HOWS):
        net: torch.nn.Module = model(network, factor).to(device)
        if kind == "joint":
            net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank] if device.type == "cuda" else None)
        way = ways[kind, how] = Way(network, net, False, device, dtype, how == "compiled")
        curves[kind, how] = torch.stack([way(works[turn % len(works)]) for turn in range(CHECKED)])
        for work in works * 3:
            way(work)
    timed = {name: Timed(way, works, wait) for name, way in ways.items()}
    for _ in range(options.rounds):
        for one in timed.values():
            dist.barrier()
            one.passes(options.passes)
    wait()
    for (kind, how), way in ways.items():
        if way.compiled is not None:
            way.compiled.wait()
        if kind == "joint" and not same_in_all(way.net):
            sys.exit(f"{case}: after joint steps ({how}) parameters differ between processes")
    for kind in KINDS:
        left, right = (curves[kind, how] for how in HOWS)
        if not torch.allclose(left, right, rtol=TOLERANCE):
            sys.exit(f"{case}, {kind}: losses of {left.tolist()} by hand and {right.tolist()} compiled")
    tell(case, [len(work.cells) for work in works], timed)


def tell(case: str, voxels: list[int], timed: dict[tuple[str, str], Timed]) -> None:
    """The times of the slowest process, from the first one."""
    mine = {name: one.medians() for name, one in timed.items()}
    everyone: list[dict[tuple[str, str], tuple[float, ...]]] = [{} for _ in range(dist.get_world_size())]
    dist.all_gather_object(everyone, mine)
    if dist.get_rank() != 0:
        return
    slowest = {name: [max(times) for times in zip(*(one[name] for one in everyone))] for name in timed}
    print(f"{case}, {max(voxels)} voxels a process")
    for name, (row, alone, host) in slowest.items():
        print(f"    {', '.join(name):18s} {row:6.2f} in a row {alone:6.2f} alone {host:6.2f} host")
    shares = (f"{how} {slowest['single', how][0] / slowest['joint', how][0]:.2f}" for how in HOWS)
    print(f"    efficiency: {', '.join(shares)}", flush=True)


def one_process(rank: int, store: str, options: argparse.Namespace) -> None:
    on_gpu = options.device == "cuda"
    device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if on_gpu else "gloo", store=dist.FileStore(store, options.processes), rank=rank,
        world_size=options.processes, timeout=PATIENCE, device_id=device if on_gpu else None,
    )  # fmt: skip
    for case in options.cases:
        measure(case, rank, device, getattr(torch, options.dtype or ("float16" if on_gpu else "float32")), options)
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # a thread of gloo's that still holds a tensor of the last sum aborts a process where Python has ended


def main() -> None:
    parser = parser_of(__doc__, passes=20)
    parser.add_argument("--dtype", help="default: float16 on a CUDA device, float32 on the CPU")
    parser.add_argument("--processes", type=int, help="default: one for each GPU, 2 without one")
    options = parser.parse_args()
    if options.spconv:
        parser.error("--spconv: joint steps are of Pumice's own networks")
    here = torch.cuda.device_count() if options.device == "cuda" else 2
    options.processes = options.processes or here
    if options.device == "cuda" and not 2 <= options.processes <= here:
        sys.exit(f"{options.processes} processes take as many GPUs, two or more, and {here} are here; --device cpu runs without")
    print(
        f"milliseconds on {options.processes} {'x ' + torch.cuda.get_device_name() if options.device == 'cuda' else 'processes of the CPU'}, "
        f"PyTorch {torch.__version__}"
    )
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(one_process, (str(Path(folder) / "store"), options), nprocs=options.processes)


if __name__ == "__main__":
    main()
