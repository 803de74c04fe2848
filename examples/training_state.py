"""How far the training of examples/train_segmentation.py is, and how that is kept in a checkpoint."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import torch
from training_options import to_save
from training_run import save_checkpoint


class State:
    """A network, what trains it, and how far it is."""

    SCRIPT = "train_segmentation.py"
    _NUMBERS = ("step", "drawn", "best", "finished", "schedule_began", "reserve")

    def __init__(
        self, options: argparse.Namespace, model: torch.nn.Module, saved: dict[str, Any] | None
    ) -> None:
        device = torch.device(options.device)
        self.options = options
        self.model = model.to(device)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.01)
        self.scaler = torch.amp.GradScaler(device.type, enabled=options.amp == "f16")
        half = torch.float16 if options.amp == "f16" else torch.bfloat16
        self.autocast = torch.autocast(device.type, dtype=half, enabled=options.amp != "off")
        self.step = self.drawn = 0  # steps, and the samples that they took
        self.best, self.finished = -1.0, False
        self.schedule_began = 0.0  # seconds, when kernels were compiled and workers ran
        self.reserve = 30.0  # for the last measurements; known better after the first validation
        self._before, self._start = 0.0, time.monotonic()
        if saved is not None:
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.scaler.load_state_dict(saved["scaler"])
            self._before = saved["seconds"]
            for name in self._NUMBERS:
                setattr(self, name, saved[name])

    @property
    def seconds(self) -> float:
        """Since training began, the runs before this one included."""
        return self._before + time.monotonic() - self._start

    @property
    def progress(self) -> float:
        """0 at the beginning, 1 where there is no time or step left."""
        options = self.options
        done = 0.0 if options.steps is None else self.step / options.steps
        if options.minutes is not None:
            end = 60 * options.minutes - self.reserve
            begun = self.schedule_began
            done = max(done, (self.seconds - begun) / max(1.0, end - begun))
        return done

    def save(self, out: Path) -> None:
        """Writes the checkpoint."""
        content = {
            "script": self.SCRIPT,
            "options": to_save(self.options),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "seconds": self.seconds,
        }
        content.update((name, getattr(self, name)) for name in self._NUMBERS)
        save_checkpoint(out, content)


def one_cycle(progress: float, highest: float, rise: float = 0.15) -> float:
    """Cosines from highest / 25 up to the highest rate and down to 1 / 1000 of it."""
    if progress < rise:
        low, high, part = highest / 25, highest, progress / rise
    else:
        low, high, part = highest, highest / 1000, (progress - rise) / (1 - rise)
    return low + (high - low) * (1 - math.cos(math.pi * min(1.0, part))) / 2
