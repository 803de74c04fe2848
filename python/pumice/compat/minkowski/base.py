"""What sparse tensors and fields share: features, batch items, arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor as Rows

from ..._checks import full_kind_of
from ...nn import deferred
from ..foreign import PeerAssertionError
from ..mistakes import NoTensor, PeerTypeError, explaining
from .coordinates import CoordinateManager, CoordinateMapKey
from .enums import SparseTensorQuantizationMode as _Mode
from .row_maps import item_rows


def reduce_rows(features: Rows, row_of: Rows, first: Rows, mode: _Mode) -> Rows:
    """[P, C] to [N, C]: what becomes of rows that share a site. Sums, means and maxima are 0 at a site without rows; of the
    `first` there RANDOM_SUBSAMPLE takes the row. Raises PeerAssertionError for NO_QUANTIZATION, unless each site has one row."""
    if mode is _Mode.NO_QUANTIZATION:
        counts = torch.bincount(row_of, minlength=len(first))
        if bool((counts != 1).any()):
            raise PeerAssertionError(
                f"quantization_mode = {mode.name}: {len(row_of)} rows are at {int((counts > 0).sum())} of {len(first)} sites: "
                "give each site one row, or another quantization_mode"
            )
        return features[first]
    if mode is _Mode.RANDOM_SUBSAMPLE:
        return features[first]
    empty = features.new_zeros((len(first), features.shape[1]))
    if mode is _Mode.MAX_POOL:
        index = row_of[:, None].expand_as(features)
        return empty.scatter_reduce(0, index, features, "amax", include_self=False)
    total = empty.index_add(0, row_of, features)
    if mode is _Mode.UNWEIGHTED_SUM:
        return total
    counts = torch.bincount(row_of, minlength=len(first)).clamp_min(1)
    return total / counts[:, None].to(total.dtype)


_BACK = (
    "ME.SparseTensor(…, coordinate_map_key=x.coordinate_map_key, coordinate_manager=x.coordinate_manager) puts a result "
    "of N rows back on the sites"
)


class Tensor(NoTensor):
    """What sparse tensors and fields share."""

    _modules = f"give it x.F [N, C] in a module of your own; {_BACK}"
    _functions = f"ME.MinkowskiFunctional and ME.cat take it, and others x.F [N, C]; {_BACK}"

    _layers: dict[str, str] = {}

    _held: Rows
    _manager: CoordinateManager
    _key: CoordinateMapKey
    C: Rows

    def _with(self, features: Rows) -> Any:
        raise NotImplementedError

    @property
    def _F(self) -> Rows:  # noqa: N802
        """The features, computed if need be."""
        held = self._held
        if type(held) is deferred.Deferred:
            self._held = held = deferred.plain(held)
        return held

    @_F.setter
    def _F(self, features: Rows) -> None:  # noqa: N802
        self._held = features

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
        return self._held.shape

    def size(self) -> torch.Size:
        return self._held.size()

    @property
    def device(self) -> torch.device:
        return self._held.device

    @property
    def dtype(self) -> torch.dtype:
        return self._held.dtype

    @property
    def requires_grad(self) -> bool:
        return self._held.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> None:
        self._F.requires_grad_(requires_grad)

    def get_device(self) -> int:
        return self._held.get_device()

    def __len__(self) -> int:
        return len(self._held)

    def float(self) -> Any:
        self._F = self._F.float()
        return self

    def double(self) -> Any:
        self._F = self._F.double()
        return self

    def detach(self) -> Any:
        self._F = self._F.detach()
        return self

    # Batch items, in the order of their indices, those without rows too.
    @property
    def _batch_size(self) -> int:
        return self._manager.batch_size()

    @property
    def _batchwise_row_indices(self) -> list[Rows]:
        return item_rows(self.C[:, 0], self._batch_size)

    @property
    def decomposition_permutations(self) -> list[Rows]:
        return self._batchwise_row_indices

    @property
    def decomposed_coordinates(self) -> list[Rows]:
        return self.decomposed_coordinates_and_features[0]

    @property
    def decomposed_features(self) -> list[Rows]:
        return [self._F[rows] for rows in self._batchwise_row_indices]

    @property
    def decomposed_coordinates_and_features(self) -> tuple[list[Rows], list[Rows]]:
        items, cells = self._batchwise_row_indices, self.C[:, 1:]
        return [cells[rows] for rows in items], [self._F[rows] for rows in items]

    def coordinates_at(self, batch_index: int) -> Rows:
        return self.coordinates_and_features_at(batch_index)[0]

    def features_at(self, batch_index: int) -> Rows:
        return self._F[self._batchwise_row_indices[batch_index]]

    def coordinates_and_features_at(self, batch_index: int) -> tuple[Rows, Rows]:
        rows = self._batchwise_row_indices[batch_index]
        return self.C[rows, 1:], self._F[rows]

    def _combine(self, other: Any, function: Callable[[Any, Any], Rows]) -> Any:
        if not isinstance(other, Tensor):
            return self._with(function(self._F, other))
        if self._manager is not other._manager:
            raise PeerAssertionError(
                "the tensors have different coordinate managers: make one with coordinate_manager= of the "
                "other, or set_sparse_tensor_operation_mode(SHARE_COORDINATE_MANAGER)"
            )
        if self._key == other._key:
            return self._with(function(self._F, other._F))
        return self._combine_elsewhere(other, function)

    def _combine_elsewhere(self, other: Any, function: Callable[[Any, Any], Rows]) -> Any:
        raise PeerAssertionError(f"the tensors are at different points: {self._key} and {other._key}")

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Tensor) and self._key == other._key and self._manager is other._manager:
            later = deferred.added(self._held, other._held)
            if later is not None:
                return self._with(later)
        return self._combine(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a / b)

    # The tensor itself changes, as in MinkowskiEngine: whoever holds it has the result. A matrix that was taken
    # from it before stays as it is, so that gradients of what was computed of it do.
    def __iadd__(self, other: Any) -> Any:
        return self._become("+=", other, self.__add__)

    def __isub__(self, other: Any) -> Any:
        return self._become("-=", other, self.__sub__)

    def __imul__(self, other: Any) -> Any:
        return self._become("*=", other, self.__mul__)

    def __itruediv__(self, other: Any) -> Any:
        return self._become("/=", other, self.__truediv__)

    def _become(self, sign: str, other: Any, function: Callable[[Any], Any]) -> Any:
        if isinstance(other, Tensor) and self._manager is other._manager and self._key != other._key:
            raise PeerAssertionError(
                f"x {sign} y: x is at {self._key} and y at {other._key}, and x keeps its rows: write x = x {sign[0]} y, which "
                "unites the sites of sparse tensors"
            )
        self._held = function(other)._held
        return self

    def __pow__(self, power: Any) -> Any:
        return self._with(self._F**power)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tuple(self._F.shape)} {self.dtype}, {self._key}, D={self.D})"


def check_kind(name: str, value: Any, kind: type[Tensor]) -> None:
    """Raises PeerTypeError, naming the argument, unless `value` is a sparse tensor, or a field, as `kind` says."""
    if not isinstance(value, kind):
        made = "SparseTensor" if kind is Tensor else kind.__name__
        raise PeerTypeError(
            f"{name} is {full_kind_of(value)}: give a {made}, as ME.{made}(features, coordinates) makes one"
        )


# For `forward` of layers.
explaining_layer = explaining(Tensor, "ME.SparseTensor(features, coordinates)")
