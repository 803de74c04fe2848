"""A progress line, curves as CSV, and TensorBoard's where it is installed."""

from __future__ import annotations

import csv
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
        """On a terminal one line that is written over, elsewhere a line every ten seconds."""
        terminal = sys.stdout.isatty()
        now = time.monotonic()
        if now - self._last_line < (0.2 if terminal else 10):
            return
        self._last_line = now
        full = int(24 * min(1.0, done))
        line = f"[{'#' * full}{'.' * (24 - full)}] {100 * min(1.0, done):3.0f} % {text}"
        print(f"\r{line:<110}" if terminal else line, end="" if terminal else "\n", flush=True)
        self._open_line = terminal

    def say(self, text: str) -> None:
        if self._open_line:
            print()
            self._open_line = False
        print(text, flush=True)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()
