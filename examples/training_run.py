"""What a training keeps in its folder, and how it is stopped and gone on with."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

WEIGHTS = "model.safetensors"
CHECKPOINT = "checkpoint.pt"
_WRITTEN = (CHECKPOINT, WEIGHTS, "curves.csv", "iou.txt", "tensorboard")


class CannotBegin(Exception):
    """Says in one sentence what the user has to change. Nothing was written."""


def check_unused(out: Path) -> None:
    """Raises CannotBegin where a training has been written already."""
    found = [name for name in _WRITTEN if (out / name).exists()]
    if found:
        go_on = "add --resume to go on with it, or " if CHECKPOINT in found else ""
        raise CannotBegin(
            f"--out {out} holds {', '.join(found)} of another training: {go_on}name another folder"
        )


def make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotBegin(f"--out {out} cannot be made: {error.strerror}") from error


def save_checkpoint(out: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all: a training may be ended at any time."""
    torch.save(dict(content), out / "checkpoint.part")
    os.replace(out / "checkpoint.part", out / CHECKPOINT)


def load_checkpoint(out: Path, script: str) -> dict[str, Any]:
    """What `save_checkpoint` wrote for the same `script`. Raises CannotBegin otherwise."""
    path = out / CHECKPOINT
    if not path.is_file():
        raise CannotBegin(
            f"there is no {path} to go on from: leave --resume out to begin a training, or name the "
            "folder of one with --out"
        )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # what torch.load raises for a damaged file has no common base
        raise CannotBegin(
            f"{path} cannot be read ({str(error).splitlines()[0]}): begin anew with another --out"
        ) from error
    if not isinstance(content, dict) or content.get("script") != script:
        raise CannotBegin(f"{path} was not written by {script}: name the folder of one of its trainings")
    return content


def check_unchanged(out: Path, saved: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises CannotBegin where an option that the weights depend on is not that of the checkpoint."""
    for name, value in now.items():
        if saved[name] != value:
            option = "--" + name.replace("_", "-")
            raise CannotBegin(
                f"{out / CHECKPOINT} was trained with {option} {saved[name]}, not {value}: leave "
                f"{option} out, or begin anew with another --out"
            )


def stopped(out: Path, step: int, launcher: str = "python") -> str:
    """What a training says that has ended before its end."""
    command = f"{launcher} {shlex.quote(sys.argv[0])} --out {shlex.quote(str(out))} --resume"
    return f"Stopped after step {step}, which {out / CHECKPOINT} holds. To go on:\n    {command}"


class Stop:
    """Within `with Stop() as stop`, Ctrl-C or SIGTERM sets `stop.asked`, so that a training can end
    between two steps and write what it has; a second one, a second later or more, ends it at once."""

    def __init__(self, quiet: bool = False) -> None:
        self.asked = 0  # the number of the signal
        self._quiet = quiet
        self._since = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def exit_code(self) -> int:
        """128 + the signal, as shells have it; 0 without one."""
        return 128 + self.asked if self.asked else 0

    def _ask(self, number: int, _frame: object) -> None:
        # A launcher may pass on the signal that the terminal has sent to its processes as well.
        if self.asked and time.monotonic() - self._since > 1:
            raise KeyboardInterrupt
        if not self.asked:
            self.asked, self._since = int(number), time.monotonic()
            if not self._quiet:
                # print() may be what was interrupted, and does not take a second call then.
                os.write(1, b"\nStopping after this step. A second Ctrl-C stops at once, without a checkpoint.\n")
