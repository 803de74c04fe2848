"""Says which module was running where something cannot be recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from .. import _C
from .state import named

Result = TypeVar("Result")
_FAILURES = (_C.Error, ValueError, RuntimeError)
# What PyTorch says of a recording, and what to do.
_REMEDIES = {
    "CUDAGeneratorImpl": "a recording can neither read nor set the state of random numbers, as torch.utils.checkpoint does: give it "
    "preserve_rng_state=False, and have it run nothing that draws random numbers, such as Dropout",
}


def cannot_be_recorded(model: torch.nn.Module, module: torch.nn.Module | None, reason: str) -> _C.UserError:
    """An error that names a module of `model`, or the model itself."""
    names = {id(part): name for name, part in model.named_modules()}
    module = model if module is None else module
    for said, remedy in _REMEDIES.items():
        if said in reason:
            reason = f"{reason.rstrip('.')}: {remedy}"
    return _C.UserError(f"{named(names[id(module)], module)} cannot be recorded as a graph: {reason}")


def named_if_it_fails(model: torch.nn.Module, run: Callable[[], Result]) -> Result:
    """What `run` returns. Where it fails, it runs again with eyes on the modules of `model`, and the UserError names
    the one that was called last: modules that are watched do not compute together, so that others are not."""
    try:
        return run()
    except torch.cuda.OutOfMemoryError:
        raise
    except _FAILURES as error:
        first = error
    last: list[torch.nn.Module] = []
    members = {id(module) for module in model.modules()}

    def note(module: torch.nn.Module, _: Any) -> None:
        if id(module) in members:
            last[:] = [module]

    handle = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        run()
    except _FAILURES:
        pass
    else:
        last = []  # it does not fail where each module computes by itself
    finally:
        handle.remove()
    raise cannot_be_recorded(model, last[0] if last else None, first_line(first)) from first


def first_line(error: BaseException) -> str:
    """The message of the error that came first: ending a recording that failed raises another."""
    while isinstance(error.__context__, Exception):
        error = error.__context__
    return str(error).strip().split("\n")[0]
