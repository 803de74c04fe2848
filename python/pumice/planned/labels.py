"""Labels of a compiled step: tensors that go with the rows of a call, and others, in memory that a graph reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from .. import _C
from .._checks import kind_of
from .rows_seen import ALONE, RowsSeen, Sighting
from .scans import Scan


class Labels(NamedTuple):
    """What a call was given: a tensor, or tuples, lists and dictionaries of tensors."""

    given: Any
    tensors: list[Tensor]
    of_rows: tuple[bool, ...]  # whether a tensor has a row for each voxel
    rebuild: Callable[[list[Tensor]], Any]
    key: tuple[Any, ...]  # what a graph takes for granted of them
    sightings: list[Sighting]

    @classmethod
    def of(cls, given: Any, scan: Scan, seen: RowsSeen) -> Labels:
        """Those of a call: a tensor that has as many rows as there are voxels, in this call and in all that `seen` remembers,
        goes with them. Raises UserError for what holds anything but tensors on the device of the voxels."""
        tensors, structure = tree_flatten(given)
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise _C.UserError(f"labels hold {kind_of(tensor)}: give tensors, or tuples, lists and dictionaries of them")
            if tensor.device != scan.features.device:
                raise _C.UserError(
                    f"labels are on {tensor.device} and features on {scan.features.device}: .to() brings one to the other"
                )
        rows = scan.features.shape[0]
        sightings = [
            seen.look(("labels", str(structure), at), tensor.shape[0] if tensor.dim() > 0 else -1, [rows])
            for at, tensor in enumerate(tensors)
        ]
        of_rows = tuple(0 in one.possible for one in sightings)
        shapes = tuple(
            (tensor.dtype, tuple(tensor.shape[1:]) if of else tuple(tensor.shape), of) for tensor, of in zip(tensors, of_rows)
        )
        key = str(structure), shapes
        return cls(given, tensors, of_rows, lambda made: tree_unflatten(made, structure), key, sightings)

    @property
    def doubt(self) -> str:
        """Of tensors that have had as many rows as there are voxels in each call, and in each call as many: the end of a
        sentence that says so; else empty."""
        rows = {one.rows for one, of in zip(self.sightings, self.of_rows) if of and ALONE in one.possible}
        if not rows:
            return ""
        return (
            f"; labels of {rows.pop()} rows are taken for one of each voxel or point: if some are of another kind, call once with "
            "another number of voxels or points"
        )


class RoomForLabels:
    """Static memory for labels of so many rows; those past the rows of a call are `ignore_index`."""

    def __init__(self, labels: Labels, capacity: int, ignore_index: int) -> None:
        self._ignored = ignore_index
        self._tensors = [
            torch.empty(
                (capacity, *tensor.shape[1:]) if of_rows else tuple(tensor.shape),
                dtype=_type_for(tensor.dtype, ignore_index) if of_rows else tensor.dtype,
                device=tensor.device,
            )
            for tensor, of_rows in zip(labels.tensors, labels.of_rows)
        ]
        self.labels = labels.rebuild(self._tensors)  # as the loss gets them

    @property
    def bytes(self) -> int:
        """Of all tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self._tensors)

    def fill(self, labels: Labels) -> None:
        """Does not wait."""
        for to, tensor, of_rows in zip(self._tensors, labels.tensors, labels.of_rows):
            if not of_rows:
                to.copy_(tensor.detach(), non_blocking=True)
                continue
            rows = tensor.shape[0]
            to[:rows].copy_(tensor.detach(), non_blocking=True)
            to[rows:].fill_(self._ignored)


def _type_for(given: torch.dtype, ignore_index: int) -> torch.dtype:
    """int64 in place of a type of whole numbers that does not hold `ignore_index`."""
    if given.is_floating_point or given.is_complex:
        return given
    if given == torch.bool:
        return torch.int64
    limits = torch.iinfo(given)
    return given if limits.min <= ignore_index <= limits.max else torch.int64
