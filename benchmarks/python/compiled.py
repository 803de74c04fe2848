"""Inference from Python, layer by layer and compiled (`pumice.compile`), maps made anew in every pass: milliseconds.

    python benchmarks/python/compiled.py [--scan scan.bin ...] [--passes 50] [--rounds 3] [--cases minkunet42 ...]
        [--spconv]

"in a row": passes one after the other, the host running ahead. "alone": the median of passes each of which begins
on an idle device and is waited for. "host": until all of a pass is enqueued. Passes take scans in turn, with other
voxels each time; eager and compiled take turns in rounds, so that a machine that grows slower does so for both.
`--spconv` adds MinkUNet42 as users of spconv write it, through `pumice.compat`. For a GPU; without one the
networks are small, and both columns run the same layers.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch
from training_step import waiter
from workloads import Workload, model, workload

import pumice
from pumice import nn

CASES = {  # network, width factor, scans in a batch
    "minkunet42": ("minkunet42", 1.0, 1),
    "minkunet42, half width": ("minkunet42", 0.5, 1),
    "minkunet42, batch 4": ("minkunet42", 1.0, 4),
    "centerpoint": ("centerpoint", 1.0, 1),
}


def scenes(network: str, scans: Sequence[str], batch: int, device: torch.device) -> list[Workload]:
    """One for each of up to four scans, which begins with it."""
    turns = range(min(4, max(1, len(scans))))
    return [workload(network, [*scans[turn:], *scans[:turn]], batch, device) for turn in turns]


class Timed:
    """Passes of one way to run a network, over scenes in turn."""

    def __init__(self, run: Callable[[Workload], object], scenes: list[Workload], wait: Callable[[], None]) -> None:
        self.run, self.scenes, self.wait = run, scenes, wait
        self.row: list[float] = []
        self.alone: list[float] = []
        self.host: list[float] = []

    def passes(self, count: int) -> None:
        for turn in range(count):
            work = self.scenes[turn % len(self.scenes)]
            self.wait()
            start = time.perf_counter()
            self.run(work)
            self.host.append(time.perf_counter() - start)
            self.wait()
            self.alone.append(time.perf_counter() - start)
        start = time.perf_counter()
        for turn in range(count):
            self.run(self.scenes[turn % len(self.scenes)])
        self.wait()
        self.row.append((time.perf_counter() - start) / count)

    def medians(self) -> tuple[float, float, float]:
        """Milliseconds: in a row, alone, and of the host."""
        row, alone, host = (statistics.median(times) * 1e3 for times in (self.row, self.alone, self.host))
        return row, alone, host

    def __str__(self) -> str:
        row, alone, host = self.medians()
        return f"{row:6.2f} in a row {alone:6.2f} alone {host:6.2f} host"


def compare(
    name: str,
    net: torch.nn.Module,
    give: Callable[[Callable[..., object], Workload], object],
    taken: Callable[[Workload], object],
    scenes: list[Workload],
    options: argparse.Namespace,
) -> None:
    """`give` calls a compiled model with a scene, `taken` makes of it what the network takes."""
    wait = waiter(scenes[0].cells.device)
    fast = pumice.compile(net)

    @torch.no_grad()
    def eager(work: Workload) -> object:
        return net(taken(work))

    def compiled(work: Workload) -> object:
        return give(fast, work)

    start = time.perf_counter()
    for _ in range(4):
        for work in scenes:
            compiled(work)
    wait()
    first = time.perf_counter() - start
    for work in scenes:
        eager(work)
    fast.wait()
    worst = max(difference(eager(work), compiled(work)) for work in scenes)
    ways = Timed(eager, scenes, wait), Timed(compiled, scenes, wait)
    for _ in range(options.rounds):
        for way in ways:
            way.passes(options.passes)
    fast.wait()
    print(f"{name:34s} {len(scenes[0].cells):7d} voxels  eager {ways[0]}  compiled {ways[1]}", flush=True)
    print(
        f"{'':34s} {first:.1f} s until recorded, {fast.bytes / 2**20:.0f} MiB, outputs differ by {worst:.1e}, {fast}",
        flush=True,
    )


def difference(left: object, right: object) -> float:
    """The largest, in proportion to the largest value."""
    if isinstance(right, pumice.CapacityTensor):
        right = right.exact()
    left, right = (getattr(value, "features", value).float() for value in (left, right))
    if left.shape != right.shape:
        sys.exit(f"outputs of {tuple(left.shape)} and {tuple(right.shape)}")
    return float((left - right).abs().max() / left.abs().max())


def parser_of(description: str | None, passes: int) -> argparse.ArgumentParser:
    """The options of what compares calls by hand with compiled ones, for which `passes` is the default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--scan", nargs="*", default=[], help="default: a simulated one")
    parser.add_argument("--sweeps", nargs="*", default=[], help="for CenterPoint; default: those of --scan")
    parser.add_argument("--cases", nargs="*", default=list(CASES), help=", ".join(CASES))
    parser.add_argument("--passes", type=int, default=passes)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spconv", action="store_true")
    return parser


def main() -> None:
    parser = parser_of(__doc__, passes=50)
    parser.add_argument("--types", nargs="*", default=["autocast", "half"])
    options = parser.parse_args()
    device = torch.device(options.device)
    print(f"milliseconds on {torch.cuda.get_device_name() if device.type == 'cuda' else 'the CPU'}, PyTorch {torch.__version__}")
    for case in options.cases:
        network, factor, batch = CASES[case]
        factor = factor if device.type == "cuda" else 0.125
        scans = options.sweeps if network == "centerpoint" and options.sweeps else options.scan
        for kind in options.types:
            works = scenes(network, scans, batch, device)
            net = model(network, factor).to(device).eval()
            ways = {"": net}
            if options.spconv and case == "minkunet42":
                ways[", for spconv"] = written_for_spconv(factor).to(device).eval()
            for suffix, net in ways.items():
                if kind == "half":
                    net.half()
                    for work in works:
                        work.features = work.features.half()
                nn.freeze(net)
                with torch.autocast(device.type, torch.float16, enabled=kind == "autocast" and device.type == "cuda"):
                    run_case(f"{case}{suffix}, {kind}", net, bool(suffix), works, options)


def run_case(
    name: str, net: torch.nn.Module, of_spconv: bool, works: list[Workload], options: argparse.Namespace
) -> None:
    def sparse(work: Workload) -> object:
        if of_spconv:
            from pumice.compat import spconv

            return spconv.SparseConvTensor(work.features, work.cells, work.spatial_shape, work.batch_size)
        return pumice.SparseTensor(work.cells, work.features, spatial_shape=work.spatial_shape, batch_size=work.batch_size)

    def give(fast: Callable[..., object], work: Workload) -> object:
        if of_spconv:
            return fast(sparse(work))
        shape = work.spatial_shape if work.network == "centerpoint" else None  # which cuts its levels
        return fast(work.cells, work.features, batch_size=work.batch_size, spatial_shape=shape)

    compare(name, net, give, sparse, works, options)


def written_for_spconv(factor: float) -> torch.nn.Module:
    """The network of benchmarks/peers, on Pumice."""
    import pumice.compat.spconv

    pumice.compat.spconv.install()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
    import spconv_networks

    torch.manual_seed(0)
    widths = [max(1, int(factor * width)) for width in spconv_networks.SPVNAS]
    return spconv_networks.MinkUNet42(widths=widths)


if __name__ == "__main__":
    main()
