"""Coordinate managers and keys: the sites of one network, by tensor stride and a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _C
from ...coords import Coordinates
from .enums import CoordinateMapType


def int_list(value: Any, dimension: int) -> list[int]:
    """One number for all axes, or one each."""
    if isinstance(value, int):
        return [value] * dimension
    numbers = [int(number) for number in value]
    if len(numbers) != dimension:
        raise _C.UserError(f"{numbers}: give one number, or one for each of {dimension} axes")
    return numbers


class CoordinateMapKey:
    """Names one set of sites of a manager: its tensor stride, and a string where several have that."""

    def __init__(self, tensor_stride: Sequence[int] | int, name: str = "") -> None:
        self._dimension = tensor_stride - 1 if isinstance(tensor_stride, int) else len(tensor_stride)
        self._stride = None if isinstance(tensor_stride, int) else tuple(int(s) for s in tensor_stride)
        self._name = name

    def get_coordinate_size(self) -> int:
        return self._dimension + 1

    def get_key(self) -> tuple[list[int], str]:
        return self.get_tensor_stride(), self._name

    def get_tensor_stride(self) -> list[int]:
        return list(self._stride or ())

    def is_key_set(self) -> bool:
        return self._stride is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoordinateMapKey) and self.get_key() == other.get_key()

    def __hash__(self) -> int:
        return hash((self._stride, self._name))

    def __repr__(self) -> str:
        return f"coordinate map key:{self.get_tensor_stride()}" + (f":{self._name}" if self._name else "")


class CoordinateManager:
    """Sites by key. Coordinates are in cells of the finest level, multiples of the tensor stride."""

    def __init__(
        self, D: int = 0, num_threads: int = -1, coordinate_map_type: Any = None,  # noqa: N803
        allocator_type: Any = None, minkowski_algorithm: Any = None,
    ) -> None:
        self.D = D
        self.coordinate_map_type = coordinate_map_type or CoordinateMapType.CPU
        self._sites: dict[CoordinateMapKey, Coordinates] = {}
        self._rows: dict[Any, Any] = {}
        self._fields: dict[CoordinateMapKey, Tensor] = {}

    def insert_and_map(
        self, coordinates: Tensor, tensor_stride: Any = 1, string_id: str = ""
    ) -> tuple[CoordinateMapKey, tuple[Tensor, Tensor]]:
        """(key, (the first row of each site, the site of each row)) of coordinates [N, 1 + D]."""
        stride = int_list(tensor_stride, self.D)
        cells = torch.floor(coordinates).int() if coordinates.is_floating_point() else coordinates.int()
        if any(s != 1 for s in stride):
            cells = torch.cat([cells[:, :1], floor_divide(cells[:, 1:], stride)], 1)
        sites, row_of, first = Coordinates.unique(cells.contiguous(), stride=stride)
        return self.insert(sites, string_id), (first.long(), row_of.long())

    def insert(self, sites: Coordinates, name: str = "") -> CoordinateMapKey:
        """The key of sites; a name of their own where the key is taken by others."""
        key, number = CoordinateMapKey(sites.stride, name), 0
        while key in self._sites and not self._sites[key].is_same(sites):
            number += 1
            key = CoordinateMapKey(sites.stride, f"{name}-{number}" if name else str(number))
        self._sites.setdefault(key, sites)
        return key

    def sites(self, key: CoordinateMapKey) -> Coordinates:
        """Raises UserError for a key of another manager."""
        if key not in self._sites:
            raise _C.UserError(f"{key} is no key of this coordinate manager: it has {list(self._sites)}")
        return self._sites[key]

    def find(self, stride: Sequence[int], name: str) -> Coordinates | None:
        return self._sites.get(CoordinateMapKey(stride, name))

    def key_of(self, sites: Coordinates, name: str = "") -> CoordinateMapKey:
        """Of sites that an operator made."""
        for key, known in self._sites.items():
            if known is sites or known.is_same(sites):
                return key
        return self.insert(sites, name)

    def stride(
        self, coordinate_map_key: CoordinateMapKey, stride: Any, string_id: str = ""
    ) -> CoordinateMapKey:
        """The occupied coarser cells."""
        from ... import ops
        from ...window import Window

        steps = int_list(stride, self.D)
        name = string_id or coordinate_map_key.get_key()[1]
        coarse = [a * b for a, b in zip(coordinate_map_key.get_tensor_stride(), steps)]
        if self.find(coarse, name) is None:
            window = Window(steps, steps, [0] * self.D, [1] * self.D)
            _, made = ops.strided_map(self.sites(coordinate_map_key), window, True)
            self._sites[CoordinateMapKey(coarse, name)] = made
        return CoordinateMapKey(coarse, name)

    def origin(self) -> CoordinateMapKey:
        """A site at 0 for each batch item."""
        key = CoordinateMapKey([0] * self.D, "origin")
        if key not in self._sites:
            some = next(iter(self._sites.values()))
            cells = torch.zeros((some.batch_size, self.D + 1), dtype=torch.int32, device=some.device)
            cells[:, 0] = torch.arange(some.batch_size, device=some.device)
            self._sites[key] = Coordinates(cells)
        return key

    def get_coordinates(self, key: CoordinateMapKey) -> Tensor:
        """int32 [N, 1 + D], in cells of the finest level."""
        sites = self.sites(key)
        if all(s == 1 for s in sites.stride):
            return sites.indices
        scaled = sites.indices.clone()
        scaled[:, 1:] *= scaled.new_tensor(sites.stride)
        return scaled

    def get_unique_coordinate_map_key(self, tensor_stride: Any) -> CoordinateMapKey:
        return CoordinateMapKey(int_list(tensor_stride, self.D), "")

    def exists_in(self, key: CoordinateMapKey) -> bool:
        return key in self._sites

    def size(self, key: CoordinateMapKey) -> int:
        return len(self.sites(key))

    def number_of_unique_batch_indices(self) -> int:
        return next(iter(self._sites.values())).batch_size

    def __repr__(self) -> str:
        sizes = "".join(f"\n\t{key}: {len(sites)}" for key, sites in self._sites.items())
        return f"{type(self).__name__}({sizes}\n)"


CoordsManager = CoordinateManager


def floor_divide(cells: Tensor, stride: Sequence[int]) -> Tensor:
    """[N, D] by D numbers, rounded down for negative cells too."""
    return torch.div(cells, cells.new_tensor(list(stride)), rounding_mode="floor")
