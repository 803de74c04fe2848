"""Coordinate managers and keys: the sites of one network, by tensor stride and a name."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._checks import at_least_one, shown, whole_number
from ...coords import Coordinates
from ..foreign import PeerAssertionError, check_rows
from . import order, row_maps, traced
from .enums import CoordinateMapType, GPUMemoryAllocatorType, MinkowskiAlgorithm, RegionType, check_member


def int_list(name: str, value: Any, dimension: int) -> list[int]:
    """One number for all axes, or one each. Raises PeerAssertionError, naming the argument, for others."""
    if isinstance(value, int):
        return [value] * dimension
    numbers = _whole_numbers(value)
    if isinstance(numbers, int):
        return [numbers] * dimension
    if numbers is None or len(numbers) != dimension:
        given = f"= {value!r}" if isinstance(value, (list, tuple)) else shown(value)
        raise PeerAssertionError(
            f"{name} {given}: give one whole number, or one for each of {dimension} axes"
        )
    return numbers


def _whole_numbers(value: Any) -> list[int] | int | None:
    """A number, or several, also of a floating-point type; None for text, fractions and what else is none, or has no
    order."""
    if isinstance(value, (str, bytes, Set, Mapping)):
        return None
    try:
        return operator.index(int(value) if isinstance(value, float) and value.is_integer() else value)
    except (TypeError, ValueError):
        pass
    try:
        given = list(value)
        numbers = [int(number) for number in given]
        return numbers if all(map(operator.eq, numbers, given)) else None
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


class CoordinateMapKey:
    """Names one set of sites of a manager: its tensor stride, and a string where several have that."""

    def __init__(self, tensor_stride: Sequence[int] | int, name: str = "") -> None:
        numbers = tensor_stride if isinstance(tensor_stride, int) else _whole_numbers(tensor_stride)
        if numbers is None:
            raise PeerAssertionError(
                f"tensor_stride {shown(tensor_stride)}: give a list of one whole number for each axis, or for a new "
                "key 1 + D, the columns of the coordinates"
            )
        self._dimension = numbers - 1 if isinstance(numbers, int) else len(numbers)
        self._stride = None if isinstance(numbers, int) else tuple(numbers)
        self._name = name

    def get_coordinate_size(self) -> int:
        return self._dimension + 1

    def get_key(self) -> tuple[list[int], str]:
        return self.get_tensor_stride(), self._name

    def get_tensor_stride(self) -> list[int]:
        return list(self._stride or ())

    def is_key_set(self) -> bool:
        return self._stride is not None

    def _take(self, other: CoordinateMapKey) -> None:
        """From here on this names what `other` does."""
        self._dimension, self._stride, self._name = other._dimension, other._stride, other._name

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
        self.D = whole_number("D", D, 0)
        if coordinate_map_type is None:
            coordinate_map_type = CoordinateMapType.CPU
        check_member("coordinate_map_type", coordinate_map_type, CoordinateMapType)
        check_ignored(allocator_type, minkowski_algorithm)
        self.coordinate_map_type = coordinate_map_type
        self._sites: dict[CoordinateMapKey, Coordinates] = {}
        self._fields: dict[CoordinateMapKey, Tensor] = {}
        self._field_items: dict[CoordinateMapKey, int] = {}
        self._reached: dict[Any, Coordinates] = {}

    def insert_and_map(
        self, coordinates: Tensor, tensor_stride: Any = 1, string_id: str = ""
    ) -> tuple[CoordinateMapKey, tuple[Tensor, Tensor]]:
        """(key, (the first row of each site, the site of each row)) of coordinates [N, 1 + D], sites in the
        order in which they first occur."""
        check_rows("coordinates", coordinates)
        stride = int_list("tensor_stride", tensor_stride, self.D)
        cells = torch.floor(coordinates).int() if coordinates.is_floating_point() else coordinates.int()
        if any(s != 1 for s in stride):
            cells = order.coarse_cells(cells, stride)
        sites, first, row_of = order.unique_sites(cells.contiguous(), stride)
        return self.insert(sites, string_id), (first, row_of)

    def insert(self, sites: Coordinates, name: str = "") -> CoordinateMapKey:
        """The key of sites; a name of their own where the key is taken by others."""
        key, number = CoordinateMapKey(sites.stride, name), 0
        while key in self._sites and not self._sites[key].is_same(sites):
            number += 1
            key = CoordinateMapKey(sites.stride, f"{name}-{number}" if name else str(number))
        self._sites.setdefault(key, sites)
        return key

    def sites(self, key: CoordinateMapKey) -> Coordinates:
        """Raises UserError for a key of another manager, and for what is no key."""
        check_key("coordinate_map_key", key)
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
        """The occupied coarser cells, in the order of the first site in each."""
        check_key("coordinate_map_key", coordinate_map_key)
        steps = int_list("stride", stride, self.D)
        name = string_id or coordinate_map_key.get_key()[1]
        coarse = CoordinateMapKey(
            [a * b for a, b in zip(coordinate_map_key.get_tensor_stride(), steps)], name
        )
        if coarse not in self._sites:
            self._sites[coarse] = traced.coarsened(self.sites(coordinate_map_key), steps)
        return coarse

    def reached(
        self, key: CoordinateMapKey, offsets: Sequence[tuple[int, ...]], steps: Sequence[int], finer: bool
    ) -> Coordinates:
        """order.reached of the sites at `key`; made once for all layers of a kernel."""
        asked = (key, tuple(offsets), tuple(steps), finer)
        if asked not in self._reached:
            self._reached[asked] = traced.reached(self.sites(key), offsets, steps, finer)
        return self._reached[asked]

    def batch_size(self) -> int:
        """How many batch items the sites and points of this manager have, those without any too. Waits for a
        GPU once for each field."""
        for key, points in self._fields.items():
            if key not in self._field_items:
                self._field_items[key] = int(points[:, 0].max()) + 1 if len(points) else 0
        sizes = [sites.batch_size for sites in self._sites.values()]
        return max((*sizes, *self._field_items.values()), default=0)

    def origin(self, batch_size: int | None = None) -> CoordinateMapKey:
        """A site at 0 for each batch item, in their order."""
        count = self.batch_size() if batch_size is None else batch_size
        key = CoordinateMapKey([0] * self.D)
        known = self._sites.get(key)
        if known is not None and (batch_size is None or len(known) == count):
            return key
        some = next(iter((*self._sites.values(), *self._fields.values())))
        cells = torch.zeros((count, self.D + 1), dtype=torch.int32, device=some.device)
        cells[:, 0] = torch.arange(count, device=some.device)
        box = [0] * self.D
        sites = Coordinates._of(_C.create_sites(cells, None, None, count, box, box), cells)
        if known is not None:   # of another number of items, as a manager that several tensors share has
            key = CoordinateMapKey(box, f"{count} items")
        self._sites[key] = sites
        return key

    def kernel_map(
        self, in_key: Any, out_key: Any, stride: Any = 1, kernel_size: Any = 3, dilation: Any = 1,
        region_type: Any = RegionType.HYPER_CUBE, region_offset: Any = None,
        is_transpose: bool = False, is_pool: bool = False,
    ) -> dict[int, Tensor]:
        """{offset number: int32 [2, pairs] of (input rows, output rows)} of a convolution between two keys (or
        strides, the first key of each). `is_pool` with a stride like the kernel's: each fine site with the
        coarse one that holds it, as number 0."""
        size = int_list("kernel_size", kernel_size, self.D)
        steps, spread = int_list("stride", stride, self.D), int_list("dilation", dilation, self.D)
        if region_type in (0, 1, 2):
            region_type = RegionType(region_type)
        check_member("region_type", region_type, RegionType)
        region = region_type
        cross = region is RegionType.HYPER_CROSS and max(size) > 1
        own_offsets = region is RegionType.CUSTOM or (region_offset is not None and len(region_offset))
        if min(size) < 1 or own_offsets or (cross and any(k % 2 == 0 for k in size)):
            raise PeerAssertionError(
                f"kernel_map: kernel_size = {size}, {region}: give sizes from 1, odd ones of a HYPER_CROSS, "
                "and no offsets of your own"
            )
        first, second = (self.sites(self._as_key(key)) for key in (in_key, out_key))
        fine, coarse = (second, first) if is_transpose else (first, second)
        if is_pool and steps == size:
            if len(fine) == 0 or len(coarse) == 0:
                return {}
            pairs = torch.stack(row_maps.stride_map(fine, coarse)).int()
            return {0: pairs.flip(0) if is_transpose else pairs}
        offsets = row_maps.kernel_offsets(size, spread, cross)
        return row_maps.kernel_map(fine, coarse, offsets, is_transpose)

    get_kernel_map = kernel_map

    def stride_map(self, in_key: Any, stride_key: Any) -> tuple[Tensor, Tensor]:
        """int64 (rows at `in_key`, the row at `stride_key` of the coarser site that holds each)."""
        fine, coarse = self.sites(self._as_key(in_key)), self.sites(self._as_key(stride_key))
        return row_maps.stride_map(fine, coarse)

    def origin_map(self, key: Any) -> tuple[Tensor, list[Tensor]]:
        """(int64 batch items, the rows at `key` of each), those without rows too."""
        sites = self.sites(self._as_key(key))
        count = sites.batch_size
        rows = row_maps.item_rows(sites.indices[:, 0], count)
        return torch.arange(count, device=sites.device), rows

    def union_map(self, in_keys: Sequence[Any], out_key: CoordinateMapKey) -> list[Tensor]:
        """int64 [2, rows] for each key: (its rows, their rows in the union), which gets `out_key`: the rows of
        the first key, then what each further one adds."""
        sets = [self.sites(self._as_key(key)) for key in in_keys]
        at_least_one("union_map: in_keys", sets, "key")
        both, rows = sets[0], [torch.arange(len(sets[0]), device=sets[0].device)]
        for other in sets[1:]:
            both, added = order.united(both, other)
            rows.append(added)
        out_key._take(self.insert(both, self._as_key(in_keys[0]).get_key()[1]))
        return [torch.stack([torch.arange(len(row), device=row.device), row]) for row in rows]

    def _as_key(self, key_or_stride: Any) -> CoordinateMapKey:
        """A key, or the first one of a tensor stride."""
        if isinstance(key_or_stride, CoordinateMapKey):
            return key_or_stride
        stride = int_list("tensor_stride", key_or_stride, self.D)
        for key in self._sites:
            if key.get_tensor_stride() == stride:
                return key
        raise PeerAssertionError(
            f"no coordinates have stride {stride}: the keys are {list(self._sites)}, and insert_and_map or "
            "stride makes others"
        )

    def get_coordinates(self, coords_key_or_tensor_strides: Any) -> Tensor:
        """int32 [N, 1 + D], in cells of the finest level, at a key or a tensor stride."""
        sites = self.sites(self._as_key(coords_key_or_tensor_strides))
        if all(s == 1 for s in sites.stride):
            return sites.indices
        scaled = sites.indices.clone()
        scaled[:, 1:] *= order.numbers(sites.stride, scaled)
        return scaled

    def get_unique_coordinate_map_key(self, tensor_stride: Any) -> CoordinateMapKey:
        return CoordinateMapKey(int_list("tensor_stride", tensor_stride, self.D), "")

    def exists_in(self, key: CoordinateMapKey) -> bool:
        return key in self._sites

    def size(self, coordinate_map_key: CoordinateMapKey) -> int:
        return len(self.sites(coordinate_map_key))

    def number_of_unique_batch_indices(self) -> int:
        return self.size(self.origin())

    def __repr__(self) -> str:
        sizes = "".join(f"\n\t{key}: {len(sites)}" for key, sites in self._sites.items())
        return f"{type(self).__name__}({sizes}\n)"


CoordsManager = CoordinateManager


def check_key(name: str, key: Any) -> None:
    """Raises PeerAssertionError, naming the argument, for what is no key."""
    if not isinstance(key, CoordinateMapKey):
        raise PeerAssertionError(
            f"{name} {shown(key)}: give a CoordinateMapKey, as x.coordinate_map_key of a sparse tensor"
        )


def check_manager(manager: Any, name: str = "coordinate_manager") -> None:
    """Raises PeerAssertionError, naming the argument, for what is no coordinate manager."""
    if not isinstance(manager, CoordinateManager):
        raise PeerAssertionError(
            f"{name} {shown(manager)}: give a CoordinateManager, as x.coordinate_manager of a sparse tensor"
        )


def check_ignored(allocator_type: Any, minkowski_algorithm: Any) -> None:
    """Raises PeerAssertionError for settings that have no effect, and that there are not."""
    if allocator_type is not None:
        check_member("allocator_type", allocator_type, GPUMemoryAllocatorType)
    if minkowski_algorithm is not None:
        check_member("minkowski_algorithm", minkowski_algorithm, MinkowskiAlgorithm)

