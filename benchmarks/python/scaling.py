#!/usr/bin/env python3
"""How the time and memory of a whole network grow with the number of voxels: maps, forward pass and training step.

    python benchmarks/python/scaling.py [--scan scan.bin] [--copies 1 2 4 8 16 32 64 128] [--series "forward" …] [--out FOLDER]
        [--seconds 0.5] [--budget-s 300] [--add]

MinkUNet42 on copies of one scan (default: a simulated street) side by side, apart enough that none sees another: 128 copies
have some 12 million voxels, and each size has the same work for a voxel. Series, the forward pass with `.half()`, the step
under autocast in float16 with a GradScaler and fused SGD with momentum:

    maps                            coordinate sets, kernel maps and what kernels run on, planned together, as one CUDA graph
    maps, layer by layer            coordinate sets and kernel maps as layers ask for them
    forward                         pumice.compile, from voxels on
    forward, layer by layer         weights frozen, maps made anew
    training step                   pumice.compile_step, from voxels on
    training step, layer by layer   maps made anew

Times are medians of passes that each begin on an idle device and are waited for. "peak": what PyTorch takes from the GPU
for passes, weights and graphs among it, the scan itself not; "first": also while a size is learned and recorded. A series ends, by name,
where memory does not suffice; on a CPU maps have no graph. Outputs and first losses of both ways are compared at the first
size. --out writes scaling.json, scaling.svg and memory.svg after each size, with the exponents of time (tools/plot_scaling.py);
--add goes on with the record there. Exit status 1 where a series ended for another reason than memory or time.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks/peers"), str(ROOT / "tools"), str(Path(__file__).parent)]

import plot_scaling
from driving_suite import records
from driving_suite.energy import Meter
from scaling_series import SERIES, Scene, agreement, scene_of

import pumice

TITLE = "Time of MinkUNet42 against voxels"
LARGE = 1_000_000  # voxels, from which on an exponent of its own is told
MOST_PASSES = 20
TOLERANCE = 3e-2  # of outputs and losses in half precision, by other plans
IS_MEMORY = "out of memory"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--scan", help="default: a simulated street")
    parser.add_argument("--copies", nargs="+", type=int, default=[1, 2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--series", nargs="+", choices=tuple(SERIES), default=tuple(SERIES))
    parser.add_argument("--seconds", type=float, default=0.5, help="of timed passes for each series and size")
    parser.add_argument("--budget-s", type=float, help="seconds after which no series begins (default: no end)")
    parser.add_argument("--size", choices=("full", "tiny"), default="full", help="tiny: 300 voxels a copy and an eighth of the widths, for tests")
    parser.add_argument("--commit", help="of the tree, for the record of a copy that is no git checkout")
    parser.add_argument("--out", type=Path, help="a folder for the record and the pictures")
    parser.add_argument("--add", action="store_true", help="to the record in --out")
    options = parser.parse_args()
    if min(options.copies) < 1:
        parser.error(f"--copies {min(options.copies)}: give at least 1")
    if options.add and not options.out:
        parser.error("--add needs --out, the folder of the record")
    return options


class Memory:
    """What PyTorch has taken from a GPU since this was made, and given back all that it could before."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._begin()
        self.before = torch.cuda.memory_reserved(device) if device.type == "cuda" else 0

    def _begin(self) -> None:
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)

    def most_mib(self) -> float | None:
        """Since the last call; None on a CPU."""
        if self.device.type != "cuda":
            return None
        found = (torch.cuda.max_memory_reserved(self.device) - self.before) / 2**20
        self._begin()
        return found


def waited(run: Callable[[], object], device: torch.device) -> float:
    """Milliseconds."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return 1e3 * (time.perf_counter() - start)


def measured(name: str, scene: Scene, seconds: float) -> dict[str, Any]:
    """One series at one size."""
    memory = Memory(scene.device)
    run = SERIES[name](scene)
    for _ in range(4):  # two calls learn, the third records
        once = waited(run, scene.device)
    first = memory.most_mib()
    passes = max(3, min(MOST_PASSES, math.ceil(1e3 * seconds / max(once, 1e-3))))
    times = [waited(run, scene.device) for _ in range(passes)]
    return {
        "name": name, "rows": len(scene.cells), "copies": scene.copies, "median_ms": statistics.median(times), "min_ms": min(times),
        "max_ms": max(times), "passes": passes, "peak_mib": memory.most_mib(), "first_mib": first,
    }  # fmt: skip


def exponents_of(record: dict[str, Any]) -> dict[str, dict[str, float]]:
    """By series: over all sizes, and over those from a million voxels on, where there are two."""
    found: dict[str, dict[str, float]] = {}
    for name, points in plot_scaling.series_of(record).items():
        large = [point for point in points if point[0] >= LARGE]
        ranges = {"all": points, "from a million voxels": large}
        found[name] = {what: plot_scaling.power_law(some)[0] for what, some in ranges.items() if len(some) > 1}
    return found


def write(record: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    record["exponents"] = exponents_of(record)
    (folder / "scaling.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for what, name in (("median_ms", "scaling.svg"), ("peak_mib", "memory.svg")):
        series = plot_scaling.series_of(record, what)
        if series and all(len(points) > 1 for points in series.values()):
            (folder / name).write_text(plot_scaling.draw(record, what), encoding="utf-8")


def run(options: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """The record, and the exit status."""
    device = torch.device(options.device)
    end = math.inf if options.budget_s is None else time.monotonic() + options.budget_s
    uuid = str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else None
    settings = {key: value for key, value in vars(options).items() if value is not None and key not in ("out", "scan", "add")}
    header = records.header(device, Meter(uuid), {}, settings, options.commit)
    before = json.loads((options.out / "scaling.json").read_text(encoding="utf-8")) if options.add else {}
    if before:
        header = records.added(before["header"], header)
    record = {
        "title": f"{TITLE}; {header['device']}", "header": header, "measurements": before.get("measurements", []),
        "agreement": before.get("agreement", []), "ended": before.get("ended", []),
    }  # fmt: skip
    status = 0
    going = list(options.series)
    for number, copies in enumerate(sorted(options.copies)):
        scene = scene_of(options.scan, copies, device, options.size == "tiny")
        print(f"{len(scene.cells):,} voxels, {copies} copies", flush=True)
        if number == 0:
            for what, apart in agreement(scene, going).items():
                record["agreement"].append({"what": what, "rows": len(scene.cells), "difference": apart})
                print(f"  {what}: compiled and layer by layer differ by {apart:.1e}", flush=True)
                if not apart <= TOLERANCE:
                    sys.exit(f"scaling.py: {what}: compiled and layer by layer differ by {apart:.1e}: nothing is measured")
        for name in list(going):
            reason = "" if time.monotonic() < end else f"the {options.budget_s:g} s of --budget-s were over"
            if not reason:
                try:
                    row = measured(name, scene, options.seconds)
                except (RuntimeError, ValueError) as error:  # the other series go on
                    reason = f"{type(error).__name__}: {str(error).splitlines()[0][:240]}"
                    status = status if IS_MEMORY in str(error).lower() else 1
            if reason:
                going.remove(name)
                record["ended"].append({"name": name, "rows": len(scene.cells), "reason": reason})
                print(f"  {name}: ends here: {reason}", flush=True)
            else:
                kept = [one for one in record["measurements"] if (one["name"], one["rows"]) != (name, row["rows"])]
                record["measurements"] = [*kept, row]
                peak = "" if row["peak_mib"] is None else f", peak {row['peak_mib']:,.0f} MiB, first {row['first_mib']:,.0f}"
                print(f"  {name:32s} {row['median_ms']:9.3f} ms ({row['min_ms']:.3f} - {row['max_ms']:.3f}, {row['passes']}){peak}", flush=True)
            if device.type == "cuda":
                gc.collect()
                torch.cuda.empty_cache()
        if options.out:
            write(record, options.out)
    return record, status


def main() -> int:
    options = parsed()
    try:
        record, status = run(options)
    except (OSError, KeyError, ValueError, pumice.UserError) as error:
        sys.exit(f"scaling.py: {error}")
    for name, of in exponents_of(record).items():
        print(f"{name}: " + ", ".join(f"exponent {value:.3f} ({what})" for what, value in of.items()))
    return status


if __name__ == "__main__":
    sys.exit(main())
