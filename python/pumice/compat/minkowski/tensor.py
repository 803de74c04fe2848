"""MinkowskiEngine's tensors: features at sites of a coordinate manager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor as Rows

from ... import _C, ops
from ...coords import Coordinates
from .coordinates import CoordinateManager, CoordinateMapKey, floor_divide
from .enums import CoordinateMapType, SparseTensorOperationMode, SparseTensorQuantizationMode

_Mode = SparseTensorQuantizationMode
_operation_mode = SparseTensorOperationMode.SEPARATE_COORDINATE_MANAGER
_global_manager: CoordinateManager | None = None


def set_sparse_tensor_operation_mode(operation_mode: SparseTensorOperationMode) -> None:
    """Whether tensors of new coordinates share one manager, until it is cleared."""
    global _operation_mode
    _operation_mode = operation_mode


def sparse_tensor_operation_mode() -> SparseTensorOperationMode:
    return _operation_mode


def global_coordinate_manager() -> CoordinateManager | None:
    return _global_manager


def set_global_coordinate_manager(manager: CoordinateManager | None) -> None:
    global _global_manager
    _global_manager = manager


def clear_global_coordinate_manager() -> None:
    set_global_coordinate_manager(None)


def manager_for(coordinates: Rows) -> CoordinateManager:
    kind = CoordinateMapType.CUDA if coordinates.is_cuda else CoordinateMapType.CPU
    if _operation_mode is SparseTensorOperationMode.SEPARATE_COORDINATE_MANAGER:
        return CoordinateManager(coordinates.shape[1] - 1, coordinate_map_type=kind)
    if _global_manager is None:
        set_global_coordinate_manager(
            CoordinateManager(coordinates.shape[1] - 1, coordinate_map_type=kind)
        )
    assert _global_manager is not None
    return _global_manager


def reduce_rows(features: Rows, row_of: Rows, first: Rows, mode: SparseTensorQuantizationMode) -> Rows:
    """[P, C] to [N, C]: what becomes of rows that share a site."""
    if mode is _Mode.NO_QUANTIZATION:
        return features
    if mode is _Mode.RANDOM_SUBSAMPLE:
        return features[first]
    empty = features.new_zeros((len(first), features.shape[1]))
    if mode is _Mode.MAX_POOL:
        index = row_of[:, None].expand_as(features)
        return empty.scatter_reduce(0, index, features, "amax", include_self=False)
    total = empty.index_add(0, row_of, features)
    if mode is _Mode.UNWEIGHTED_SUM:
        return total
    counts = torch.bincount(row_of, minlength=len(first))
    return total / counts[:, None].to(total.dtype)


class Tensor:
    """What sparse tensors and fields share."""

    _F: Rows
    _manager: CoordinateManager
    _key: CoordinateMapKey
    C: Rows

    def _with(self, features: Rows) -> Any:
        raise NotImplementedError

    @property
    def F(self) -> Rows:  # noqa: N802
        return self._F

    @property
    def features(self) -> Rows:
        return self._F

    @property
    def coordinates(self) -> Rows:
        return self.C

    @property
    def coordinate_manager(self) -> CoordinateManager:
        return self._manager

    @property
    def coordinate_key(self) -> CoordinateMapKey:
        return self._key

    @property
    def tensor_stride(self) -> list[int]:
        return self._key.get_tensor_stride()

    @property
    def D(self) -> int:  # noqa: N802
        return self._manager.D

    @property
    def dimension(self) -> int:
        return self._manager.D

    @property
    def shape(self) -> torch.Size:
        return self._F.shape

    def size(self) -> torch.Size:
        return self._F.size()

    @property
    def device(self) -> torch.device:
        return self._F.device

    @property
    def dtype(self) -> torch.dtype:
        return self._F.dtype

    @property
    def requires_grad(self) -> bool:
        return self._F.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> None:
        self._F.requires_grad_(requires_grad)

    def get_device(self) -> int:
        return self._F.get_device()

    def __len__(self) -> int:
        return len(self._F)

    def float(self) -> Any:
        self._F = self._F.float()
        return self

    def double(self) -> Any:
        self._F = self._F.double()
        return self

    def detach(self) -> Any:
        self._F = self._F.detach()
        return self

    # Batch items, in the order of their indices.
    @property
    def _batchwise_row_indices(self) -> list[Rows]:
        items = self.C[:, 0]
        return [(items == item).nonzero()[:, 0] for item in torch.unique(items).tolist()]

    @property
    def decomposition_permutations(self) -> list[Rows]:
        return self._batchwise_row_indices

    @property
    def decomposed_coordinates(self) -> list[Rows]:
        return [self.C[rows, 1:] for rows in self._batchwise_row_indices]

    @property
    def decomposed_features(self) -> list[Rows]:
        return [self._F[rows] for rows in self._batchwise_row_indices]

    @property
    def decomposed_coordinates_and_features(self) -> tuple[list[Rows], list[Rows]]:
        return self.decomposed_coordinates, self.decomposed_features

    def _rows_at(self, batch_index: int) -> Rows:
        return (self.C[:, 0] == batch_index).nonzero()[:, 0]

    def coordinates_at(self, batch_index: int) -> Rows:
        return self.C[self._rows_at(batch_index), 1:]

    def features_at(self, batch_index: int) -> Rows:
        return self._F[self._rows_at(batch_index)]

    def coordinates_and_features_at(self, batch_index: int) -> tuple[Rows, Rows]:
        rows = self._rows_at(batch_index)
        return self.C[rows, 1:], self._F[rows]

    def _combine(self, other: Any, function: Callable[[Any, Any], Rows]) -> Any:
        if not isinstance(other, Tensor):
            return self._with(function(self._F, other))
        if self._manager is not other._manager:
            raise _C.UserError(
                "the tensors have different coordinate managers: make one with coordinate_manager= of the "
                "other, or set_sparse_tensor_operation_mode(SHARE_COORDINATE_MANAGER)"
            )
        if self._key == other._key:
            return self._with(function(self._F, other._F))
        return self._combine_elsewhere(other, function)

    def _combine_elsewhere(self, other: Any, function: Callable[[Any, Any], Rows]) -> Any:
        raise _C.UserError(f"the tensors are at different points: {self._key} and {other._key}")

    def __add__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a / b)

    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__

    def __pow__(self, power: Any) -> Any:
        return self._with(self._F**power)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tuple(self._F.shape)} {self.dtype}, {self._key}, D={self.D})"


class SparseTensor(Tensor):
    """features [N, C] at coordinates int32 [N, 1 + D], batch first, of any sign; rows that share a site
    are brought together by `quantization_mode`."""

    def __init__(
        self,
        features: Rows,
        coordinates: Rows | None = None,
        tensor_stride: Any = 1,
        coordinate_map_key: CoordinateMapKey | None = None,
        coordinate_manager: CoordinateManager | None = None,
        quantization_mode: SparseTensorQuantizationMode = _Mode.RANDOM_SUBSAMPLE,
        allocator_type: Any = None,
        minkowski_algorithm: Any = None,
        requires_grad: bool | None = None,
        device: Any = None,
    ) -> None:
        if features.dim() != 2:
            raise _C.UserError(f"features have shape {tuple(features.shape)}: give [rows, channels]")
        if device is not None:
            features = features.to(device)
            coordinates = None if coordinates is None else coordinates.to(device)
        self.quantization_mode = quantization_mode
        if coordinates is None:
            if coordinate_map_key is None or coordinate_manager is None:
                raise _C.UserError("give coordinates, or coordinate_map_key and coordinate_manager")
            rows = coordinate_manager.size(coordinate_map_key)
            if len(features) != rows:
                raise _C.UserError(f"features have {len(features)} rows, and {coordinate_map_key} {rows}")
            self._manager, self._key = coordinate_manager, coordinate_map_key
        else:
            if len(coordinates) != len(features):
                raise _C.UserError(f"{len(features)} features and {len(coordinates)} coordinates")
            self._manager = coordinate_manager or manager_for(coordinates)
            self._key, mapping = self._manager.insert_and_map(coordinates, tensor_stride)
            self.unique_index, self.inverse_mapping = mapping
            features = reduce_rows(features, self.inverse_mapping, self.unique_index, quantization_mode)
            if len(features) != len(self.unique_index):
                raise _C.UserError("coordinates repeat: choose another quantization_mode")
        self._F = features
        if requires_grad is not None:
            self._F.requires_grad_(requires_grad)

    @classmethod
    def _at(
        cls, features: Rows, sites: Coordinates, manager: CoordinateManager, name: str = ""
    ) -> SparseTensor:
        return cls(
            features, coordinate_map_key=manager.key_of(sites, name), coordinate_manager=manager
        )

    def _with(self, features: Rows) -> SparseTensor:
        return SparseTensor(
            features, coordinate_map_key=self._key, coordinate_manager=self._manager
        )

    @property
    def coordinate_map_key(self) -> CoordinateMapKey:
        return self._key

    @property
    def sites(self) -> Coordinates:
        """The coordinates as Pumice has them."""
        return self._manager.sites(self._key)

    @property
    def C(self) -> Rows:  # noqa: N802
        return self._manager.get_coordinates(self._key)

    def _combine_elsewhere(self, other: Any, function: Callable[[Any, Any], Rows]) -> SparseTensor:
        """On the sites of either; 0 where the left side has none, and unchanged where the right has none."""
        if self.tensor_stride != other.tensor_stride:
            raise _C.UserError(
                f"the tensors have strides {self.tensor_stride} and {other.tensor_stride}: give equal ones"
            )
        united, left_row, right_row = self.sites.sites.unite(other.sites.sites)
        rows = right_row.long()
        left = self._F.new_zeros((united.rows, self._F.shape[1])).index_add(0, left_row.long(), self._F)
        result = left.index_copy(0, rows, function(left[rows], other._F))
        return SparseTensor._at(
            result, Coordinates._of(united), self._manager, self._key.get_key()[1]
        )

    def dense(
        self, shape: Any = None, min_coordinate: Any = None, contract_stride: bool = True
    ) -> tuple[Rows, Rows, Rows]:
        """(tensor [B, C, ...], its lowest coordinate, the tensor stride)."""
        stride = self.C.new_tensor(self.tensor_stride)
        cells = self.sites.indices[:, 1:]
        if min_coordinate is None:
            low = torch.zeros(self.D, dtype=torch.int32, device=self.device)
            if len(cells) and bool((cells < 0).any()):
                raise _C.UserError("dense: coordinates are negative: pass min_coordinate")
        else:
            low = torch.as_tensor(min_coordinate, dtype=torch.int32, device=self.device).reshape(-1)
            low = low.expand(self.D)
        start = floor_divide(low[None], self.tensor_stride)[0]
        if shape is None:
            extent = (cells - start).amax(0) + 1 if len(cells) else torch.zeros_like(start)
            extent = extent.tolist()
        else:
            extent = list(shape)[2:]
        if not contract_stride:
            raise _C.UserError("dense: contract_stride=False is not offered; index the result by cells")
        grid = ops.to_dense(self._F, self.sites, shape=extent, low=start.tolist())
        if shape is not None and shape[0] > len(grid):
            grid = torch.cat([grid, grid.new_zeros((shape[0] - len(grid), *grid.shape[1:]))])
        return grid, low, stride

    def features_at_coordinates(self, query_coordinates: Rows) -> Rows:
        """[P, C] at points [P, 1 + D]: linear interpolation, 0 for sites that are not there."""
        points = query_coordinates.float().clone()
        points[:, 1:] /= points.new_tensor(self.tensor_stride)
        return ops.interpolate(self._F, self.sites, points)

    def interpolate(self, X: Any) -> Any:  # noqa: N803
        """A field of the features at the points of field X."""
        return X._with(self.features_at_coordinates(X.C))

    def slice(self, X: Any) -> Any:  # noqa: N803
        """Each point of field X (or row that made tensor X) gets the features of its site."""
        return self._sliced(X, lambda rows: self._F[rows])

    def cat_slice(self, X: Any) -> Any:  # noqa: N803
        """`slice`, and the features of X beside it."""
        return self._sliced(X, lambda rows: torch.cat([self._F[rows], X._F], 1))

    def _sliced(self, X: Any, take: Callable[[Rows], Rows]) -> Any:  # noqa: N803
        from .field import TensorField

        if isinstance(X, TensorField):
            return X._with(take(X.inverse_mapping(self._key)))
        if X.coordinate_map_key != self._key:
            raise _C.UserError(f"slice: {X.coordinate_map_key} is not {self._key}, where this tensor is")
        rows = X.inverse_mapping
        return TensorField(take(rows), coordinates=self.C[rows], coordinate_manager=self._manager)


def sites_given(coordinates: Any, manager: CoordinateManager, stride: Sequence[int]) -> Coordinates:
    """Of a tensor, a key, or a plain matrix of coordinates."""
    if isinstance(coordinates, SparseTensor):
        return coordinates.sites
    if isinstance(coordinates, CoordinateMapKey):
        return manager.sites(coordinates)
    key, _ = manager.insert_and_map(coordinates, stride)
    return manager.sites(key)
