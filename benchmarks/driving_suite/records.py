"""Records of a run: where and with what it was measured, its rows as JSON and CSV, ratios, and the comparison with a
record that was kept."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import io
import json
import math
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

import pumice

from .energy import Meter, kernel_driver

ROOT = Path(__file__).resolve().parents[2]
OURS, COMPILED = "Pumice", "Pumice, compiled"
WORK = ("gflop", "gathered_mib", "moved_mib", "least_ms", "share")  # columns that older records do not have


@dataclasses.dataclass
class Row:
    """What was measured of one case: medians over rounds, milliseconds a pass."""

    workload: str
    input: str
    voxels: int
    task: str
    library: str
    way: str
    norms: str
    ms: float
    low_ms: float  # the fastest round, and the slowest
    high_ms: float
    host_ms: float
    row_ms: float | None  # one after the other; None where each pass was waited for
    busy_ms: float | None
    peak_mib: float | None
    energy_mj: float | None
    rounds: int  # that were measured
    # What no implementation leaves out (work.py), the least time for it, and its part of `ms`; None where it was not counted.
    gflop: float | None = None
    gathered_mib: float | None = None
    moved_mib: float | None = None
    least_ms: float | None = None
    share: float | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return (self.workload, self.task, self.library, self.way, self.norms)


@dataclasses.dataclass
class Record:
    """One run."""

    header: dict[str, Any]
    rows: list[Row] = dataclasses.field(default_factory=list)
    left_out: list[dict[str, str]] = dataclasses.field(default_factory=list)  # workload, library, task, way, reason
    agreement: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # workload, library, types, difference

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1) + "\n"

    @staticmethod
    def read(path: Path) -> Record:
        """ValueError for a file that is no record."""
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            rows = [Row(**row) for row in given["rows"]]
            return Record(given["header"], rows, given["left_out"], given["agreement"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is no record of this benchmark: {error}") from error

    def to_csv(self) -> str:
        text = io.StringIO()
        names = [field.name for field in dataclasses.fields(Row)]
        names = [name for name in names if name not in WORK or any(getattr(row, name) is not None for row in self.rows)]
        writer = csv.DictWriter(text, names, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(row) for row in self.rows)
        return text.getvalue()


def header(
    device: torch.device, meter: Meter, versions: Mapping[str, str], settings: Mapping[str, Any], of_commit: str | None = None
) -> dict[str, Any]:
    """Where and with what a run was made."""
    on_gpu = device.type == "cuda"
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": of_commit or commit(),
        "device": torch.cuda.get_device_name(device) if on_gpu else processor(),
        "driver": (meter.driver or kernel_driver()) if on_gpu else "",
        "cuda": torch.version.cuda or "",
        "threads": torch.get_num_threads(),
        "versions": {"pumice": pumice.__version__, "torch": torch.__version__, "python": platform.python_version(), **versions},
        "settings": dict(settings),
        "energy": meter.refused or "by the counter of the GPU",
    }  # fmt: skip


def peers_of(record: Record) -> dict[str, str]:
    """The versions of other libraries in a record."""
    return {name: version for name, version in record.header["versions"].items() if name not in ("pumice", "torch", "python")}


def added(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a record to which a run adds rows. ValueError where it ran elsewhere or with something else."""
    for what in ("device", "commit", "driver", "cuda"):
        if before[what] != now[what]:
            raise ValueError(f"--add: the record's {what} is {before[what]} and this run's {now[what]}: give another folder")
    for name, version in now["versions"].items():
        if before["versions"].get(name, version) != version:
            raise ValueError(f"--add: the record is of {name} {before['versions'][name]} and this run of {version}: give another folder")
    earlier = [*before.get("earlier_runs", []), {"date": before["date"], "settings": before["settings"]}]
    return {**now, "versions": {**before["versions"], **now["versions"]}, "earlier_runs": earlier}


def commit() -> str:
    """Of the tree that this file lies in, with + where something was changed; "unknown" outside of git."""
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "CPU"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "CPU")


def is_ours(row: Row) -> bool:
    return row.library.startswith(OURS)


def fastest(rows: Iterable[Row], workload: str, task: str, ours: str | None) -> Row | None:
    """In half precision or under autocast to it, norms in place; of one of ours by its name, or of all peers."""
    found = [
        row for row in rows
        if (row.workload, row.task, row.norms) == (workload, task, "folded") and row.way in ("autocast", "half")
        and (not is_ours(row) if ours is None else row.library == ours)
    ]  # fmt: skip
    return min(found, key=lambda row: row.ms, default=None)


def ratios(rows: list[Row], task: str, library: str = OURS) -> dict[str, float]:
    """By workload: the time of the fastest peer over that of Pumice, layer by layer or compiled."""
    found = {}
    for workload in dict.fromkeys(row.workload for row in rows):
        ours, peer = fastest(rows, workload, task, library), fastest(rows, workload, task, None)
        if ours is not None and peer is not None:
            found[workload] = peer.ms / ours.ms
    return found


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


@dataclasses.dataclass
class Change:
    """A row of ours in two records."""

    key: tuple[str, ...]
    ratio: float  # time now over time then
    against: str  # the peer whose time in each run it is measured by; empty: the clock


def changes(now: Record, then: Record) -> list[Change]:
    """Rows of ours that both have. Where both have the same row of a peer, times count relative to it, so that a slower
    machine changes nothing. ValueError for records of other devices, and for two without a row in common."""
    if now.header["device"] != then.header["device"]:
        raise ValueError(f"this ran on {now.header['device']} and the record on {then.header['device']}: times do not compare")
    new, old = ({row.key: row for row in record.rows} for record in (now, then))
    found = []
    for key, row in new.items():
        if key not in old or not is_ours(row):
            continue
        peers = [
            (other.ms / old[other.key].ms, other.library) for other in now.rows
            if not is_ours(other) and other.key in old and (other.workload, other.task, other.norms) == (row.workload, row.task, row.norms)
        ]  # fmt: skip
        drift, against = sorted(peers)[len(peers) // 2] if peers else (1.0, "")
        found.append(Change(key, row.ms / old[key].ms / drift, against))
    if not found:
        raise ValueError("the record has none of the rows that were measured: nothing to compare")
    return found
