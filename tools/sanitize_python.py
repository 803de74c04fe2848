#!/usr/bin/env python3
"""Runs networks and training steps from Python under the tools of NVIDIA's compute-sanitizer, layer by layer and as graphs,
and counts what they report, by kernel.

    tools/sanitize_python.py small|real|kernels [TOOL …] [--case minkunet42/training/autocast/graph …] [--limit 540]
        [--except 'REGEX=REASON' …] [--logs FOLDER]

TOOL is memcheck, racecheck, initcheck or synccheck; by default all four for `small`, memcheck and initcheck for `real`. One
process a tool, case and factor; before it the same without a tool, which compiles the kernels that are not at hand.
  small     a street in at most 2,000 voxels, with the kernels that a whole one would run (PUMICE_KERNEL_ROWS)
  real      a whole street
  kernels   which kernels each case runs, and that `small` misses none of `real`; without a tool
What runs is tests/python/sanitized_runs.py, with the Pumice and PyTorch that PYTHONPATH has. Every report counts, whoever's
kernel it is in: PyTorch's too. --except leaves out, from the exit status, kernels whose names match, and says how many reports
those were, and the reason. PyTorch's allocator hands out parts of large blocks: memcheck sees what leaves a block, and
initcheck memory that nobody has written since the block was taken.
Exit status 1 if a tool reported something or a case did not end, 2 where nothing can be run.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "tests/python/sanitized_runs.py"
TOOLS = ("memcheck", "initcheck", "synccheck", "racecheck")
OF_REAL = ("memcheck", "initcheck")
CASES = tuple(
    f"{network}/{task}/{kind}/{mode}"
    for network, task, kinds in (
        ("minkunet42", "training", ("autocast", "f32")), ("minkunet42", "inference", ("half", "f32")),
        ("centerpoint", "training", ("autocast", "f32")), ("centerpoint", "inference", ("half", "f32")), ("graphs", "inference", ("f32",)),
    )
    for kind in kinds for mode in ("graph", "eager")
)  # fmt: skip
FACTORS = (32, 96)  # of rows, with which `kernels` finds all of them
SHOWN = 5  # kernels of a run
NOT_TOLD = "more than were printed"

_AT_KERNEL = re.compile(r"^=+\s+at (?:0x[0-9a-f]+ in (?:.*:)?)?(?P<name>[^+\n]+?)(?:\+0x[0-9a-f]+.*)?$")
_RACE = re.compile(r"^=+\s.*[Rr]ace reported between .*? access at (?:0x[0-9a-f]+ in (?:.*:)?)?(?P<name>[^+\n]+?)(?:\+0x[0-9a-f]+| and | in ).*$")
_CALL = re.compile(r"^=+ Program hit .* on CUDA API call to (?P<name>\w+)")
_SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (?P<count>\d+)")


def reports_of(log: str) -> dict[str, int] | None:
    """How many reports each kernel has, by its name without arguments; None for a log without a summary. Reports that the
    tool counted and did not print are under NOT_TOLD."""
    found: collections.Counter[str] = collections.Counter()
    counts = []
    for line in log.splitlines():
        for pattern, prefix in ((_RACE, ""), (_AT_KERNEL, ""), (_CALL, "call of ")):
            match = pattern.match(line)
            if match is not None:
                found[prefix + _without_arguments(match["name"])] += 1
                break
        match = _SUMMARY.match(line)
        if match is not None:
            counts.append(int(match["count"]))
    if not counts:
        return None
    missing = max(counts) - sum(found.values())
    if missing > 0:
        found[NOT_TOLD] = missing
    return dict(found) if max(counts) > 0 else {}


def _without_arguments(name: str) -> str:
    return name.split("(")[0].strip()


def parted(reports: Mapping[str, int], excepted: Sequence[tuple[re.Pattern[str], str]]) -> tuple[dict[str, int], dict[str, int]]:
    """(reports that count by kernel, those that do not by reason)."""
    counted: dict[str, int] = {}
    left_out: collections.Counter[str] = collections.Counter()
    for name, count in reports.items():
        reason = next((reason for pattern, reason in excepted if name != NOT_TOLD and pattern.search(name)), None)
        if reason is None:
            counted[name] = count
        else:
            left_out[reason] += count
    return counted, dict(left_out)


class Runner:
    """Runs cases and keeps what they say."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.logs: Path = options.logs
        self.logs.mkdir(parents=True, exist_ok=True)
        self.failed = False
        self.warm: set[str] = set()

    def command(self, case: str, size: str) -> list[str]:
        return [self.options.python, str(PROGRAM), *case.split("/"), size]

    def environment(self, factor: int, **more: str) -> dict[str, str]:
        return {**os.environ, "PUMICE_PLANS": "off", "PUMICE_KERNEL_ROWS": str(factor), **more}

    def plain(self, case: str, size: str, factor: int, **more: str) -> str:
        """What the case says without a tool; ends the program where it fails."""
        done = subprocess.run(self.command(case, size), env=self.environment(factor, **more), capture_output=True, text=True)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
            print(f"{case} {size} fails without a tool: {said[-1][:300]}", file=sys.stderr)
            sys.exit(2)
        return done.stderr

    def kernels(self, case: str, size: str, factors: Sequence[int]) -> set[str]:
        """The names of all that a case loads."""
        found = set()
        for factor in factors:
            log = self.plain(case, size, factor, PUMICE_LOG="kernel")
            found |= set(re.findall(r"^\[pumice [^]]*\] kernel: (.*) for sm_[0-9a-z]*: ", log, re.M))
        return found

    def compare_kernels(self, case: str) -> None:
        real, small = self.kernels(case, "real", (1,)), self.kernels(case, "small", FACTORS)
        missing = sorted(real - small)
        print(f"{case}: {len(real)} kernels, {len(missing)} of them not in small", flush=True)
        if not real or missing:
            self.failed = True
            print("\n".join(f"  {name}" for name in missing))

    def sanitize(self, tool: str, case: str, size: str, factor: int) -> None:
        name = f"{tool} {case}/{size}" + (f"/{factor}" if factor > 1 else "")
        key = f"{case}/{size}/{factor}"
        if key not in self.warm:
            self.plain(case, size, factor)
            self.warm.add(key)
        command = [self.options.sanitizer, "--tool", tool, "--print-limit", "1000", *self.command(case, size)]
        start = time.monotonic()
        # In a group of its own: the tool has children, which would go on without it.
        tool_process = subprocess.Popen(
            command, env=self.environment(factor), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            log, _ = tool_process.communicate(timeout=self.options.limit)
        except subprocess.TimeoutExpired:
            os.killpg(tool_process.pid, signal.SIGKILL)
            tool_process.communicate()
            self.failed = True
            print(f"{name}: not done after {self.options.limit:g} s", flush=True)
            return
        seconds, status = time.monotonic() - start, tool_process.returncode
        (self.logs / (name.replace("/", "-").replace(" ", "-") + ".log")).write_text(log, encoding="utf-8")
        reports = reports_of(log)
        if reports is None or (status != 0 and not reports):
            self.failed = True
            last = (log.strip().splitlines() or ["nothing said"])[-1][:200]
            print(f"{name}: exit status {status}, {'no summary' if reports is None else 'no report'}: {last}", flush=True)
            return
        counted, left_out = parted(reports, self.options.excepted)
        self.failed |= bool(counted)
        print(f"{name}: {sum(counted.values()):,} reports, {seconds:.0f} s", flush=True)
        for kernel, count in sorted(counted.items(), key=lambda one: -one[1])[:SHOWN]:
            print(f"  {count:,} in {kernel[:150]}")
        if len(counted) > SHOWN:
            print(f"  and in {len(counted) - SHOWN} more")
        for reason, count in left_out.items():
            print(f"  not counted: {count:,}, {reason}")


def excepted(text: str) -> tuple[re.Pattern[str], str]:
    pattern, _, reason = text.partition("=")
    if not pattern or not reason.strip():
        raise argparse.ArgumentTypeError(f"{text!r}: give REGEX=REASON, with a reason")
    return re.compile(pattern), reason.strip()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=("small", "real", "kernels"))
    parser.add_argument("tool", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("--case", nargs="+", default=list(CASES), metavar="CASE", help="default: " + " ".join(CASES))
    parser.add_argument("--factors", nargs="+", type=int, default=list(FACTORS), help="of rows, in `small`")
    parser.add_argument("--limit", type=float, default=540, help="seconds, which end a case")
    parser.add_argument("--except", dest="excepted", action="append", default=[], type=excepted, metavar="REGEX=REASON")
    parser.add_argument("--logs", type=Path, default=Path("sanitizer"))
    parser.add_argument("--python", default=sys.executable)
    found = os.environ.get("SANITIZER") or shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    parser.add_argument("--sanitizer", default=found)
    options = parser.parse_args()
    for tool in options.tool:
        if tool not in TOOLS:
            parser.error(f"{tool}: there are {', '.join(TOOLS)}")
    for case in options.case:
        if case not in CASES:
            parser.error(f"--case {case}: there are {', '.join(CASES)}")
    return options


def main() -> int:
    options = parsed()
    if options.size != "kernels" and shutil.which(options.sanitizer) is None:
        print(f"compute-sanitizer is not at {options.sanitizer}: install the CUDA toolkit's, or name it by SANITIZER", file=sys.stderr)
        return 2
    runner = Runner(options)
    if options.size == "kernels":
        for case in options.case:
            runner.compare_kernels(case)
        return int(runner.failed)
    factors = options.factors if options.size == "small" else (1,)
    for tool in options.tool or (TOOLS if options.size == "small" else OF_REAL):
        for case in options.case:
            for factor in factors:
                runner.sanitize(tool, case, options.size, factor)
    return int(runner.failed)


if __name__ == "__main__":
    sys.exit(main())
