"""A progress line, curves as CSV, and TensorBoard's where it is installed."""

from __future__ import annotations

import csv
import shutil
import sys
import time
from pathlib import Path


class TrainingLog:
    """`folder`: gets curves.csv, and tensorboard/ where that package can be imported."""

    COLUMNS = ("step", "seconds", "loss", "rate", "scans_per_s", "miou")

    def __init__(self, folder: Path, append: bool = False) -> None:
        path = folder / "curves.csv"
        fresh = not (append and path.exists())
        self._file = open(path, "w" if fresh else "a", newline="")
        self._rows = csv.DictWriter(self._file, self.COLUMNS)
        if fresh:
            self._rows.writeheader()
        self._terminal = sys.stdout.isatty()
        self._last_line = 0.0
        self._open_line = False
        try:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"))
        except ImportError:
            self._board = None

    def add(self, step: int, seconds: float, **values: float) -> None:
        """One point of each curve."""
        row = {name: f"{value:.6g}" for name, value in values.items()}
        self._rows.writerow({"step": step, "seconds": f"{seconds:.1f}", **row})
        self._file.flush()
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)

    def progress(self, done: float, text: str) -> None:
        """A bar, full where `done` is 1. On a terminal it is one line that is written over, at most
        five times a second; elsewhere a line at most every ten seconds. A full bar is always shown."""
        now = time.monotonic()
        if done < 1 and now - self._last_line < (0.2 if self._terminal else 10):
            return
        self._last_line = now
        done = min(1.0, done)
        full = int(24 * done)
        line = f"[{'#' * full}{'.' * (24 - full)}] {int(100 * done):3} % {text}"
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1  # a longer line could not be written over
            print(f"\r{line[:width]:<{width}}", end="", flush=True)
        else:
            print(line, flush=True)
        self._open_line = self._terminal

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._open_line:
            print()
            self._open_line = False
        print(text, flush=True)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()
