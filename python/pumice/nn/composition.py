"""Says what containers are composed of, so that a chain can go through them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch


class Composition(NamedTuple):
    """What a module computes: its `modules` one after the other; if it is a sum, relu(that + shortcut(x)), or
    relu(that + x) without a shortcut."""

    modules: list[torch.nn.Module]
    is_sum: bool = False
    shortcut: torch.nn.Module | None = None


# The composition of a module by its class. By exact class, since a subclass may compute something else.
COMPOSITIONS: dict[type, Callable[[Any], Composition]] = {}


def nested(modules: Iterable[torch.nn.Module | None], found: list[torch.nn.Module]) -> None:
    """Appends modules to `found`, and those inside of modules whose composition is known."""
    for module in modules:
        if module is not None:
            found.append(module)
            if type(module) in COMPOSITIONS:
                nested(module._modules.values(), found)
