"""What the rows of tensors follow, as far as calls have told: a tensor that has as many rows as there are nodes may go with
the nodes, or have that many by chance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Union

from torch import Tensor

ALONE = "alone"  # rows that follow nothing: a tensor that is what it is in every call
Follows = Union[int, str]  # a place in the sizes of a call, or ALONE


class Sighting(NamedTuple):
    """A tensor in one call, and what its rows may follow after all calls so far."""

    key: Hashable
    rows: int
    possible: frozenset[Follows]

    @property
    def places(self) -> list[int]:
        """Of what there may be a row for each, in the sizes of the call."""
        return sorted(place for place in self.possible if isinstance(place, int))


def rows_in(tensor: Tensor) -> int:
    """How many rows; -1 for a single number, which has none."""
    return tensor.shape[0] if tensor.dim() > 0 else -1


class RowsSeen:
    """Remembers by key, the structure of a call and the place in it, what rows may follow. Only calls that went well are
    kept, so that a mistake teaches nothing."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, Sighting] = {}

    def look(self, key: Hashable, rows: int, sizes: Sequence[int]) -> Sighting:
        """What the `rows` of a tensor may follow where there are `sizes` of nodes, edges, voxels; nothing is kept."""
        same: frozenset[Follows] = frozenset(at for at, size in enumerate(sizes) if size == rows)
        before = self._seen.get(key)
        possible = same if before is None else same & before.possible
        if before is None or (ALONE in before.possible and rows == before.rows) or not possible:
            possible |= {ALONE}
        return Sighting(key, rows, possible)

    def __bool__(self) -> bool:
        return bool(self._seen)

    def keep(self, sightings: Sequence[Sighting]) -> None:
        """Of a call that went well."""
        for one in sightings:
            self._seen[one.key] = one
