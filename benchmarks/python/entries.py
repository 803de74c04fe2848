"""Time against the number of entries: products of sparse matrices, and how long their patterns take to be made.

    python benchmarks/python/entries.py [--device cuda] [--smallest 1e6] [--largest 5e8] [--channels 32] [--dtype float32]

Patterns have degrees of a power law on both sides and `--degree` entries a row, and are drawn where they are used. For each
size: spmm without and with values, sddmm, and pumice.Graph of unsorted edges, each the median of `--passes`. The exponent is
the slope of a straight line through the logarithms of sizes and times: 1 is as much time for each entry at any size.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

import pumice

PART = 2**24  # entries that are drawn at once
STEPS = (1, 2, 5)


def sizes(smallest: float, largest: float) -> list[int]:
    """1, 2 and 5 times powers of ten, from `smallest` to `largest`."""
    powers = range(round(math.floor(math.log10(smallest))), round(math.ceil(math.log10(largest))) + 1)
    return [step * 10**power for power in powers for step in STEPS if smallest <= step * 10**power <= largest]


def power_law(nodes: int, entries: int, device: torch.device) -> Tensor:
    """int32 [2, entries], sources and targets in no order, some of them repeated. Of the law of `power_law_edges`, whose
    draws are the CPU's."""
    torch.manual_seed(0)
    weight = (torch.rand(nodes, device=device, dtype=torch.float64).clamp(min=1e-12) ** (-1 / 1.5)).clamp(max=nodes / 50 + 1)
    ends = weight.cumsum(0) / weight.sum()
    popular = torch.randperm(nodes, device=device)
    edges = torch.empty(2, entries, dtype=torch.int32, device=device)
    for begin in range(0, entries, PART):
        count = min(PART, entries - begin)
        target = torch.searchsorted(ends, torch.rand(count, device=device, dtype=torch.float64)).clamp(max=nodes - 1)
        place = torch.rand(count, device=device, dtype=torch.float64).clamp(min=1e-12) ** (-1 / 1.2) - 1
        source = popular[(place * nodes / 50).clamp(max=nodes - 1).long()]
        edges[0, begin : begin + count] = source
        edges[1, begin : begin + count] = target
    return edges


def milliseconds(work: Callable[[], object], device: torch.device, passes: int) -> float:
    """The median, of device time on a GPU, after a first pass that does not count."""
    work()
    times = []
    for _ in range(passes):
        if device.type == "cuda":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize(device)
            begin.record()
            work()
            end.record()
            torch.cuda.synchronize(device)
            times.append(begin.elapsed_time(end))
        else:
            start = time.perf_counter()
            work()
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def measure(nodes: int, entries: int, device: torch.device, options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds by what was measured."""
    dtype = getattr(torch, options.dtype)
    edges = power_law(nodes, entries, device)
    made = milliseconds(lambda: pumice.Graph(edges, nodes), device, options.passes)
    graph = pumice.Graph(edges, nodes)
    x = torch.rand(nodes, options.channels, device=device).to(dtype)
    values = torch.rand(entries, device=device).to(dtype)
    with torch.no_grad():
        return {
            "spmm": milliseconds(lambda: pumice.ops.spmm(graph, x), device, options.passes),
            "spmm with values": milliseconds(lambda: pumice.ops.spmm(graph, x, values), device, options.passes),
            "sddmm": milliseconds(lambda: pumice.ops.sddmm(graph, x, x), device, options.passes),
            "making the graph": made,
        }


def memory(nodes: int, entries: int, options: argparse.Namespace) -> int:
    """Bytes that a size takes at most: edges, values and the graph itself, and beside them the keys and places of a sort."""
    return entries * 72 + nodes * (3 * 4 * options.channels + 32)


def exponent(entries: list[int], times: list[float]) -> float:
    """The slope of the straight line nearest to (log entries, log times)."""
    x, y = [math.log(count) for count in entries], [math.log(took) for took in times]
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--smallest", type=float, default=1e6)
    parser.add_argument("--largest", type=float, default=5e8)
    parser.add_argument("--degree", type=int, default=16, help="entries a row, on average")
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], default="float32")
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit(f"entries.py: --device {device} needs a CUDA device, and PyTorch finds none; --device cpu runs on the processor")
    counts = sizes(options.smallest, options.largest)
    if len(counts) < 2:
        sys.exit("entries.py: between --smallest and --largest are fewer than two sizes: 1, 2 and 5 times powers of ten")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"{name}, {options.dtype}, {options.channels} channels, {options.degree} entries a row; ms (ns an entry)")
    table: dict[int, dict[str, float]] = {}
    for entries in counts:
        nodes = max(entries // options.degree, 1)
        if device.type == "cuda":
            free = torch.cuda.mem_get_info(device)[0]
            if memory(nodes, entries, options) > free:
                needed = memory(nodes, entries, options) / 2**30
                print(f"{entries:12,} entries take some {needed:.0f} GiB, and {free / 2**30:.0f} are free: left out")
                continue
        table[entries] = measure(nodes, entries, device, options)
        shown = "; ".join(f"{what} {took:.3f} ({took / entries * 1e6:.3f})" for what, took in table[entries].items())
        print(f"{entries:12,} entries: {shown}", flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if len(table) > 1:
        for what in next(iter(table.values())):
            slope = exponent(list(table), [row[what] for row in table.values()])
            print(f"{what}: time grows as entries to the power of {slope:.3f}")


if __name__ == "__main__":
    main()
