"""Features at points between cells."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor as Rows

from ... import _C
from ..foreign import PeerAssertionError
from .base import Tensor, reduce_rows
from .coordinates import CoordinateManager, CoordinateMapKey, int_list
from .enums import SparseTensorQuantizationMode
from .operation_mode import manager_for
from .order import coarse_cells, rows_at
from .tensor import SparseTensor

_Mode = SparseTensorQuantizationMode


class TensorField(Tensor):
    """features [P, C] at coordinates float [P, 1 + D], batch first, in cells of the finest level."""

    def __init__(
        self,
        features: Rows,
        coordinates: Rows | None = None,
        tensor_stride: Any = 1,
        coordinate_field_map_key: CoordinateMapKey | None = None,
        coordinate_manager: CoordinateManager | None = None,
        quantization_mode: SparseTensorQuantizationMode = _Mode.UNWEIGHTED_AVERAGE,
        allocator_type: Any = None,
        minkowski_algorithm: Any = None,
        requires_grad: bool | None = None,
        device: Any = None,
    ) -> None:
        if device is not None:
            features = features.to(device)
            coordinates = None if coordinates is None else coordinates.to(device)
        if coordinates is None and (coordinate_field_map_key is None or coordinate_manager is None):
            raise _C.UserError("give coordinates, or coordinate_field_map_key and coordinate_manager")
        self.quantization_mode = quantization_mode
        if coordinates is not None:
            if len(coordinates) != len(features):
                raise PeerAssertionError(
                    f"{len(features)} features and {len(coordinates)} coordinates: give as many"
                )
            self._manager = coordinate_manager or manager_for(coordinates)
            stride = int_list(tensor_stride, self._manager.D)
            self._key = CoordinateMapKey(stride, f"field-{len(self._manager._fields)}")
            self._manager._fields[self._key] = coordinates.float()
        else:
            self._manager, self._key = coordinate_manager, coordinate_field_map_key
        self._F = features
        self._rows: dict[CoordinateMapKey, Rows] = {}
        if requires_grad is not None:
            self._F.requires_grad_(requires_grad)

    def _with(self, features: Rows) -> TensorField:
        other = TensorField(
            features, coordinate_field_map_key=self._key, coordinate_manager=self._manager,
            quantization_mode=self.quantization_mode,
        )
        other._rows = self._rows
        return other

    @property
    def C(self) -> Rows:  # noqa: N802
        return self._manager._fields[self._key]

    @property
    def coordinate_field_map_key(self) -> CoordinateMapKey:
        return self._key

    def sparse(
        self,
        tensor_stride: Any = 1,
        coordinate_map_key: CoordinateMapKey | None = None,
        quantization_mode: SparseTensorQuantizationMode | None = None,
    ) -> SparseTensor:
        """Points of one cell brought together, cells in the order of their first points."""
        mode = quantization_mode or self.quantization_mode
        if mode is _Mode.SPLAT_LINEAR_INTERPOLATION:
            raise _C.UserError("sparse: splat() is for SPLAT_LINEAR_INTERPOLATION")
        if coordinate_map_key is None:
            key, (first, row_of) = self._manager.insert_and_map(self.C, tensor_stride)
            kept = len(first) == len(row_of)   # every point has a site of its own, in its row
        else:
            key, kept = coordinate_map_key, False
            row_of = self.inverse_mapping(key)
            places = torch.arange(len(row_of), device=row_of.device)
            first = places.new_zeros(self._manager.size(key))
            first = first.scatter_reduce(0, row_of, places, "amin", include_self=False)
        self._rows[key] = row_of
        return SparseTensor(
            self._F if kept else reduce_rows(self._F, row_of, first, mode),
            coordinate_map_key=key,
            coordinate_manager=self._manager,
        )

    def splat(self) -> SparseTensor:
        """Each point to the corners around it, by the weights of linear interpolation. A corner of weight 0 is
        a site as well, as it is there."""
        base = torch.floor(self.C)
        parts = (self.C - base)[:, 1:]
        corners = list(itertools.product((0, 1), repeat=self.D))
        steps = self.C.new_tensor(corners)  # [corners, D]
        cells = base[:, None].repeat(1, len(corners), 1)
        cells[:, :, 1:] += steps
        near = (1 - steps - parts[:, None]).abs()  # the distance to the opposite corner
        weights = near.prod(2)  # [P, corners]
        key, (first, row_of) = self._manager.insert_and_map(cells.reshape(-1, self.D + 1))
        shares = (self._F[:, None] * weights[..., None].to(self._F.dtype)).reshape(-1, self._F.shape[1])
        total = self._F.new_zeros((len(first), self._F.shape[1])).index_add(0, row_of, shares)
        return SparseTensor(total, coordinate_map_key=key, coordinate_manager=self._manager)

    def inverse_mapping(self, sparse_tensor_map_key: CoordinateMapKey) -> Rows:
        """int64 [P]: the row at the key of each point. Raises UserError for points whose site is not there."""
        key = sparse_tensor_map_key
        if key not in self._rows:
            sites = self._manager.sites(key)
            cells = torch.floor(self.C).int()
            rows = rows_at(sites, coarse_cells(cells, sites.stride))
            if bool((rows < 0).any()):
                raise _C.UserError(f"slice: some points of the field are in no site of {key}")
            self._rows[key] = rows
        return self._rows[key]
