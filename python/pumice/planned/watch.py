"""Says which module was running where something cannot be recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .. import _C


@contextmanager
def calling(model: torch.nn.Module) -> Iterator[None]:
    """Raises UserError that names the module of `model` which was called last, for what goes wrong within."""
    names = {id(module): name for name, module in model.named_modules()}
    last: list[Any] = [model]

    def note(module: torch.nn.Module, _: Any) -> None:
        if id(module) in names:
            last[0] = module

    handle = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        raise
    except (_C.Error, ValueError, RuntimeError) as error:
        module = last[0]
        name = names[id(module)]
        kind = type(module).__name__
        raise _C.UserError(
            f"{f'module {name!r} ({kind})' if name else f'the model ({kind})'} cannot be recorded as a graph: "
            f"{_first(error)}"
        ) from error
    finally:
        handle.remove()


def _first(error: BaseException) -> str:
    """The message of the error that came first: ending a recording that failed raises another."""
    while isinstance(error.__context__, Exception):
        error = error.__context__
    return str(error).strip().split("\n")[0]
