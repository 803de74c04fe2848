"""Labels of a compiled step: tensors that go with the rows of a call, and others, in memory that a graph reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from .. import _C
from .._checks import kind_of
from .scans import Scan


class Labels(NamedTuple):
    """What a call was given: a tensor, or tuples, lists and dictionaries of tensors."""

    given: Any
    tensors: list[Tensor]
    of_rows: tuple[bool, ...]  # whether a tensor has a row for each voxel
    rebuild: Callable[[list[Tensor]], Any]
    key: tuple[Any, ...]  # what a graph takes for granted of them

    @classmethod
    def of(cls, given: Any, scan: Scan) -> Labels:
        """Raises UserError for what holds anything but tensors on the device of the voxels."""
        tensors, structure = tree_flatten(given)
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise _C.UserError(f"labels hold {kind_of(tensor)}: give tensors, or tuples, lists and dictionaries of them")
            if tensor.device != scan.features.device:
                raise _C.UserError(
                    f"labels are on {tensor.device} and features on {scan.features.device}: .to() brings one to the other"
                )
        rows = scan.features.shape[0]
        of_rows = tuple(tensor.dim() > 0 and tensor.shape[0] == rows for tensor in tensors)
        shapes = tuple(
            (tensor.dtype, tuple(tensor.shape[1:]) if of else tuple(tensor.shape), of) for tensor, of in zip(tensors, of_rows)
        )
        return cls(given, tensors, of_rows, lambda made: tree_unflatten(made, structure), (str(structure), shapes))


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
