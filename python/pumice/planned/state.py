"""What a model was when graphs of it were recorded, which read its tensors where they were: a change is noticed."""

from __future__ import annotations

from typing import Any

import torch

from .. import _C
from ..nn.fused import has_hooks
from ..ops.modes import version_of


class ModelState:
    """The modules of a model, and where its parameters and buffers lie and how often each was written into. PyTorch
    does not count writes through `.data`, which are not noticed."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._modules = [_contents(module) for module in model.modules()]
        self._tensors = [
            tensor for _, _, parameters, buffers in self._modules for tensor in (*parameters, *buffers) if tensor is not None
        ]
        self._stamps = self._stamp()

    def _stamp(self) -> list[Any]:
        return [(tensor.data_ptr(), version_of(tensor)) for tensor in self._tensors]

    def holds(self) -> bool:
        """Whether the model is what it was."""
        for known in self._modules:
            now = _contents(known[0])
            for before, after in zip(known[1:], now[1:]):
                if len(before) != len(after):
                    return False
                for one, other in zip(before, after):
                    if one is not other:
                        return False
        return self._stamp() == self._stamps


def _contents(module: torch.nn.Module) -> tuple[Any, ...]:
    return (
        module,
        tuple(module._modules.values()),
        tuple(module._parameters.values()),
        tuple(module._buffers.values()),
    )


def check_runnable(model: torch.nn.Module) -> None:
    """Raises UserError, naming the module, for one in training, and for hooks, which a graph would not call."""
    for name, module in model.named_modules():
        if module.training:
            raise _C.UserError(
                f"{_named(name, module)} is in training, and a compiled model is for inference: call model.eval() first"
            )
        if has_hooks(module):
            raise _C.UserError(
                f"{_named(name, module)} has hooks, which a graph does not call: remove them, or call the model itself"
            )


def is_in_evaluation(model: torch.nn.Module) -> bool:
    """The first half of `check_runnable`, quickly."""
    return not any(module.training for module in model.modules())


def _named(name: str, module: torch.nn.Module) -> str:
    kind = type(module).__name__
    return f"module {name!r} ({kind})" if name else f"the model ({kind})"
