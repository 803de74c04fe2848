#!/usr/bin/env python3
"""Single 3x3x3 submanifold layers of Pumice and of other libraries, in the same run: of few and of many channels, on a scan and
on shells of spheres, which is what 3-D generation works on.

    python benchmarks/peers/single_layers.py [--scan SCAN] [--channels 16 32 64 96 128 256]
        [--shell 64:1024 128:512 256:256 512:128 1024:64 | none] [--peer flexgemm spconv … | none]
        [--rounds 6] [--passes 10] [--seconds 120] [--record FILE]

A shell of R:C holds the cells within 1.25 of the surface of a ball that fills a grid of R^3, and C channels; without --scan
the first scan is a simulated street. Layers, features and gradients are in half precision, weights the same for all
libraries, and what a library computes in float32 is compared before it is timed. Maps are made once and stay. Rounds take turns in
changing order; the table has medians over rounds, and beside the time of a pass that begins on an idle device and is waited
for that of its kernels alone. --record writes JSON in the form of driving.py's records, one workload for each voxels and channels.
With --seconds each of those gets an equal share of the time that is left, within which rounds begin.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from adapters import ADAPTERS, Absent, Voxels, first_line, kind_of, look_for, open_library
from driving_suite import ours, records
from driving_suite.cases import Case, Job, cases_of, difference, layer_output_of
from driving_suite.energy import Meter
from driving_suite.inputs import Batch, Sources, scans_of, voxels_of
from driving_suite.records import Record, Row
from driving_suite.remote import Child, Ended, RefusedByChild
from driving_suite.workloads import WORKLOADS

import pumice

# Sums of 27 * 1024 products in float32, in another order.
TOLERANCE = 1e-3
SHELLS = ("64:1024", "128:512", "256:256", "512:128", "1024:64")
THICKNESS = 1.25  # cells
PLANES = 32  # of a grid, looked through at a time
STREET = next(work for work in WORKLOADS if work.name == "SK-M-1x")
HEADS = ("voxels of", "number", "channels", "pass", "library", "ms", "lowest – highest", "kernels alone, µs")


def shell(resolution: int, device: torch.device) -> Voxels:
    """The cells of a grid of that many cubed whose centres lie within THICKNESS below the surface of the ball that fills it."""
    along = torch.arange(resolution, device=device, dtype=torch.float32) + 0.5 - resolution / 2
    squares = along[:, None].square() + along.square()
    found = []
    for first in range(0, resolution, PLANES):
        radius = (along[first : first + PLANES, None, None].square() + squares).sqrt()
        cells = ((radius > resolution / 2 - THICKNESS) & (radius < resolution / 2)).nonzero()
        cells[:, 0] += first
        found.append(cells)
    cells = torch.nn.functional.pad(torch.cat(found), (1, 0)).int().contiguous()
    return Voxels(cells, [resolution] * 3, 1)


def street(scan: Path | None, tiny: bool, device: torch.device) -> tuple[str, Voxels]:
    """Voxels of 5 cm of a scan, or of a simulated one."""
    clouds = [pumice.read_points(scan)] if scan else scans_of(STREET, Sources({}, "", None), 1, 0)[0]
    cells, _ = voxels_of(STREET, clouds[0], tiny, 0)
    grid = [int(most) + 1 for most in cells.max(0)]
    cells = torch.nn.functional.pad(torch.from_numpy(cells), (1, 0)).int().contiguous()
    return scan.name if scan else "simulated street", Voxels(cells.to(device), grid, 1)


def pair(text: str) -> tuple[int, int] | None:
    if text == "none":
        return None
    resolution, _, channels = text.partition(":")
    if not (resolution.isdigit() and channels.isdigit() and int(resolution) > 2 and int(channels) > 0):
        raise argparse.ArgumentTypeError(f"{text}: give RESOLUTION:CHANNELS, as 256:256, or none")
    return int(resolution), int(channels)


class Run:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = torch.device(options.device)
        on_gpu = self.device.type == "cuda"
        if on_gpu and self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        self.meter = Meter(str(torch.cuda.get_device_properties(self.device).uuid) if on_gpu else None)
        self.record, self.versions = Record({}), {}
        self.end = math.inf if options.seconds is None else time.monotonic() + options.seconds
        self.until = math.inf  # of a problem

    def measure(self) -> Record:
        options = self.options
        name, voxels = street(options.scan, options.size == "tiny", self.device)
        problems = [(name, voxels, channels) for channels in options.channels]
        shells = [one for one in options.shell if one]
        print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}", flush=True)
        for number in range(len(problems) + len(shells)):
            self.until = time.monotonic() + (self.end - time.monotonic()) / (len(problems) + len(shells) - number)
            if number < len(problems):
                self.problem(*problems[number])
            else:
                resolution, channels = shells[number - len(problems)]
                self.problem(f"shell of {resolution}", shell(resolution, self.device), channels)
        said = {key: str(value) for key, value in vars(options).items() if not isinstance(value, Path)}
        self.record.header = records.header(self.device, self.meter, self.versions, said, options.commit)
        return self.record

    def problem(self, name: str, voxels: Voxels, channels: int) -> None:
        """One table's rows."""
        n = len(voxels.cells)
        nothing = torch.zeros(n, 1, device=self.device)
        batch = Batch(voxels, nothing, torch.zeros(n, dtype=torch.int64, device=self.device))
        job = Job(None, [], [], [], [batch], [], {}, [channels])
        workload, children = f"{name}, {n} voxels, {channels} channels", []
        try:
            running = self.contestants(workload, job, children)
            found = {id(case): [] for case in running}
            for turn in range(-1, self.options.rounds):  # the first warms up
                if turn > 0 and time.monotonic() > self.until:
                    break
                for case in list(running) if turn % 2 == 0 else list(reversed(running)):
                    try:
                        if turn < 0:
                            case.passes.warm_up(self.options.passes)
                        else:
                            found[id(case)].append(case.passes.round(self.options.passes))
                    except Exception as error:  # one that fails leaves the others to be measured
                        self.leave_out(workload, case.library, case.task, error)
                        running.remove(case)
            for case in running:
                self.keep(workload, name, n, channels, case, found[id(case)])
        finally:
            for child in children:
                child.close()

    def contestants(self, workload: str, job: Job, children: list[Child]) -> list[Case]:
        """Pumice and each library that is there and computes the same."""
        mine = ours.Pumice()
        cases, refusals = cases_of(mine, job)
        wanted = layer_output_of(mine, job)
        for name in self.options.peer:
            try:
                if look_for(name).own_process:
                    children.append(Child(name, job, until=self.until))
                    library = children[-1]
                    output = library.layer_output
                else:
                    library = open_library(name)
                    output = lambda library=library: layer_output_of(library, job)  # noqa: E731
                self.versions[name] = library.version()
                apart = difference(wanted, output())
                self.record.agreement.append(
                    {"workload": workload, "library": kind_of(name).name, "types": "float32", "difference": apart}
                )
                if not apart <= TOLERANCE:
                    raise Absent(f"its outputs in float32 differ by {apart:.1e} of the largest")
                made = library.cases() if kind_of(name).own_process else cases_of(library, job)
            except Exception as error:  # whatever a library does, the others are measured
                self.leave_out(workload, kind_of(name).name, "", error)
                continue
            cases, refusals = cases + made[0], refusals + made[1]
        for refusal in refusals:
            self.leave_out(workload, refusal.library, refusal.task, Absent(refusal.reason))
        return cases

    def leave_out(self, workload: str, library: str, task: str, error: Exception) -> None:
        reason = first_line(error) if isinstance(error, (Absent, Ended, RefusedByChild)) else f"{type(error).__name__}: {first_line(error)}"
        self.record.left_out.append({"workload": workload, "library": library, "task": task, "way": "half", "reason": reason})
        print(f"not measured: {library}{', ' + task if task else ''}: {reason}", file=sys.stderr, flush=True)

    def keep(self, workload: str, name: str, n: int, channels: int, case: Case, rounds: list) -> None:
        extras = case.passes.extras(min(5, self.options.passes), self.meter, 0.0)
        times = [one.ms for one in rounds]
        middle, row = statistics.median(times), statistics.median(one.row_ms for one in rounds)
        host = statistics.median(one.host_ms for one in rounds)
        self.record.rows.append(Row(
            workload, name, n, case.task, case.library, case.way, case.norms, middle, min(times), max(times), host, row,
            extras.busy_ms, extras.peak_mib, None, len(rounds),
        ))  # fmt: skip
        busy = "" if extras.busy_ms is None else f"{extras.busy_ms * 1e3:.1f}"
        what = case.task.rpartition(", ")[2]
        cells = (name, f"{n:,}", channels, what, case.library, f"{middle:.3f}", f"{min(times):.3f} – {max(times):.3f}", busy)
        print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scan", type=Path, help="float32 x y z intensity (.bin), or any other that Pumice reads")
    parser.add_argument("--channels", nargs="*", type=int, default=(16, 32, 64, 96, 128, 256), help="on the scan")
    parser.add_argument("--shell", nargs="+", type=pair, default=[pair(one) for one in SHELLS], help="RESOLUTION:CHANNELS")
    parser.add_argument("--peer", nargs="+", choices=(*ADAPTERS, "none"), default=tuple(ADAPTERS))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--passes", type=int, default=10, help="of a layer in a round")
    parser.add_argument("--seconds", type=float, help="after which no round begins (default: no end)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", choices=("full", "tiny"), default="full", help="tiny: some hundred voxels of the scan, for tests")
    parser.add_argument("--commit", help="of the tree, for the record of a copy that is no git checkout")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    for name in ("rounds", "passes"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: give at least 1")
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit(f"single_layers.py: --device {options.device} needs a CUDA device, and PyTorch finds none; --device cpu runs "
                 "on the processor")  # fmt: skip
    if "none" in options.peer:
        options.peer = ()
    try:
        record = Run(options).measure()
        if options.record:
            options.record.write_text(record.to_json(), encoding="utf-8")
    except (pumice.UserError, OSError) as error:
        sys.exit(f"single_layers.py: {first_line(error)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
