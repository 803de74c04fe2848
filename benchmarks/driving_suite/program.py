"""The program `pumice bench driving` as a contestant: the C++ networks on the first scan, layer by layer and as one graph."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch
from adapters import first_line

from pumice._program import PROGRAM, program_environment

from .cases import INFERENCE, KEPT
from .records import Row

PRECISIONS = {"half": "f16", "bf16": "bf16", "tf32": "tf32", "f32": "f32"}  # autocast is PyTorch's
WAYS = {  # of the program: the name in tables, and the task
    "layers": ("Pumice, C++ layers", INFERENCE),
    "layers, maps kept": ("Pumice, C++ layers", KEPT),
    "graph": ("Pumice, C++ graph", INFERENCE),
    "graph, without groups": ("Pumice, C++ graph, without groups", INFERENCE),
    "graph, implicit_gemm alone": ("Pumice, C++ graph, implicit_gemm alone", INFERENCE),
    "graph, fetch_on_demand alone": ("Pumice, C++ graph, fetch_on_demand alone", INFERENCE),
}
NAME = "Pumice, C++"


class Refused(Exception):
    """What the program said instead of figures."""


def rows_of(
    workload: str, ways: Sequence[str], device: torch.device, tiny: bool, seed: int, rounds: int, passes: int,
    seconds: float | None = None, program: Path = PROGRAM, ablation: bool = False,
) -> list[Row]:  # fmt: skip
    """What it measures of a workload, in a process of its own: each pass is waited for. Raises Refused where it ends with
    an error, is not there or takes more than `seconds`. `ablation`: graphs with one thing switched off, too."""
    precisions = [PRECISIONS[way] for way in ways if way in PRECISIONS]
    if device.type != "cuda":
        precisions = [name for name in precisions if name != "tf32"]  # of a GPU
    if not precisions:
        return []
    where = "cpu" if device.type == "cpu" else f"{device.type}:{device.index or 0}"
    command = [
        str(program), "bench", "driving", "--json", "--workload", workload, "--device", where, "--size", "tiny" if tiny else "full",
        "--precision", ",".join(precisions), "--seed", str(seed), "--rounds", str(rounds), "--repeat", str(passes),
    ]  # fmt: skip
    if ablation:
        command.append("--ablation")
    try:
        done = subprocess.run(command, env=program_environment(), capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise Refused(f"it took more than {seconds:.0f} s") from error
    except OSError as error:
        raise Refused(f"{program} does not run: {os.strerror(error.errno or 0)}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise Refused(first_line(Exception(said[-1])))
    back = {name: way for way, name in PRECISIONS.items()}
    found = []
    for one in json.loads(done.stdout)["measurements"]:
        library, task = WAYS[one["way"]]
        busy = one["device_ms"] if device.type == "cuda" else None
        peak = one["peak_bytes"] / 2**20 if device.type == "cuda" else None
        found.append(Row(
            workload, one["input"], one["voxels"], task, library, back[one["precision"]], "folded", one["ms"], one["min_ms"],
            one["max_ms"], one["host_ms"], None, busy, peak, None, rounds,
        ))  # fmt: skip
    return found
