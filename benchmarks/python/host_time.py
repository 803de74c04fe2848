"""Host time of one layer: what Python, the binding and the launch cost, the device being idle.

    python benchmarks/python/host_time.py [--device cuda] [--rows 1000] [--channels 32]

Goals on a CUDA device: 15 us a layer in inference, 40 us in training (forward and backward).
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable

import torch

import pumice
from pumice import _C, nn


def microseconds(run: Callable[[], object], device: torch.device, calls: int) -> float:
    """The least of some rounds of enqueuing, each begun with an idle device."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    run()
    best = float("inf")
    for _ in range(10):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        best = min(best, time.perf_counter() - start)
    wait()
    return best / calls * 1e6


def fused_body(width: int) -> nn.Sequential:
    parts = [nn.SubMConv3d(width, width, 3, bias=False), nn.BatchNorm(width), nn.ReLU()]
    parts += [nn.SubMConv3d(width, width, 3, bias=False), nn.BatchNorm(width)]
    return nn.Sequential(*parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--calls", type=int, default=50)
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit(
            f"host_time.py: --device {options.device} needs a CUDA device, and PyTorch finds none; "
            "--device cpu runs on the processor"
        )
    dtype = getattr(torch, options.dtype)

    cells = torch.zeros(options.rows, 4, dtype=torch.int32)
    cells[:, 1] = torch.arange(options.rows) % 40
    cells[:, 2] = torch.arange(options.rows) // 40
    features = torch.randn(options.rows, options.channels).to(device, dtype)
    x = pumice.SparseTensor(cells.to(device), features, batch_size=1)
    width = options.channels
    layer = nn.SubMConv3d(width, width, 3).to(device, dtype)
    layer.bias.data = layer.bias.data.float()
    frozen = nn.freeze(copy.deepcopy(layer)).eval()
    linear = torch.nn.Linear(width, width).to(device, dtype)
    chain = nn.Sequential(*[nn.SubMConv3d(width, width, 3, bias=False) for _ in range(10)])
    chain = chain.to(device, dtype)
    wide = nn.SubMConv3d(width, width, 3).to(device)
    fused = nn.Sequential(nn.SubMConv3d(width, width, 3, bias=False), nn.BatchNorm(width), nn.ReLU())
    fused = fused.to(device)
    blocks = nn.Sequential(*[nn.Residual(fused_body(width)) for _ in range(5)]).to(device)
    gradient = torch.ones_like(features)
    map = pumice.ops.submanifold_map(x.coords, layer.window)
    weight, bias = layer.weight.detach(), layer.bias.detach()
    kept = _C.PackedWeights()

    def report(name: str, run: Callable[[], object], parts: int = 1) -> None:
        time_ = microseconds(run, device, options.calls) / parts
        print(f"{name:58s} {time_:7.2f} us", flush=True)

    print(f"{options.rows} rows, {width} channels, {options.dtype}, {device}")
    with torch.no_grad():
        layer.eval()
        report("torch.nn.Linear, inference", lambda: linear(features))
        report("SubMConv3d, inference", lambda: layer(x))
        report("SubMConv3d, inference, weights frozen", lambda: frozen(x))
        report("  finding the map", lambda: layer.find(x, None))
        report("  ops.convolution", lambda: pumice.ops.convolution(features, weight, map, bias, 1, kept))
        report(
            "  the extension alone",
            lambda: _C.convolution(
                features, weight, map, bias, 1, False, False, None, None, kept, weight._version
            ),
        )
        report("  new_empty", lambda: features.new_empty((options.rows, width)))
        autocast = torch.autocast(device.type, dtype=torch.bfloat16)
        with autocast:
            report("SubMConv3d, inference under autocast", lambda: layer(x))
        with torch.autocast(device.type, dtype=dtype):
            report("SubMConv3d of f32, inference under autocast", lambda: wide.eval()(x))
            report("SubMConv3d, BatchNorm and ReLU, the same", lambda: fused.eval()(x))
            report("Residual blocks, the same, a convolution", lambda: blocks.eval()(x), 10)
        report("Sequential of 10, inference, a layer", lambda: chain.eval()(x), 10)
    layer.train()
    chain.train()
    wide.train()
    fused.train()
    blocks.train()

    def step(module: torch.nn.Module) -> None:
        torch.autograd.backward(module(x).features, gradient)

    def linear_step() -> None:
        torch.autograd.backward(linear(features), gradient)

    report("torch.nn.Linear, forward and backward", linear_step)
    report("SubMConv3d, forward for training", lambda: layer(x))
    report("SubMConv3d, forward and backward", lambda: step(layer))
    report("Sequential of 10, forward, a layer", lambda: chain(x), 10)
    report("Sequential of 10, forward and backward, a layer", lambda: step(chain), 10)
    with torch.autocast(device.type, dtype=dtype):
        report("SubMConv3d of f32, forward under autocast", lambda: wide(x))
        report("  and backward", lambda: step(wide))
        report("SubMConv3d, BatchNorm and ReLU, the same, forward", lambda: fused(x))
        report("  and backward", lambda: step(fused))
        report("Residual blocks, forward, a convolution", lambda: blocks(x), 10)
        report("  and backward", lambda: step(blocks), 10)


if __name__ == "__main__":
    main()
