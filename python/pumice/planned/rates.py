"""Learning rates where a graph reads them: schedules change those of the optimiser, which are numbers of Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class Rates:
    """One float32 number on the device for each group of parameters, but for groups whose own rate lies there already.
    The groups themselves stay as they are."""

    def __init__(self, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
        self._optimizer = optimizer
        self._there: list[Tensor | None] = []
        self._written: list[float | None] = []
        for group in optimizer.param_groups:
            rate = group.get("lr")
            is_there = rate is None or (isinstance(rate, Tensor) and rate.device == device)
            self._there.append(None if is_there else torch.zeros((), device=device))
            self._written.append(None)

    def refresh(self) -> None:
        """Writes what has changed since it was last written. Does not wait."""
        for at, (group, there) in enumerate(zip(self._optimizer.param_groups, self._there)):
            if there is None:
                continue
            rate = float(group["lr"])  # on the host
            if rate != self._written[at]:
                there.fill_(rate)
                self._written[at] = rate

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """In it the optimiser has the rates of the device."""
        groups = self._optimizer.param_groups
        own = [group.get("lr") for group in groups]
        for group, there in zip(groups, self._there):
            if there is not None:
                group["lr"] = there
        try:
            yield
        finally:
            for group, rate, there in zip(groups, own, self._there):
                if there is not None:
                    group["lr"] = rate
