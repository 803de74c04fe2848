"""Which sizes buckets have, and which of them are kept."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from .. import _C

STEP = 1024  # rooms are multiples of it
LEAST_EDGES = 1024  # there is room for


class TooManyVoxels(_C.UserError):
    """Points that lead to more voxels than a compiled model was given room for."""


def capacity_for(rows: int, ratio: float, most: int | None = None) -> int | None:
    """The room of the bucket that takes `rows`: the first of 1024, 1024·ratio, 1024·ratio², …, each rounded up to a
    multiple of 1024, that holds them. None where `most` does not."""
    if most is not None and rows > most:
        return None
    size = STEP
    while size < rows:
        size = max(size + STEP, math.ceil(size * ratio / STEP) * STEP)
    return size if most is None else min(size, most)


def capacity_for_edges(edges: int) -> int:
    """The room for so many edges: the next power of two, LEAST_EDGES at least."""
    return max(LEAST_EDGES, 1 << max(edges - 1, 0).bit_length())


class Kept:
    """Values by key with their bytes; the least recently used go first where there are more than `most`, or where
    their bytes exceed `most_bytes`. The one that is used last always stays."""

    def __init__(self, most: int, most_bytes: int | None) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of `key`, which is the last one used from here on; made where there is none."""
        if key not in self._values:
            self._values[key] = make()
        self._values.move_to_end(key)
        return self._values[key]

    def shrink(self) -> list[Any]:
        """Drops what is too much, and returns it. Each value has `bytes`."""
        dropped = []
        while len(self._values) > 1 and self._is_too_much():
            dropped.append(self._values.popitem(last=False)[1])
        return dropped

    def _is_too_much(self) -> bool:
        if len(self._values) > self._most:
            return True
        return self._most_bytes is not None and self.bytes > self._most_bytes

    @property
    def bytes(self) -> int:
        """Of all values."""
        return sum(value.bytes for value in self._values.values())

    def clear(self) -> None:
        """Drops all."""
        self._values.clear()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values.values())

    def __len__(self) -> int:
        return len(self._values)
