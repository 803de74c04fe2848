"""The update of parameters as a graph holds it: a flag of the device keeps it from changing anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .rates import Rates
from .training import Training, is_fused, overflow_of
from .undo import Undo


class GuardedUpdate:
    """What `Training.update` does, without a look at a number. All buckets share one, since one runs at a time.

    Where there was trouble nothing changes: fused kernels are told not to write; buffers, the scaler, and what other
    optimisers wrote are taken back. Where gradients of a scaled loss are not finite, parameters and what the optimiser
    knows of them stay, as in `GradScaler.step`."""

    def __init__(self, training: Training, device: torch.device) -> None:
        self._training = training
        optimizer = training.optimizer
        self.rates = Rates(optimizer, device)
        self._fused = is_fused(optimizer)
        # Kernels of CUDA that are recorded ask for it; those that are fused are ready for it anyway.
        self._capturable = [
            bool(device.type == "cuda" and group.get("fused") and "capturable" in group) for group in optimizer.param_groups
        ]
        optimizer._warned_capturable_if_run_uncaptured = True  # type: ignore[attr-defined]
        scaler = training.scaler
        numbers: list[Any] = [] if scaler is None else [scaler._scale, scaler._growth_tracker]
        self._surroundings = Undo([*training.buffers(), *(number for number in numbers if number is not None)])
        self._weights = None if self._fused else Undo(written_by(optimizer))

    def begin(self) -> None:
        """Before the pass there."""
        self._surroundings.note()
        if self._weights is not None:
            self._weights.note()

    def update(self, loss: Tensor, trouble: Tensor) -> Tensor:
        """After the pass back. `trouble`: a float of the device, 1 where nothing may change. Returns the loss, NaN
        there. Does not wait."""
        training = self._training
        optimizer, scaler, tallies = training.optimizer, training.scaler, training.tallies
        assert tallies is not None
        skipped = trouble
        if scaler is not None:
            scaler.unscale_(optimizer)
            overflow = (overflow_of(scaler, optimizer) != 0).float()
            skipped = torch.maximum(trouble, overflow)
            tallies.overflows.add_((skipped - trouble).to(torch.int64))
        norm = training.clip()
        with self.rates.in_use(), self._recorded(skipped):
            optimizer.step()
        if self._weights is not None:
            self._weights.take_back(skipped)
        if scaler is not None:
            scaler.update()
        self._surroundings.take_back(trouble)
        tallies.exceeded.add_(trouble.to(torch.int64))
        tallies.keep_norm(norm)
        training.drop_gradients()
        return torch.where(trouble != 0, torch.full_like(loss, float("nan")), loss)

    @contextmanager
    def _recorded(self, skipped: Tensor) -> Iterator[None]:
        optimizer: Any = self._training.optimizer
        if not self._fused:
            yield
            return
        groups = [group for group, swap in zip(optimizer.param_groups, self._capturable) if swap]
        own = [group["capturable"] for group in groups]
        for group in groups:
            group["capturable"] = True
        optimizer.grad_scale, optimizer.found_inf = None, skipped
        try:
            yield
        finally:
            del optimizer.grad_scale, optimizer.found_inf
            for group, value in zip(groups, own):
                group["capturable"] = value


def written_by(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The parameters of an optimiser, and the tensors that it keeps for each."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    kept = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
    return [*parameters, *kept]
