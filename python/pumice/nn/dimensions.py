"""Makes the classes of a layer for one to four dimensions."""

from __future__ import annotations


def for_dimensions(base: type, name: str) -> tuple[type, ...]:
    """The classes `name`1d to `name`4d: subclasses of `base` with that number as `_dimension`. The module of `base`
    has to define them under these names, where pickle looks for them."""
    return tuple(
        type(f"{name}{dimension}d", (base,), {
            "_dimension": dimension, "__module__": base.__module__, "__doc__": base.__doc__,
        })
        for dimension in range(1, 5)
    )  # fmt: skip
