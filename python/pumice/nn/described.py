"""Gives constructors that are inherited from PyTorch a docstring that says where their arguments are explained."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import torch

Kind = TypeVar("Kind", bound=type)


def described(kind: Kind) -> Kind:
    """`kind` with an `__init__` that calls its base's, then `_check_arguments` where `kind` has it, and has a docstring
    for help()."""
    base: Any = kind.__init__  # type: ignore[misc]
    if base is torch.nn.Module.__init__:

        def __init__(self: Any) -> None:
            base(self)

    else:

        @functools.wraps(base)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            base(self, *args, **kwargs)
            if hasattr(self, "_check_arguments"):
                self._check_arguments()

    __init__.__doc__ = "The arguments are those of the class."
    __init__.__qualname__ = f"{kind.__qualname__}.__init__"
    kind.__init__ = __init__  # type: ignore[misc]
    return kind
