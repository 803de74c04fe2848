"""Labels of a compiled step: tensors that go with the rows of a call, and others, in memory that a graph reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from .. import _C
from .._checks import kind_of
from .graph_call import WHOLE_TENSOR, GraphCall
from .rows_seen import ALONE, RowsSeen, Sighting, rows_in


class Labels(NamedTuple):
    """What a call was given: a tensor, or tuples, lists and dictionaries of tensors."""

    given: Any
    tensors: list[Tensor]
    places: tuple[int | None, ...]  # of what a tensor has a row for each, in the sizes of the call; None: it has other rows
    rebuild: Callable[[list[Tensor]], Any]
    key: tuple[Any, ...]  # what a graph takes for granted of them
    sightings: list[Sighting]
    is_clear: bool  # whether it is sure what tensors go with, if they go with anything

    @classmethod
    def of(cls, given: Any, scan: Any, seen: RowsSeen, ignore_index: int) -> Labels:
        """Those of a call: a tensor that has as many rows as there are voxels, or nodes or edges, in this call and in all that
        `seen` remembers, goes with them. A tensor of classes alone that has fewer rows than there are nodes is of the first of
        them; the others have `ignore_index`. Raises UserError for what holds anything but tensors on the device of the
        features."""
        tensors, structure = tree_flatten(given)
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise _C.UserError(f"labels hold {kind_of(tensor)}: give tensors, or tuples, lists and dictionaries of them")
            if tensor.device != scan.features.device:
                raise _C.UserError(
                    f"labels are on {tensor.device} and features on {scan.features.device}: .to() brings one to the other"
                )
        layout = "labels", str(structure), scan.layout if isinstance(scan, GraphCall) else None
        sightings = [seen.look((layout, at), rows_in(tensor), scan.sizes) for at, tensor in enumerate(tensors)]
        if isinstance(given, Tensor) and isinstance(scan, GraphCall) and _are_of_first_nodes(given, scan, sightings[0]):
            given = _with_others(given, scan.rows, ignore_index)
            tensors, sightings = [given], [seen.look(sightings[0].key, scan.rows, scan.sizes)]
        places = [min(one.places, default=None) for one in sightings]
        shapes = tuple(
            (tensor.dtype, tuple(tensor.shape if place is None else tensor.shape[1:]), place)
            for tensor, place in zip(tensors, places)
        )
        key = str(structure), shapes
        is_clear = all(len(one.places) <= 1 for one in sightings)
        return cls(given, tensors, tuple(places), lambda made: tree_unflatten(made, structure), key, sightings, is_clear)

    @property
    def doubt(self) -> str:
        """Of tensors that have had as many rows as there are voxels in each call, and in each call as many: the end of a
        sentence that says so; else empty."""
        rows = {one.rows for one, place in zip(self.sightings, self.places) if place is not None and ALONE in one.possible}
        if not rows:
            return ""
        return (
            f"; labels of {rows.pop()} rows are taken for one of each voxel or point: if some are of another kind, call once with "
            "another number of voxels or points"
        )


def _are_of_first_nodes(labels: Tensor, call: GraphCall, sighting: Sighting) -> bool:
    """Whether they are classes of the first nodes alone: of fewer than there are, and of no other rows of the call."""
    if labels.dim() != 1 or labels.is_floating_point() or labels.is_complex() or not 0 < labels.shape[0] < call.rows:
        return False
    if sighting.places:
        return False
    whole = [rows_in(value) for value, argument in zip(call.values, call.arguments) if argument.kind == WHOLE_TENSOR]
    return labels.shape[0] not in whole


def _with_others(labels: Tensor, rows: int, ignore_index: int) -> Tensor:
    made = labels.new_full((rows,), ignore_index, dtype=_type_for(labels.dtype, ignore_index))
    made[: labels.shape[0]] = labels
    return made


class RoomForLabels:
    """Static memory for labels, with room for so many rows of each size of a call; those past its rows are `ignore_index`,
    and of truth values False."""

    def __init__(self, labels: Labels, rooms: list[int], ignore_index: int) -> None:
        self._ignored = ignore_index
        self._tensors = [
            torch.empty(
                tuple(tensor.shape) if place is None else (rooms[place], *tensor.shape[1:]),
                dtype=tensor.dtype if place is None else _type_for(tensor.dtype, ignore_index),
                device=tensor.device,
            )
            for tensor, place in zip(labels.tensors, labels.places)
        ]
        self.labels = labels.rebuild(self._tensors)  # as the loss gets them

    @property
    def bytes(self) -> int:
        """Of all tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self._tensors)

    def fill(self, labels: Labels) -> None:
        """Does not wait."""
        for to, tensor, place in zip(self._tensors, labels.tensors, labels.places):
            if place is None:
                to.copy_(tensor.detach(), non_blocking=True)
                continue
            rows = tensor.shape[0]
            to[:rows].copy_(tensor.detach(), non_blocking=True)
            to[rows:].fill_(False if to.dtype == torch.bool else self._ignored)


def _type_for(given: torch.dtype, ignore_index: int) -> torch.dtype:
    """int64 in place of a type of whole numbers that does not hold `ignore_index`."""
    if given.is_floating_point or given.is_complex or given == torch.bool:
        return given
    limits = torch.iinfo(given)
    return given if limits.min <= ignore_index <= limits.max else torch.int64
