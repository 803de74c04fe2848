"""What a step was when graphs of it were recorded: a change of the model, the optimiser or the scaler is noticed."""

from __future__ import annotations

from typing import Any

import torch

from .. import _C
from .state import ModelState
from .training import Training


class TrainedState(ModelState):
    """The modules as `ModelState` sees them, where tensors lie and which want gradients, but not what is written into
    them, which steps do themselves; what an optimiser keeps, and its numbers but for learning rates; the scaler."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._parameters = training.parameters()
        optimizer = training.optimizer
        self._kept: Any = optimizer.state
        self._kept_values = [(state, tuple(dict.values(state))) for state in (optimizer.state, *optimizer.state.values())]
        super().__init__(*training.modules)

    def holds(self) -> bool:
        """Whether all is what it was."""
        optimizer = self._training.optimizer
        return optimizer.state is self._kept and _C.same_values(self._kept_values) and super().holds()

    def _stamp(self) -> Any:
        optimizer, scaler = self._training.optimizer, self._training.scaler
        kept = [value for state, _ in self._kept_values[1:] for value in state.values() if isinstance(value, torch.Tensor)]
        stamps = _C.stamps_of([*self._tensors, *self._parameters, *kept])
        return (
            memoryview(stamps).cast("q")[::2].tolist(),  # where they lie, without how often they were written into
            [parameter.requires_grad for parameter in self._parameters],
            numbers_of(optimizer),
            None
            if scaler is None
            else (
                id(scaler._scale),
                id(scaler._growth_tracker),
                scaler.get_growth_factor(),
                scaler.get_backoff_factor(),
                scaler.get_growth_interval(),
            ),
        )


def numbers_of(optimizer: torch.optim.Optimizer) -> list[Any]:
    """Of each group its parameters and the arguments of the optimiser, but for learning rates that are numbers."""
    names = [name for name in optimizer.defaults if name != "lr"]
    return [
        (
            [id(parameter) for parameter in group["params"]],
            [_plain(group.get(name)) for name in names],
            id(group["lr"]) if isinstance(group.get("lr"), torch.Tensor) else None,
        )
        for group in optimizer.param_groups
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return id(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
