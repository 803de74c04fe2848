"""Training steps and inference from Python, maps made anew in every pass: milliseconds as the clock sees
them, and host time until all is enqueued.

    python benchmarks/python/training_step.py [--network minkunet42|centerpoint] [--scan scan.bin ...]
        [--batch 1] [--factor 1.0] [--device cuda] [--dtype float16] [--passes 30]

"in a row": passes one after the other, as training does it, so that the host may run ahead. "alone":
the median of passes each of which begins on an idle device and is waited for.

Without a GPU it runs on the CPU, in float32 and with three passes each, since a pass takes a second there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from workloads import model, workload

from pumice import nn


def waiter(device: torch.device) -> Callable[[], None]:
    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    return lambda: None


def measure(name: str, run: Callable[[], object], device: torch.device, passes: int) -> None:
    wait = waiter(device)
    for _ in range(min(5, passes)):
        run()
    whole, host = [], []
    for _ in range(passes):
        wait()
        start = time.perf_counter()
        run()
        host.append(time.perf_counter() - start)
        wait()
        whole.append(time.perf_counter() - start)
    start = time.perf_counter()
    for _ in range(passes):
        run()
    wait()
    row = (time.perf_counter() - start) / passes
    low, _, high = statistics.quantiles(whole, n=4) if passes > 1 else whole * 3
    print(
        f"{name:44s} {row * 1e3:7.2f} ms in a row, {statistics.median(whole) * 1e3:7.2f} alone "
        f"({low * 1e3:.2f}-{high * 1e3:.2f}), host {statistics.median(host) * 1e3:7.2f}",
        flush=True,
    )


class Trainer:
    """Mixed precision unless `dtype` is float32, SGD with momentum."""

    def __init__(
        self, net: torch.nn.Module, work: object, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.net = net
        self.work = work
        self.device = device
        self.dtype = dtype
        self.optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=True)
        self.scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)

    def forward(self) -> torch.Tensor:
        with self.autocast():
            return self.work.loss(self.net(self.work.sparse()).features)

    def forward_and_backward(self) -> None:
        self.scaler.scale(self.forward()).backward()

    def step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.forward().backward()
        self.optimizer.step()

    def scaled_step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(self.forward()).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--network", default="minkunet42", choices=("minkunet42", "centerpoint"))
    parser.add_argument("--scan", nargs="*", default=[], help="default: simulated ones")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--factor", type=float, default=1.0, help="of MinkUNet42's widths")
    parser.add_argument("--dtype", help="default: float16 on a CUDA device, float32 on the CPU")
    parser.add_argument("--passes", type=int, help="default: 30 on a CUDA device, 3 on the CPU")
    options = parser.parse_args()
    device = torch.device(options.device)
    on_gpu = device.type == "cuda"
    if on_gpu and not torch.cuda.is_available():
        sys.exit(
            f"training_step.py: --device {options.device} needs a CUDA device, and PyTorch finds none; "
            "--device cpu runs on the processor"
        )
    dtype = getattr(torch, options.dtype or ("float16" if on_gpu else "float32"))
    passes = options.passes or (30 if on_gpu else 3)
    work = workload(options.network, options.scan, options.batch, device)
    net = model(options.network, options.factor).to(device)
    trainer = Trainer(net, work, device, dtype)
    print(
        f"{options.network}, factor {options.factor}, {len(work.features)} voxels, batch "
        f"{options.batch}, {trainer.dtype}, "
        f"{torch.cuda.get_device_name(device) if device.type == 'cuda' else 'CPU'}, "
        f"PyTorch {torch.__version__}",
        flush=True,
    )
    measure("coordinates alone", work.sparse, device, passes)
    measure("forward for training", trainer.forward, device, passes)
    measure("forward and backward", trainer.forward_and_backward, device, passes)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    measure("training step", trainer.step, device, passes)
    measure("training step with GradScaler", trainer.scaled_step, device, passes)
    if device.type == "cuda":
        print(f"peak memory of training {torch.cuda.max_memory_allocated(device) / 2**30:.2f} GiB")

    trainer.optimizer.zero_grad(set_to_none=True)
    net.eval()

    def infer() -> None:
        with torch.no_grad():
            net(work.sparse())

    with trainer.autocast():
        measure("inference under autocast", infer, device, passes)
    for module in net.modules():  # statistics stay in float32, as the kernels take them
        if not isinstance(module, torch.nn.BatchNorm1d):
            for parameter in module.parameters(recurse=False):
                parameter.data = parameter.data.to(trainer.dtype)
    work.features = work.features.to(trainer.dtype)
    measure(f"inference, {trainer.dtype}", infer, device, passes)
    nn.freeze(net)
    measure(f"inference, {trainer.dtype}, frozen", infer, device, passes)


if __name__ == "__main__":
    main()
