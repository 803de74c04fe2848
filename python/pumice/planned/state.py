"""What a model was when graphs of it were recorded, which read its tensors where they were: a change is noticed."""

from __future__ import annotations

from typing import Any

import torch

from .. import _C
from ..nn.deferred import is_own_hook

_NAMES = ("training", "_modules", "_parameters", "_buffers", "_forward_hooks", "_forward_pre_hooks")


class ModelState:
    """The modules of a model with their hooks, and where its parameters and buffers lie and how often each was written
    into. PyTorch does not count writes through `.data`, and other attributes of modules may be anything: these are
    not noticed."""

    def __init__(self, *models: torch.nn.Module) -> None:
        parts = [vars(module) for model in models for module in model.modules()]
        self._attributes: list[Any] = [(part, tuple(part[name] for name in _NAMES)) for part in parts]
        # As the extension walks through them: of a dictionary with an order of its own, the order of its table.
        self._values = [
            (value, tuple(dict.values(value))) for _, values in self._attributes for value in values if isinstance(value, dict)
        ]
        self._tensors = [tensor for model in models for tensor in (*model.parameters(), *model.buffers())]
        self._stamps = self._stamp()

    def _stamp(self) -> Any:
        return _C.stamps_of(self._tensors)

    def holds(self) -> bool:
        """Whether the model is what it was."""
        return (
            _C.same_attributes(self._attributes, _NAMES)
            and _C.same_values(self._values)
            and self._stamp() == self._stamps
        )


def check_runnable(model: torch.nn.Module) -> None:
    """Raises UserError, naming the module, for one in training, and for hooks of the user's."""
    for name, module in model.named_modules():
        if module.training:
            raise _C.UserError(
                f"{named(name, module)} is in training, and a compiled model is for inference: call model.eval() first"
            )
    check_hooks(model)


def check_hooks(model: torch.nn.Module) -> None:
    """Raises UserError, naming the module, for hooks of the user's: what they do in Python would not be done again by
    a graph."""
    for name, module in model.named_modules():
        hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
        if not all(is_own_hook(hook) for some in hooks for hook in some.values()):
            raise _C.UserError(
                f"{named(name, module)} has hooks, which a graph does not call: remove them, or call the model itself"
            )


def named(name: str, module: torch.nn.Module) -> str:
    """A module of a model as errors name it."""
    kind = type(module).__name__
    return f"module {name!r} ({kind})" if name else f"the model ({kind})"
