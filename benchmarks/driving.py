#!/usr/bin/env python3
"""The seven driving benchmarks: inference and training steps of Pumice from Python, layer by layer and compiled, inference of
its C++ networks, and other libraries where they can be imported, in the same run.

    python benchmarks/driving.py [--workload SK-M-1x …] [--task inference training] [--way autocast half bf16 tf32 f32]
        [--peer spconv torchsparse spconv-triton warpconvnet minkowski flexgemm | none] [--layers 16 64 128]
        [--semantickitti FOLDER] [--nuscenes FOLDER] [--waymo FOLDER] [--scans 4] [--ablation]
        [--rounds 6] [--passes 10] [--budget-s 300] [--out FOLDER [--add]] [--compare RECORD --tolerance 1.1]
    python benchmarks/driving.py --draw RECORD --out FOLDER

Scans are those of a dataset's folder where one is given, else those below PUMICE_DATA, else simulated streets; the table
says which. All libraries get the same voxels and the same weights, and what they compute in float32 is compared before
anything is timed: one that differs is not measured. Then rounds in which all cases take turns, in changing order. A
peer counts with the faster of `.half()` and autocast.

Compiled networks and steps are compared with those layer by layer before they are timed: outputs, and the losses of their
first steps. The C++ networks run in a process of their own, on the first scan (`pumice bench driving`).

--out writes driving.json, driving.csv and driving.html, after each workload; with --add to the record that lies there, of
the same device and commit, in which rows measured again are replaced. Records that are kept lie in benchmarks/records.
With --budget-s each workload gets an equal share of the time that is left, within which rounds begin; what there was no
time for is named, and rows say how many rounds they had. --compare ends with exit status 3 where a row of Pumice takes
more than --tolerance times as long as in that record, relative to a peer where both runs have one.
--ablation measures what can be switched off, one thing at a time, layer by layer, compiled and in graphs of C++, and names
what has no switch. Each row has the work that no implementation leaves out, counted on the maps of its scans, the least time
that the GPU needs for it (driving_suite/work.py), and its share of the row's time.
--size tiny takes a few voxels and a quarter of MinkUNet42's widths, for tests; it runs on a CPU too.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import statistics
import sys
import time
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

from adapters import ADAPTERS, Absent, Library, first_line, look_for, open_library
from driving_suite import ablation, ours, program, records, report, work as counting, workloads
from driving_suite.cases import (
    INFERENCE, KEPT, TASKS, TRAINING, WAYS, Case, Job, Refusal, cases_of, difference, layer_output_of, losses_of, network_of,
    output_after, output_of,
)  # fmt: skip
from driving_suite.energy import Meter
from driving_suite.inputs import Sources, batch_of, scans_of
from driving_suite.records import Record, Row
from driving_suite.remote import TUNED, Child, Ended, RefusedByChild

# Sums of up to 27 * 256 products in float32 through 48 layers, in another order.
TOLERANCE = 1e-3
# Sums in float32 of values rounded to half precision after each of 48 layers, by another plan.
HALF_TOLERANCE = 3e-2
GRAPH_CALLS = 4  # a compiled model learns in two calls of a size and records in the third
PEER_WAYS = ("autocast", "half")
PROGRAM_SECONDS = 15.0  # that the C++ networks have in any case
SLOWER = 3  # exit status
RECORD = "driving.json"
EVERYTHING = "everything"  # of a workload, left out
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")  # of norms, which no optimizer changes


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", nargs="+", choices=workloads.NAMES, default=workloads.NAMES)
    parser.add_argument("--task", nargs="+", choices=("inference", "training"), default=("inference", "training"))
    parser.add_argument("--way", nargs="+", choices=tuple(WAYS), default=tuple(WAYS), help="of Pumice")
    parser.add_argument("--peer", nargs="+", choices=(*ADAPTERS, "none"), default=tuple(ADAPTERS))
    parser.add_argument("--layers", nargs="+", type=int, default=[], help="channels of single layers to measure, too")
    parser.add_argument("--semantickitti", type=Path, help="the folder of the dataset")
    parser.add_argument("--nuscenes", type=Path, help="the folder of the dataset")
    parser.add_argument("--nuscenes-version", default="v1.0-trainval", help="the folder of its tables")
    parser.add_argument("--waymo", type=Path, help="the folder of converted frames")
    parser.add_argument("--scans", type=int, default=4, help="which passes take in turn")
    parser.add_argument("--seed", type=int, default=0, help="of streets, and of the voxels that are left out")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--passes", type=int, default=10, help="of a case in a round")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--norms", nargs="+", choices=("folded", "identity"), default=("folded", "identity"))
    parser.add_argument("--no-extras", action="store_true", help="times alone: no device time, memory and energy")
    parser.add_argument("--energy-seconds", type=float, default=1.0, help="of passes of each case; 0: it is not measured")
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--tune-seconds", type=float, default=60, help="of the ablation's tuner, for each task; 0: it is left out")
    parser.add_argument("--commit", help="of the tree, for the record of a copy that is no git checkout")
    parser.add_argument("--no-program", action="store_true", help="without the C++ networks")
    parser.add_argument("--budget-s", type=float, help="seconds after which no round begins (default: no end)")
    parser.add_argument("--out", type=Path, help="a folder for the record, the table and the page")
    parser.add_argument("--add", action="store_true", help="to the record in --out")
    parser.add_argument("--compare", type=Path, help="a record")
    parser.add_argument("--tolerance", type=float, default=1.1)
    parser.add_argument("--draw", type=Path, help="a record whose page is to be written, without a run")
    options = parser.parse_args()
    for name in ("scans", "rounds", "passes"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: give at least 1")
    if options.budget_s is not None and not options.budget_s > 0:
        parser.error(f"--budget-s {options.budget_s:g}: give seconds above 0")
    if options.draw and not options.out:
        parser.error("--draw needs --out, the folder of the page")
    if options.add and not options.out:
        parser.error("--add needs --out, the folder of the record")
    if "none" in options.peer:
        options.peer = ()
    return options


def reason_of(error: Exception) -> str:
    """In a sentence; of what other code raises with the kind of error."""
    own = isinstance(error, (Absent, Ended, RefusedByChild))
    return first_line(error) if own else f"{type(error).__name__}: {first_line(error)}"


class Run:
    """The workloads of one command."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = torch.device(options.device)
        on_gpu = self.device.type == "cuda"
        if on_gpu and not torch.cuda.is_available():
            sys.exit(f"driving.py: --device {options.device} needs a CUDA device, and PyTorch finds none; --device cpu runs "
                     "on the processor")  # fmt: skip
        if on_gpu and self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        self.meter = Meter(str(torch.cuda.get_device_properties(self.device).uuid) if on_gpu else None)
        folders = {name: getattr(options, name) for name in ("semantickitti", "nuscenes", "waymo")}
        recorded = os.environ.get("PUMICE_DATA")
        self.sources = Sources(
            {name: folder for name, folder in folders.items() if folder is not None},
            options.nuscenes_version,
            Path(recorded) if recorded else None,
        )
        self.versions: dict[str, str] = {}
        self.record = Record({})
        self.earlier = 0  # of what was left out, from the record that this run adds to
        if options.add:
            self.record = Record.read(options.out / RECORD)
            self.earlier = len(self.record.left_out)
            self.versions.update(records.peers_of(self.record))
        self.tiny = options.size == "tiny"
        self.output: tuple | None = None
        self.limits = counting.limits_of(self.device)
        self.counts: tuple[Job, dict[bool, list]] | None = None
        self.end = math.inf if options.budget_s is None else time.monotonic() + options.budget_s
        self.until = math.inf  # of a workload

    def measure(self) -> Record:
        """Writes what there is after each workload, for a run that is cut short."""
        options = self.options
        settings = {
            key: [str(one) for one in value] if isinstance(value, (list, tuple)) else str(value)
            for key, value in vars(options).items() if value is not None and not isinstance(value, Path)  # of this machine
        }  # fmt: skip
        before = self.record.header
        if before:  # refused before the run
            records.added(before, records.header(self.device, self.meter, self.versions, settings, options.commit))
        for number, name in enumerate(options.workload):
            work = next(work for work in workloads.WORKLOADS if work.name == name)
            left = self.end - time.monotonic()
            self.until = time.monotonic() + left / (len(options.workload) - number)
            if left > 0:
                self.workload(workloads.slim(work) if self.tiny else work)
            else:
                self.leave_out(work, Refusal(EVERYTHING, "", " ".join(options.way), self.out_of_time))
            header = records.header(self.device, self.meter, self.versions, settings, options.commit)
            self.record.header = records.added(before, header) if before else header
            self.drop_what_was_measured_since()
            if options.out:
                write(self.record, options.out, True)
        return self.record

    @property
    def out_of_time(self) -> str:
        return f"the {self.options.budget_s:g} s of --budget-s were over"

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.until

    def drop_what_was_measured_since(self) -> None:
        """Of what the record that this run adds to had left out."""

        def has_rows(one: dict[str, str]) -> bool:
            of_it = [row for row in self.record.rows if row.workload == one["workload"]]
            if one["library"] == EVERYTHING:
                return any(row.way in one["way"].split() for row in of_it)
            return any((row.library, row.task, row.way) == (one["library"], one["task"], one["way"]) for row in of_it)

        old, new = self.record.left_out[: self.earlier], self.record.left_out[self.earlier :]
        old = [one for one in old if not has_rows(one)]
        self.record.left_out, self.earlier = old + new, len(old)

    def job(self, work: workloads.Workload) -> tuple[Job, str]:
        options = self.options
        clouds, source = scans_of(work, self.sources, max(options.scans, work.training_batch), options.seed)
        batch = work.training_batch
        single = [batch_of(work, [cloud], self.tiny, options.seed, self.device) for cloud in clouds[: options.scans]]
        turned = [clouds[i:] + clouds[:i] for i in range(0, len(clouds), batch)]
        pairs = [batch_of(work, some[:batch], self.tiny, options.seed, self.device) for some in turned]
        tasks = [INFERENCE, KEPT] if "inference" in options.task else []
        tasks += [TRAINING] if "training" in options.task else []
        state = workloads.network(work).state_dict()
        return Job(work, options.way, tasks, options.norms, single, pairs, state, options.layers), source

    def workload(self, work: workloads.Workload) -> None:
        job, source = self.job(work)
        voxels = int(statistics.mean(len(batch.features) for batch in job.single))
        cpu = "" if self.device.type == "cuda" else "; on a CPU half and autocast compute in bfloat16"
        print(f"\n{work.name}: {voxels:,} voxels a scan, {source}{cpu}", flush=True)
        eager, children = ours.Pumice(), []
        cases = self.ready(work, *cases_of(eager, job))
        if not self.options.ablation:
            if "folded" in job.norms:
                cases += self.compiled(work, dataclasses.replace(job, norms=["folded"], layers=()))
            for name in self.options.peer:
                if self.is_late:
                    reason = f"the workload's share of the {self.options.budget_s:g} s of --budget-s was over"
                    self.leave_out(work, Refusal(name, "", "", reason))
                else:
                    cases += self.peer(work, name, job, children)
        else:
            cases += self.ablation(work, job, children)
        try:
            self.rounds(work, source, job, cases)
            if INFERENCE in job.tasks and "folded" in job.norms and not self.options.no_program:
                self.program(work, job)
        finally:
            for child in children:
                child.close()

    def ready(self, work: workloads.Workload, cases: list[Case], refusals: list[Refusal]) -> list[Case]:
        for refusal in refusals:
            self.leave_out(work, refusal)
        return cases

    def leave_out(self, work: workloads.Workload, refusal: Refusal) -> None:
        row = {"workload": work.name, **dataclasses.asdict(refusal)}
        if row not in self.record.left_out:
            self.record.left_out.append(row)
        what = " ".join(part for part in (refusal.task, refusal.way) if part)
        print(f"  not measured: {refusal.library}{', ' + what if what else ''}: {refusal.reason}", flush=True)

    def compiled(self, work: workloads.Workload, job: Job) -> list[Case]:
        try:
            library = ours.Compiled()
        except Absent as reason:
            self.leave_out(work, Refusal(ours.Compiled.name, "", "", str(reason)))
            return []
        tasks = []
        for task, compared in ((INFERENCE, self.compiled_output), (TRAINING, self.compiled_losses)):
            if task not in job.tasks:
                continue
            try:
                compared(work, library, job)
            except Exception as error:  # the others are measured
                self.leave_out(work, Refusal(library.name, task, "", reason_of(error)))
            else:
                tasks += [one for one in job.tasks if one == task or (task, one) == (INFERENCE, KEPT)]
        return self.ready(work, *cases_of(library, dataclasses.replace(job, tasks=tasks)))

    def compiled_output(self, work: workloads.Workload, library: Library, job: Job) -> None:
        """Absent where a graph computes something else than the layers."""
        half = any(way not in ("tf32", "f32") for way in job.ways)
        apart = difference(output_after(ours.Pumice(), job, half, 1), output_after(library, job, half, GRAPH_CALLS))
        types, most = ("half precision", HALF_TOLERANCE) if half else ("float32", TOLERANCE)
        self.agree(work, library, types, apart, most)

    def compiled_losses(self, work: workloads.Workload, library: Library, job: Job) -> None:
        """Absent where the first steps of graphs have other losses than those of layers."""
        way, steps = job.ways[0], (GRAPH_CALLS + 2) * len(job.pairs)
        apart = difference(losses_of(ours.Pumice(), job, way, steps), losses_of(library, job, way, steps))
        self.agree(work, library, f"{way}, of the losses of {steps} steps,", apart, HALF_TOLERANCE)

    def program(self, work: workloads.Workload, job: Job) -> None:
        """Adds the rows of the C++ networks."""
        options = self.options
        name = next(name for name in workloads.NAMES if name == work.name)
        seconds = None if math.isinf(self.until) else max(PROGRAM_SECONDS, self.until - time.monotonic())
        try:
            found = program.rows_of(
                name, options.way, self.device, self.tiny, options.seed, options.rounds, options.passes, seconds,
                ablation=options.ablation and self.device.type == "cuda",
            )
        except program.Refused as reason:
            self.leave_out(work, Refusal(program.NAME, INFERENCE, "", str(reason)))
            return
        for row in found:
            if row.voxels == len(job.single[0].features):
                self.add_work(row, job, self.counts_of(job, False)[:1])
            self.keep(row)

    def counts_of(self, job: Job, training: bool) -> list:
        """What the layers of Pumice's network are given, for each input of passes."""
        if self.counts is None or self.counts[0] is not job:
            self.counts = (job, {})
        known = self.counts[1]
        if training not in known:
            net = network_of(ours.Pumice(), job, "folded").eval()
            library = ours.Pumice()
            batches = job.pairs if training else job.single
            known[training] = [counting.layers_of(net, library.tensor(batch.voxels, batch.features)) for batch in batches]
        return known[training]

    def add_work(self, row: Row, job: Job, counts: list) -> None:
        """What no implementation of the row leaves out, and how much of its time that would take at the limits."""
        parameters = sum(value.numel() for name, value in job.state.items() if not name.endswith(STATISTICS))
        found = counting.work_of(counts, WAYS[row.way], row.task == TRAINING, parameters, self.limits)
        row.gflop, row.gathered_mib, row.moved_mib, row.least_ms = dataclasses.astuple(found)
        row.share = None if row.least_ms is None else row.least_ms / row.ms

    def output_of_ours(self, job: Job) -> tuple:
        """In float32, made where something is compared with it first."""
        if self.output is None or self.output[0] is not job:
            self.output = (job, output_of(ours.Pumice(), job, "folded"))
        return self.output[1]

    def agree(self, work: workloads.Workload, library: Library, types: str, apart: float, most: float) -> None:
        """Absent where the outputs are too far apart."""
        self.record.agreement.append({"workload": work.name, "library": library.name, "types": types, "difference": apart})
        print(f"  {library.name}: outputs in {types} differ by {apart:.1e}", flush=True)
        if not apart <= most:
            raise Absent(f"its outputs in {types} differ by {apart:.1e} of the largest")

    def peer(self, work: workloads.Workload, name: str, job: Job, children: list[Child]) -> list[Case]:
        """Its cases, if it is there and computes the same."""
        try:
            library = look_for(name)
            if not library.own_process:
                library = open_library(name)
            if library.layers_only and not job.layers:
                raise Absent(f"{name} has layers and no networks: --layers measures them")
            if library.other_sites and work.network == "centerpoint":
                raise Absent(f"{name} computes something else: {library.other_sites}")
        except Absent as reason:
            self.leave_out(work, Refusal(name, "", "", str(reason)))
            return []
        ways = ["f32"] if library.float32_only else list(PEER_WAYS)
        given = dataclasses.replace(job, ways=ways)
        try:
            wanted = layer_output_of(ours.Pumice(), job) if library.layers_only else self.output_of_ours(job)
            if library.own_process:
                children.append(Child(name, given, until=self.until))
                self.versions[name] = children[-1].version()
                found = children[-1].output("folded")
            elif library.layers_only:
                self.versions[name], found = library.version(), layer_output_of(library, given)
            else:
                self.versions[name], found = library.version(), output_of(library, given, "folded")
            self.agree(work, library, "float32", difference(wanted, found), TOLERANCE)
            made = children[-1].cases() if library.own_process else cases_of(library, given)
        except Exception as error:  # whatever a library does, the others are measured
            self.leave_out(work, Refusal(library.name, "", "", reason_of(error)))
            return []
        return self.ready(work, *made)

    def ablation(self, work: workloads.Workload, job: Job, children: list[Child]) -> list[Case]:
        tasks = [task for task in job.tasks if task != KEPT]
        half = dataclasses.replace(job, tasks=tasks, norms=["folded"], layers=())
        half.ways = [way for way in job.ways if way in PEER_WAYS] or list(job.ways[:1])  # of one type, which plans are for
        cases = self.compiled(work, half)
        dtype = WAYS[half.ways[0]].dtype
        for library in ablation.ablation(torch.bfloat16 if self.device.type == "cpu" and dtype == torch.float16 else dtype):
            cases += self.ready(work, *cases_of(library, half))
        if self.options.tune_seconds > 0:
            children.append(Child(TUNED, half, self.options.tune_seconds))
            try:
                cases += self.ready(work, *children[-1].cases())
            except (Ended, RefusedByChild) as error:
                self.leave_out(work, Refusal("Pumice, tuned", "", "", reason_of(error)))
        for what, why in ablation.NO_SWITCH.items():
            self.leave_out(work, Refusal(f"Pumice, without {what}", "", "", f"there is no switch: {why}"))
        return cases

    def rounds(self, work: workloads.Workload, source: str, job: Job, cases: list[Case]) -> None:
        passes = self.options.passes
        warm = 1 if self.tiny else max(passes, 4 * len(job.single))  # a compiled model records at the third of a size
        running, found = [], {}
        for case in cases:
            if self.runs(work, case, lambda case=case: case.passes.warm_up(warm)):
                running.append(case)
                found[id(case)] = []
        for turn in range(self.options.rounds):
            if turn > 0 and self.is_late:
                break
            for case in list(running) if turn % 2 == 0 else list(reversed(running)):
                if not self.runs(work, case, lambda case=case: found[id(case)].append(case.passes.round(passes))):
                    running.remove(case)
        print(f"  | {' | '.join(report.HEADS)} |\n  |---|{'---|' * (len(report.HEADS) - 1)}")
        for case in running:
            self.keep(self.row(work, source, job, case, found[id(case)]))

    def keep(self, row: Row) -> None:
        self.record.rows = [one for one in self.record.rows if one.key != row.key]
        self.record.rows.append(row)
        print(f"  | {row.task}: {' | '.join(report.cells(row))} |", flush=True)

    def runs(self, work: workloads.Workload, case: Case, what) -> bool:
        try:
            what()
        except Exception as error:  # one case that fails leaves the others to be measured
            self.leave_out(work, Refusal(case.library, case.task, case.way, reason_of(error)))
            return False
        return True

    def row(self, work: workloads.Workload, source: str, job: Job, case: Case, rounds: list) -> Row:
        times = [one.ms for one in rounds]
        batches = job.pairs if case.task == TRAINING else job.single
        row = Row(
            work.name, source, int(statistics.mean(len(batch.features) for batch in batches)), case.task, case.library,
            case.way, case.norms, statistics.median(times), min(times), max(times),
            statistics.median(one.host_ms for one in rounds), statistics.median(one.row_ms for one in rounds), None, None, None,
            len(rounds),
        )  # fmt: skip
        if case.task in TASKS:
            self.add_work(row, job, self.counts_of(job, case.task == TRAINING))
        if not self.options.no_extras and not self.is_late:
            self.runs(work, case, lambda: self.add_extras(row, case))
        return row

    def add_extras(self, row: Row, case: Case) -> None:
        extras = case.passes.extras(min(5, self.options.passes), self.meter, self.options.energy_seconds)
        row.busy_ms, row.peak_mib, row.energy_mj = extras.busy_ms, extras.peak_mib, extras.energy_mj


def write(record: Record, folder: Path, with_record: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if with_record:
        (folder / RECORD).write_text(record.to_json(), encoding="utf-8")
        (folder / "driving.csv").write_text(record.to_csv(), encoding="utf-8")
    (folder / "driving.html").write_text(report.page(record), encoding="utf-8")


def say_ratios(record: Record) -> None:
    for task in (INFERENCE, TRAINING):
        for library in (records.OURS, records.COMPILED):
            found = records.ratios(record.rows, task, library)
            if found:
                each = ", ".join(f"{name} {ratio:.2f}" for name, ratio in found.items())
                print(f"\n{task}, the fastest peer over {library}: {each}; geometric mean {records.geometric_mean(found.values()):.2f}")


def compare(record: Record, path: Path, tolerance: float) -> int:
    """The exit status."""
    found = records.changes(record, Record.read(path))
    slower = [change for change in found if change.ratio > tolerance]
    for change in sorted(slower, key=lambda one: -one.ratio):
        by = f"relative to {change.against}" if change.against else "by the clock"
        print(f"slower: {', '.join(change.key)}: {change.ratio:.2f} times as long, {by}")
    print(f"{len(found) - len(slower)} of {len(found)} rows within {tolerance:g} times the record's")
    return SLOWER if slower else 0


def main() -> int:
    options = parsed()
    try:
        if options.draw:
            write(Record.read(options.draw), options.out, False)
            print(f"written to {options.out}")
            return 0
        then = options.compare
        if then is not None:
            Record.read(then)  # refused before the run
        record = Run(options).measure()
        say_ratios(record)
        if options.out:
            print(f"\nwritten to {options.out}")
        return 0 if then is None else compare(record, then, options.tolerance)
    except (ValueError, OSError) as error:
        sys.exit(f"driving.py: {first_line(error)}")


if __name__ == "__main__":
    sys.exit(main())
