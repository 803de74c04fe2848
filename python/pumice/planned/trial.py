"""Steps that are taken to learn from, and taken back afterwards, whatever the optimiser is."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from .training import Training


class Trial:
    """In it steps may be taken: afterwards parameters, buffers, what the optimiser keeps, the scaler, tallies and random numbers
    are what they were, in the memory where they were. What the optimiser or the scaler have made for the first time is given up:
    `has_made_anew` says so. Holds a copy of everything meanwhile. Waits where random numbers are looked at."""

    def __init__(self, training: Training, device: torch.device) -> None:
        self.has_made_anew = False
        self._training = training
        self._random = torch.random.fork_rng([device] if device.type == "cuda" else [])

    def __enter__(self) -> Trial:
        training = self._training
        self._tallies = training.tallies
        tallies = [] if training.tallies is None else training.tallies.tensors()
        self._norm = None if training.tallies is None else training.tallies.norm
        self._scaler = self._of_scaler()
        self._kept: dict[Any, dict[Any, Any]] = {key: dict(state) for key, state in training.optimizer.state.items()}
        kept = [value for state in self._kept.values() for value in state.values() if isinstance(value, Tensor)]
        tensors = [*training.parameters(), *training.buffers(), *tallies, *kept]
        tensors += [value for value in self._scaler if isinstance(value, Tensor)]
        self._copies = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self._random.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        training = self._training
        self._random.__exit__(kind, error, trace)
        training.drop_gradients()
        with torch.no_grad():
            for tensor, copy in self._copies:
                tensor.copy_(copy)
        self._restore_optimizer()
        scaler = training.scaler
        if scaler is not None:
            self.has_made_anew |= self._of_scaler()[0] is not self._scaler[0]
            scaler._scale, scaler._growth_tracker = self._scaler
        if self._tallies is None:
            training.tallies = None
        elif self._norm is None:
            self._tallies.norm = None
        self._copies = []

    def _restore_optimizer(self) -> None:
        kept: Any = self._training.optimizer.state
        for key in list(kept):
            before = self._kept.get(key, {})
            for name, value in list(kept[key].items()):
                if name not in before:
                    del kept[key][name]
                    self.has_made_anew = True
                elif before[name] is not value:
                    kept[key][name] = before[name]
                    self.has_made_anew |= isinstance(value, Tensor)
            if key not in self._kept:
                del kept[key]
                self.has_made_anew = True

    def _of_scaler(self) -> tuple[Any, Any]:
        scaler = self._training.scaler
        return (None, None) if scaler is None else (scaler._scale, scaler._growth_tracker)
