"""MinkowskiEngine's tensors: sparse tensors and fields of points, each of which makes the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor as Rows

from ... import _C, ops
from ..._checks import shown, warn_once
from ...coords import Coordinates
from ..foreign import PeerAssertionError, check_rows
from ..mistakes import has_fractions, other_way_round
from .base import Tensor, check_kind, reduce_rows
from .coordinates import CoordinateManager, CoordinateMapKey, check_ignored, check_key, check_manager, int_list
from .enums import SparseTensorQuantizationMode, check_member
from .operation_mode import manager_for
from .order import coarse_cells, floor_divide, numbers, rows_at, united
from .torch_sparse import torch_sparse

_Mode = SparseTensorQuantizationMode


class SparseTensor(Tensor):
    """features [N, C] at coordinates int32 [N, 1 + D], batch first, of any sign; rows that share a site
    are brought together by `quantization_mode`. Rows stay in the order given, at the first of those that
    share a site; `F` is the tensor given where none do."""

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
        check_rows("features", features)
        if features.dim() != 2:
            raise PeerAssertionError(
                f"features have shape {tuple(features.shape)}: give [rows, channels]"
            )
        if device is not None:
            features = features.to(device)
            coordinates = None if coordinates is None else coordinates.to(device)
        _check_made_of(quantization_mode, coordinate_manager, allocator_type, minkowski_algorithm)
        if coordinate_map_key is not None:
            check_key("coordinate_map_key", coordinate_map_key)
        self.quantization_mode = quantization_mode
        if coordinates is None:
            if coordinate_map_key is None or coordinate_manager is None:
                raise _C.UserError("give coordinates, or coordinate_map_key and coordinate_manager")
            rows = coordinate_manager.size(coordinate_map_key)
            if len(features) != rows:
                raise _C.UserError(f"features have {len(features)} rows, and {coordinate_map_key} {rows}")
            self._manager, self._key = coordinate_manager, coordinate_map_key
        else:
            check_rows("coordinates", coordinates)
            if len(coordinates) != len(features):
                raise PeerAssertionError(
                    f"{len(features)} features and {len(coordinates)} coordinates: give as many"
                )
            if other_way_round(features, coordinates):
                raise _swapped("SparseTensor", features, coordinates)
            if has_fractions(coordinates):
                warn_once(
                    "minkowski coordinates",
                    f"coordinates are {coordinates.dtype} with fractions, and are rounded down, as in MinkowskiEngine: "
                    "give coordinates.floor().int(); SparseTensor takes (features, coordinates), in this order",
                )
            self._manager = manager_for(coordinates) if coordinate_manager is None else coordinate_manager
            self._key, mapping = self._manager.insert_and_map(coordinates, tensor_stride)
            _warn_of_steps_between(coordinates, self._key.get_tensor_stride())
            self.unique_index, self.inverse_mapping = mapping
            if len(self.unique_index) != len(features):   # else these rows are the sites', in their order
                features = reduce_rows(
                    features, self.inverse_mapping, self.unique_index, quantization_mode
                )
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
    def _batch_size(self) -> int:
        return self.sites.batch_size

    @property
    def C(self) -> Rows:  # noqa: N802
        return self._manager.get_coordinates(self._key)

    def _combine_elsewhere(self, other: Any, function: Callable[[Any, Any], Rows]) -> SparseTensor:
        """On the sites of either: those of the left in their rows, then what the right adds in its order. 0
        where the left side has none, and unchanged where the right has none."""
        if self.tensor_stride != other.tensor_stride:
            raise _C.UserError(
                f"the tensors have strides {self.tensor_stride} and {other.tensor_stride}: give equal ones"
            )
        both, rows = united(self.sites, other.sites)
        left = torch.nn.functional.pad(self._F, (0, 0, 0, len(both) - len(self._F)))
        result = left.index_copy(0, rows, function(left[rows], other._F))
        return SparseTensor._at(result, both, self._manager, self._key.get_key()[1])

    def dense(
        self, shape: Any = None, min_coordinate: Any = None, contract_stride: bool = True
    ) -> tuple[Rows, Rows, Rows]:
        """(tensor [B, C, ...], int32 [1, D] the coordinate of its first cell, the tensor stride); of cells of the finest level
        where not `contract_stride`. Raises PeerAssertionError for a `min_coordinate` between cells."""
        stride = self.C.new_tensor(self.tensor_stride)
        sites, steps = self.sites, self.tensor_stride
        if not contract_stride:
            sites, steps = Coordinates(self.C, batch_size=sites.batch_size), [1] * self.D
        cells = sites.indices[:, 1:]
        if min_coordinate is None:
            low = torch.zeros(self.D, dtype=torch.int32, device=self.device)
            if len(cells) and bool((cells < 0).any()):
                raise _C.UserError("dense: coordinates are negative: pass min_coordinate")
        else:
            low = torch.as_tensor(min_coordinate, dtype=torch.int32, device=self.device).reshape(-1)
            low = low.expand(self.D)
            if bool((low % numbers(self.tensor_stride, low)).any()):
                raise PeerAssertionError(
                    f"dense: min_coordinate = {low.tolist()}: give multiples of the tensor stride {self.tensor_stride}"
                )
        start = floor_divide(low[None], steps)[0]
        if shape is None:
            extent = (cells - start).amax(0) + 1 if len(cells) else torch.zeros_like(start)
            extent = extent.tolist()
        else:
            extent = list(shape)[2:]
        grid = ops.to_dense(self._F, sites, shape=extent, low=start.tolist())
        if shape is not None and shape[0] > len(grid):
            grid = torch.cat([grid, grid.new_zeros((shape[0] - len(grid), *grid.shape[1:]))])
        return grid, low[None], stride

    def sparse(
        self, min_coords: Any = None, max_coords: Any = None, contract_coords: bool = True
    ) -> tuple[Rows, Rows, Rows]:
        """(torch.sparse tensor [B, ..., C], its lowest coordinate [1, D], the tensor stride)."""
        return torch_sparse(self, min_coords, max_coords, contract_coords)

    def features_at_coordinates(self, query_coordinates: Rows) -> Rows:
        """[P, C] at points [P, 1 + D]: linear interpolation, 0 for sites that are not there."""
        return ops.interpolate(self._F, self._interpolation_map(query_coordinates))

    def _interpolation_map(self, query_coordinates: Rows) -> ops.InterpolationMap:
        check_rows("query_coordinates", query_coordinates)
        sites = self.sites
        columns = sites.indices.shape[1]
        if query_coordinates.dim() != 2 or query_coordinates.shape[1] != columns:
            raise _C.UserError(
                f"query_coordinates have shape {list(query_coordinates.shape)}: give [points, {columns}], the batch index "
                "first"
            )
        wide = query_coordinates.dtype is torch.float64
        points = query_coordinates.clone() if wide else query_coordinates.to(torch.float32, copy=True)
        if sites.batch_size == 0:
            none = points.new_full((len(points), 1), -1, dtype=torch.int32)
            return ops.InterpolationMap(none, torch.zeros_like(points[:, :1]), 0)
        points[:, 1:] /= numbers(self.tensor_stride, points)
        there = (points[:, :1] >= 0) & (points[:, :1] < sites.batch_size)
        points[:, :1] *= there
        found = ops.interpolation_map(sites, points)
        kept = found.rows.where(there, -1), found.weights * there
        return ops.InterpolationMap(*kept, found.in_rows)

    def interpolate(self, X: Any) -> Any:  # noqa: N803
        """A field of the features at the points of field X."""
        check_kind("interpolate: X", X, TensorField)
        return X._with(self.features_at_coordinates(X.C))

    def slice(self, X: Any) -> Any:  # noqa: N803
        """Each point of field X (or row that made tensor X) gets the features of its site."""
        return self._sliced(X, lambda rows: self._F[rows])

    def cat_slice(self, X: Any) -> Any:  # noqa: N803
        """`slice`, and the features of X beside it."""
        return self._sliced(X, lambda rows: torch.cat([self._F[rows], X._F], 1))

    def _sliced(self, X: Any, take: Callable[[Rows], Rows]) -> Any:  # noqa: N803
        check_kind("slice: X", X, Tensor)
        if isinstance(X, TensorField):
            return X._with(take(X.inverse_mapping(self._key)))
        if X.coordinate_map_key != self._key:
            raise PeerAssertionError(f"slice: {X.coordinate_map_key} is not {self._key}, where this tensor is")
        rows = X.inverse_mapping
        return TensorField(take(rows), coordinates=self.C[rows], coordinate_manager=self._manager)


def _check_made_of(mode: Any, manager: Any, allocator_type: Any, minkowski_algorithm: Any) -> None:
    """Raises PeerAssertionError for arguments of a tensor, or a field, that are of another kind."""
    check_member("quantization_mode", mode, _Mode)
    if manager is not None:
        check_manager(manager)
    check_ignored(allocator_type, minkowski_algorithm)


def _warn_of_steps_between(coordinates: Rows, stride: Sequence[int]) -> None:
    """Warns once where coordinates are no multiples of a stride; waits for a GPU where that is not 1."""
    if all(step == 1 for step in stride) or torch.compiler.is_compiling():
        return
    if bool((coordinates[:, 1:] % numbers(stride, coordinates)).any()):
        warn_once(
            "minkowski tensor_stride",
            f"coordinates are no multiples of tensor_stride = {list(stride)}, and are rounded down to them, with rows of one "
            "cell brought together; MinkowskiEngine keeps them as they are: give coordinates // stride * stride",
        )


def _swapped(kind: str, features: Rows, coordinates: Rows) -> PeerAssertionError:
    """What to raise where the two were given the other way round."""
    return PeerAssertionError(
        f"features are {features.dtype} {list(features.shape)} and coordinates {coordinates.dtype} "
        f"{list(coordinates.shape)}, the other way round: give {kind}(features, coordinates)"
    )


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
        check_rows("features", features)
        if coordinates is not None:
            check_rows("coordinates", coordinates)
            # Coordinates of fields have fractions, beside features of integers too; a batch index has none.
            if other_way_round(features, coordinates) and has_fractions(coordinates[..., :1]):
                raise _swapped("TensorField", features, coordinates)
        if device is not None:
            features = features.to(device)
            coordinates = None if coordinates is None else coordinates.to(device)
        if coordinates is None and (coordinate_field_map_key is None or coordinate_manager is None):
            raise _C.UserError("give coordinates, or coordinate_field_map_key and coordinate_manager")
        _check_made_of(quantization_mode, coordinate_manager, allocator_type, minkowski_algorithm)
        if coordinate_field_map_key is not None:
            check_key("coordinate_field_map_key", coordinate_field_map_key)
        self.quantization_mode = quantization_mode
        if coordinates is not None:
            if len(coordinates) != len(features):
                raise PeerAssertionError(
                    f"{len(features)} features and {len(coordinates)} coordinates: give as many"
                )
            self._manager = manager_for(coordinates) if coordinate_manager is None else coordinate_manager
            stride = int_list("tensor_stride", tensor_stride, self._manager.D)
            self._key = CoordinateMapKey(stride, f"field-{len(self._manager._fields)}")
            self._manager._fields[self._key] = coordinates.float()
        else:
            if coordinate_field_map_key not in coordinate_manager._fields:
                raise _C.UserError(
                    f"coordinate_field_map_key = {coordinate_field_map_key}: the coordinate manager has no field of "
                    "this key; give field.coordinate_field_map_key"
                )
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
        """Points of one cell brought together, cells in the order of their first points; or at the sites of a key, 0 where no
        point is. Raises UserError for a point that is in none of them."""
        mode = self.quantization_mode if quantization_mode is None else quantization_mode
        check_member("quantization_mode", mode, _Mode)
        if mode is _Mode.SPLAT_LINEAR_INTERPOLATION:
            raise PeerAssertionError(f"sparse: quantization_mode = {mode.name}: call splat(), which is for it")
        if coordinate_map_key is None:
            key, (first, row_of) = self._manager.insert_and_map(self.C, tensor_stride)
            features, is_given = self._F, len(first) == len(row_of)  # every point has a site of its own, in its row
        else:
            key, is_given = coordinate_map_key, False
            row_of = self.inverse_mapping(key)
            places = torch.arange(len(row_of), device=row_of.device)
            first = places.new_full((self._manager.size(key),), len(places)).scatter_reduce(0, row_of, places, "amin")
            features = self._F
            if mode is _Mode.RANDOM_SUBSAMPLE:  # of a site without points a row of 0
                features = torch.nn.functional.pad(features, (0, 0, 0, 1))
        self._rows[key] = row_of
        return SparseTensor(
            features if is_given else reduce_rows(features, row_of, first, mode),
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


def sites_given(coordinates: Any, manager: CoordinateManager, stride: Sequence[int]) -> Coordinates:
    """Of a tensor, a key, or a plain matrix of coordinates."""
    if isinstance(coordinates, SparseTensor):
        return coordinates.sites
    if isinstance(coordinates, CoordinateMapKey):
        return manager.sites(coordinates)
    if not isinstance(coordinates, Rows):
        raise PeerAssertionError(
            f"coordinates {shown(coordinates)}: give a SparseTensor, a CoordinateMapKey, or a tensor "
            f"[N, {1 + manager.D}]"
        )
    key, _ = manager.insert_and_map(coordinates, stride)
    return manager.sites(key)
