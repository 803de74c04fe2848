"""Layers of one kind for one to four dimensions."""

from __future__ import annotations


def for_dimensions(base: type, name: str) -> tuple[type, ...]:
    """`name`1d to `name`4d: `base` with that number as `_dimension`. They are to stand under these
    names in the module of `base`, where pickle looks for them."""
    return tuple(
        type(f"{name}{dimension}d", (base,), {
            "_dimension": dimension, "__module__": base.__module__, "__doc__": base.__doc__,
        })
        for dimension in range(1, 5)
    )  # fmt: skip
