"""Training steps and inference of MinkUNet42 (the widths of spvnas) on a scan, maps made anew in every
pass: milliseconds a step as the clock sees them, and host time until all is enqueued.

    python benchmarks/python/training_step.py [--scan scan.bin] [--batch 1] [--factor 1.0]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import pumice
from pumice import nn

WIDTHS = (32, 32, 64, 128, 256, 256, 128, 96, 96)


def block(channels: int, out: int) -> nn.Residual:
    body = nn.Sequential(
        nn.SubMConv3d(channels, out, 3, bias=False),
        nn.BatchNorm(out),
        nn.ReLU(),
        nn.SubMConv3d(out, out, 3, bias=False),
        nn.BatchNorm(out),
    )
    if channels == out:
        return nn.Residual(body)
    return nn.Residual(
        body, nn.Sequential(nn.SubMConv3d(channels, out, 1, bias=False), nn.BatchNorm(out))
    )


def layer(convolution: torch.nn.Module, out: int) -> nn.Sequential:
    return nn.Sequential(convolution, nn.BatchNorm(out), nn.ReLU())


class MinkUNet42(torch.nn.Module):
    def __init__(self, channels: int = 4, classes: int = 19, factor: float = 1.0) -> None:
        super().__init__()
        w = [int(width * factor) for width in WIDTHS]
        self.stem = nn.Sequential(
            *layer(nn.SubMConv3d(channels, w[0], 3, bias=False), w[0]),
            *layer(nn.SubMConv3d(w[0], w[0], 3, bias=False), w[0]),
        )
        self.down = torch.nn.ModuleList()
        for level in range(4):
            width, out = w[level], w[level + 1]
            coarser = nn.Conv3d(width, width, 2, stride=2, bias=False, outputs="cell")
            self.down.append(
                nn.Sequential(*layer(coarser, width), block(width, out), block(out, out))
            )
        self.up = torch.nn.ModuleList()
        self.blocks = torch.nn.ModuleList()
        for level in range(4):
            width, out, beside = w[4 + level], w[5 + level], w[3 - level]
            self.up.append(nn.InverseConv3d(width, out, 2, stride=2, bias=False))
            self.blocks.append(nn.Sequential(block(out + beside, out), block(out, out)))
        self.norms = torch.nn.ModuleList(nn.BatchNorm(w[5 + level]) for level in range(4))
        self.classifier = nn.Linear(w[8], classes)

    def forward(self, x: pumice.SparseTensor) -> torch.Tensor:
        levels = [self.stem(x)]
        for down in self.down:
            levels.append(down(levels[-1]))
        x = levels.pop()
        for up, norm, blocks in zip(self.up, self.norms, self.blocks):
            beside = levels.pop()
            x = norm(up(x, beside), None, True)
            x = blocks(pumice.cat([x, beside]))
        return self.classifier(x).features


def measure(name: str, run: Callable[[], object], device: torch.device, passes: int) -> None:
    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    for _ in range(5):
        run()
    whole, host = [], []
    for _ in range(passes):
        wait()
        start = time.perf_counter()
        run()
        host.append(time.perf_counter() - start)
        wait()
        whole.append(time.perf_counter() - start)
    # One after the other, as training does it: the host runs ahead.
    start = time.perf_counter()
    for _ in range(passes):
        run()
    wait()
    streak = (time.perf_counter() - start) / passes
    print(
        f"{name:44s} {streak * 1e3:7.2f} ms each in a row, {statistics.median(whole) * 1e3:7.2f} "
        f"alone, host {statistics.median(host) * 1e3:7.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--scan", help="a file of points; default: a simulated one")
    parser.add_argument("--size", type=float, default=0.05, help="of a voxel, in metres")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--passes", type=int, default=30)
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.manual_seed(0)

    items = []
    for seed in range(options.batch):
        scan = pumice.read_points(options.scan) if options.scan else pumice.simulate(seed=seed)
        voxels = pumice.voxelize(scan.positions, scan.features(), size=options.size)
        cells = torch.from_numpy(voxels.coordinates).int().clone()
        cells[:, 0] = seed
        features = torch.zeros(len(voxels), 4)
        given = torch.from_numpy(voxels.features).float()[:, :4]
        features[:, : given.shape[1]] = given
        items.append((cells, features))
    cells = torch.cat([cells for cells, _ in items])
    cells[:, 1:] -= cells[:, 1:].min(0).values
    features = torch.cat([features for _, features in items]).to(device)
    shape = [(int(extent) + 16) // 16 * 16 for extent in cells[:, 1:].max(0).values]
    cells = cells.to(device)
    labels = torch.randint(0, 19, (len(features),), device=device)
    net = MinkUNet42(factor=options.factor).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=True)
    scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
    dtype = torch.float16 if device.type == "cuda" else torch.bfloat16

    def sparse() -> pumice.SparseTensor:
        return pumice.SparseTensor(
            cells, features, spatial_shape=shape, batch_size=options.batch
        )

    def forward() -> torch.Tensor:
        with torch.autocast(device.type, dtype=dtype):
            return torch.nn.functional.cross_entropy(net(sparse()), labels)

    def forward_and_backward() -> None:
        scaler.scale(forward()).backward()

    def step(scaled: bool) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = forward()
        if not scaled:
            loss.backward()
            optimizer.step()
            return
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    weights = sum(p.numel() for p in net.parameters())
    print(
        f"MinkUNet42, factor {options.factor}, {weights / 1e6:.1f} M weights, "
        f"{len(features)} voxels, batch {options.batch}, {dtype}, {device}, "
        f"PyTorch {torch.__version__}",
        flush=True,
    )
    measure("coordinates alone", sparse, device, options.passes)
    measure("forward for training", forward, device, options.passes)
    measure("forward and backward", forward_and_backward, device, options.passes)
    measure("training step, SGD", lambda: step(False), device, options.passes)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        measure("training step, SGD with GradScaler", lambda: step(True), device, options.passes)
        print(f"peak memory {torch.cuda.max_memory_allocated(device) / 2**30:.2f} GiB")
    optimizer.zero_grad(set_to_none=True)
    net.eval()

    def infer() -> torch.Tensor:
        with torch.no_grad():
            return net(sparse())

    with torch.autocast(device.type, dtype=dtype):
        measure("inference under autocast", infer, device, options.passes)
    for module in net.modules():
        if not isinstance(module, torch.nn.BatchNorm1d):
            for parameter in module.parameters(recurse=False):
                parameter.data = parameter.data.to(dtype)
    features = features.to(dtype)
    measure(f"inference, {dtype}", infer, device, options.passes)


if __name__ == "__main__":
    main()
