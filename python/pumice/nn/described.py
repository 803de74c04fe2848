"""Gives constructors that are inherited from PyTorch a docstring that says where their arguments are explained."""

from __future__ import annotations

import functools
import inspect
from typing import Any, TypeVar

import torch

from .._checks import whole_number

Kind = TypeVar("Kind", bound=type)


def described(kind: Kind) -> Kind:
    """`kind` with an `__init__` that checks the arguments named in `_channels`, calls its base's, then
    `_check_arguments` where `kind` has it, and has a docstring for help()."""
    base: Any = kind.__init__  # type: ignore[misc]
    signature = inspect.signature(base)
    channels: tuple[str, ...] = getattr(kind, "_channels", ())
    if base is torch.nn.Module.__init__:

        def __init__(self: Any) -> None:
            base(self)

    else:

        @functools.wraps(base)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            if channels:
                given = signature.bind(self, *args, **kwargs).arguments  # TypeError: PyTorch's own
                for name in channels:
                    if not isinstance(given.get(name, 1), (list, tuple)):  # of a LayerNorm
                        whole_number(name, given.get(name, 1), 1)
            base(self, *args, **kwargs)
            if hasattr(self, "_check_arguments"):
                self._check_arguments()

    __init__.__doc__ = "The arguments are those of the class."
    __init__.__qualname__ = f"{kind.__qualname__}.__init__"
    kind.__init__ = __init__  # type: ignore[misc]
    return kind
