"""Constructors that come from PyTorch say where their arguments are explained."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import torch

Kind = TypeVar("Kind", bound=type)


def described(kind: Kind) -> Kind:
    """`kind`, whose `__init__` is that of its base, with a text of its own for help()."""
    base: Any = kind.__init__  # type: ignore[misc]
    if base is torch.nn.Module.__init__:

        def __init__(self: Any) -> None:
            base(self)

    else:

        @functools.wraps(base)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            base(self, *args, **kwargs)

    __init__.__doc__ = "The arguments are those of the class."
    __init__.__qualname__ = f"{kind.__qualname__}.__init__"
    kind.__init__ = __init__  # type: ignore[misc]
    return kind
