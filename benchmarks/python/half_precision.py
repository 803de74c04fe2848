"""A network under autocast, converted as a whole (half(), bfloat16()), and converted but for its norms:
milliseconds of inference and of a training step, and what they enqueue, each beside autocast.

    python benchmarks/python/half_precision.py [--network minkunet42|centerpoint] [--scan scan.bin ...]
        [--batch 1] [--factor 1.0] [--passes 30] [--rounds 3]

Maps are made anew in every pass, and each begins on an idle device and is waited for. Kinds take
turns in every round, so that a machine that grows slower does so for all of them; medians.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable

import torch
from training_step import waiter
from workloads import model, workload

from pumice import nn

KINDS = ("autocast", "half", "bfloat16", "half, norms in float32")


class Kind:
    """One of KINDS, of a network of its own."""

    def __init__(self, name: str, net: torch.nn.Module, work: object, device: torch.device) -> None:
        self.name, self.device = name, device
        self.autocasts = name == "autocast"
        self.dtype = torch.bfloat16 if name == "bfloat16" or device.type == "cpu" else torch.float16
        self.net = copy.deepcopy(net).to(device)
        self.work = copy.copy(work)
        if not self.autocasts:
            self.net.to(self.dtype)
            self.work.features = work.features.to(self.dtype)
        if "norms" in name:
            for module in self.net.modules():
                if isinstance(module, torch.nn.BatchNorm1d):
                    module.float()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-4, momentum=0.9, foreach=True)

    def output(self) -> torch.Tensor:
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.autocasts):
            return self.net(self.work.sparse()).features

    def infer(self) -> None:
        with torch.no_grad():
            self.output()

    def step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.work.loss(self.output().float()).backward()
        self.optimizer.step()


def enqueued(run: Callable[[], None]) -> int:
    """Kernels, copies and fills of one pass on a GPU."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        run()
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profile.events())


def compare(what: str, runs: dict[str, Callable[[], None]], options: argparse.Namespace) -> None:
    device = torch.device(options.device)
    wait = waiter(device)
    for run in runs.values():
        for _ in range(10):
            run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            for _ in range(options.passes):
                wait()
                start = time.perf_counter()
                run()
                wait()
                times[name].append(time.perf_counter() - start)
    base = statistics.median(times["autocast"])
    for name, run in runs.items():
        median = statistics.median(times[name])
        launches = f", {enqueued(run)} launches and copies" if device.type == "cuda" else ""
        print(
            f"{what:22s} {name:24s} {median * 1e3:8.2f} ms, {median / base:5.2f} of autocast{launches}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--network", default="minkunet42", choices=("minkunet42", "centerpoint"))
    parser.add_argument("--scan", nargs="*", default=[], help="default: simulated ones")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--factor", type=float, default=1.0, help="of MinkUNet42's widths")
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    device = torch.device(options.device)
    work = workload(options.network, options.scan, options.batch, device)
    net = model(options.network, options.factor)
    kinds = [Kind(name, net, work, device) for name in KINDS]
    print(f"{options.network}, factor {options.factor}, {len(work.features)} voxels, PyTorch {torch.__version__}")
    compare("training step", {kind.name: kind.step for kind in kinds}, options)
    for kind in kinds:
        kind.net.eval()
    compare("inference", {kind.name: kind.infer for kind in kinds}, options)
    for kind in kinds:
        nn.freeze(kind.net)
    compare("inference, frozen", {kind.name: kind.infer for kind in kinds}, options)


if __name__ == "__main__":
    main()
