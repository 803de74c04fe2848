"""The sparse tensor as spconv has it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np
import torch
from torch import Tensor
from torch.fx import Proxy, ProxyableClassMeta

from .... import _C, ops
from ...._checks import at_least_one, full_kind_of
from ...._sites import sites_that_stand
from ....coords import Coordinates
from ....nn import deferred
from ....ops.modes import version_of
from ...foreign import PeerAssertionError, check_rows
from ...mistakes import NoTensor
from .. import constants
from ..core import ConvAlgo
from .checks import check_tensor, expand_nd  # noqa: F401  (spconv has it here)
from .indice_data import IndiceData

# spconv tells them apart by algorithm; here there is one.
ImplicitGemmIndiceData = IndiceData


def scatter_nd(indices: Tensor, updates: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of `shape` with updates at indices [..., axes], whose last axis numbers the first axes of
    the result. Of indices that repeat, one update counts."""
    axes = indices.shape[-1]
    result = updates.new_zeros(tuple(shape))
    result[tuple(indices.reshape(-1, axes).long().unbind(1))] = updates.reshape(-1, *shape[axes:])
    return result


class _Recorded(ProxyableClassMeta):
    """torch.fx records the making of one from what it traces, as a call. Otherwise nothing of torch.fx
    runs, which would warn whoever makes one."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if isinstance(value, Proxy):
                return super().__call__(*args, **kwargs)
        return super(ProxyableClassMeta, cls).__call__(*args, **kwargs)


class SparseConvTensor(NoTensor, metaclass=_Recorded):
    """features [N, C] on the sites int32 [N, 1 + D] of a grid of `spatial_shape` (D numbers).

    Maps are kept in `indice_dict` under the `indice_key`s of layers, and found again by the sites
    where a layer has none. `grid`, `voxel_num`, `benchmark`, `permanent_thrust_allocator`,
    `enable_timer` and `force_algo` are taken for the sake of old code and change nothing.
    """

    _modules = (
        "build the network with spconv.SparseSequential in place of torch.nn.Sequential, which gives modules of torch.nn "
        "the features; or give it x.features [N, C], and x.replace_feature(…) puts a result of N rows back on the sites"
    )
    _layers: dict[str, str] = {}
    _functions = "give it x.features [N, C]; x.replace_feature(…) puts a result of N rows back on the sites"

    def __init__(
        self,
        features: Tensor,
        indices: Tensor,
        spatial_shape: Union[Sequence[int], np.ndarray],
        batch_size: int,
        grid: Tensor | None = None,
        voxel_num: Tensor | None = None,
        indice_dict: dict[str, IndiceData] | None = None,
        benchmark: bool = False,
        permanent_thrust_allocator: bool = False,
        enable_timer: bool = False,
        force_algo: ConvAlgo | None = None,
    ) -> None:
        check_tensor(features, indices, spatial_shape, batch_size)
        self._features = deferred.plain(features)
        self._use: deferred.Use | None = None
        self.indices = indices
        self.spatial_shape = [int(extent) for extent in spatial_shape]
        self.batch_size = batch_size
        self.indice_dict: dict[str, IndiceData] = {} if indice_dict is None else indice_dict
        self.grid = torch.Tensor() if grid is None else grid
        self.voxel_num = voxel_num
        self.benchmark = benchmark
        self.benchmark_record: dict[str, Any] = {}
        self.thrust_allocator = None
        self._timer = None
        self.force_algo = force_algo
        self.int8_scale = None
        self._known: tuple[Any, ...] | None = None

    # Sites. `indices` and `spatial_shape` belong to the caller, who may change them at any time, so
    # what was made from them counts only as long as they are what they were.

    def _known_coords(self) -> Coordinates | None:
        if self._known is None:
            return None
        indices, version, shape, batch_size, coords = self._known
        same = (
            indices is self.indices
            and version == version_of(indices)
            and shape == self.spatial_shape
            and batch_size == self.batch_size
        )
        return coords if same else None

    @property
    def coords(self) -> Coordinates:
        """The sites, as Pumice's own layers take them: pumice.SparseTensor(x.coords, x.features)."""
        coords = self._known_coords()
        if coords is None:
            coords = sites_that_stand(self.indices, self.spatial_shape, int(self.batch_size), None)
            if coords is None:
                # They keep a copy: in-place changes of `indices` do not reach maps that are kept.
                coords = Coordinates(
                    self.indices.detach(), spatial_shape=self.spatial_shape, batch_size=int(self.batch_size)
                )
            self._stand_on(coords)
        return coords

    def _stand_on(self, coords: Coordinates) -> None:
        indices, shape = self.indices, list(self.spatial_shape)
        self._known = (indices, version_of(indices), shape, self.batch_size, coords)

    def stands_on(self, coords: Coordinates) -> bool:
        """Whether these are the sites of `coords`, in the same rows; from then on by identity.
        Compares values, which on a GPU waits, only where identity says nothing."""
        known = self._known_coords()
        if known is not None and known.is_same(coords):
            return True
        if self.indices.shape[0] != len(coords) or self.indices.device != coords.device:
            return False
        if not torch.equal(self.indices, coords.indices):
            return False
        if coords.batch_size == self.batch_size and coords.spatial_shape == tuple(
            self.spatial_shape
        ):
            self._stand_on(coords)
        return True

    def _on(
        self, features: Tensor, indices: Tensor, coords: Coordinates, spatial_shape: Sequence[int]
    ) -> SparseConvTensor:
        """Features on other sites; everything else as it is here."""
        result = self._holding(features)
        result.indices = indices
        result.spatial_shape = list(spatial_shape)
        result._stand_on(coords)
        return result

    # Features.

    # The extension gives the class these (python/src/recorder/sparse_conv_tensor.cpp), since every layer asks for
    # them: `features` [N, C], which cannot be set; `replace_feature(feature)`, other features for the same rows; and
    # `_holding(features)`, the same without looking at what is given.

    features: Tensor
    replace_feature: Callable[[Tensor], SparseConvTensor]
    _holding: Callable[[Tensor], SparseConvTensor]

    def computed(self) -> Tensor:
        """`features` as layers take them: an ordinary tensor, whatever becomes of it."""
        return deferred.take(self._features, self._use)

    def shadow_copy(self) -> SparseConvTensor:
        """Another tensor with all the same members."""
        return self.replace_feature(self.features)

    def select_by_index(self, valid_indices: Tensor) -> SparseConvTensor:
        """The rows that a mask or a list of rows selects, without any map."""
        if constants.REFUSE_AS_SPCONV:
            raise _C.UserError("select_by_index raises in spconv: make a SparseConvTensor of the rows")
        return self._select(valid_indices)

    def _select(self, valid_indices: Tensor) -> SparseConvTensor:
        return SparseConvTensor(
            self.computed()[valid_indices],
            self.indices[valid_indices],
            self.spatial_shape,
            self.batch_size,
            self.grid,
            self.voxel_num,
        )

    def minus(self) -> SparseConvTensor:
        return self.replace_feature(-self.features)

    def __add__(self, other: Union[SparseConvTensor, Tensor]) -> SparseConvTensor:
        """Row for row, with a tensor on the same sites or with plain features."""
        if isinstance(other, SparseConvTensor):
            check_same_sites("+", [self, other])
            other = other.features
        return self.replace_feature(self.features + other)

    __radd__ = __add__
    __iadd__ = __add__

    # Questions.

    @property
    def spatial_size(self) -> int:
        return math.prod(self.spatial_shape)

    def find_indice_pair(self, key: str | None) -> IndiceData | None:
        return None if key is None else self.indice_dict.get(key)

    def dense(self, channels_first: bool = True) -> Tensor:
        """[batch_size, C, shape…], or [batch_size, shape…, C]; 0 where no site is."""
        dense = ops.to_dense(self.computed(), self.coords, shape=self.spatial_shape)
        return dense if channels_first else dense.movedim(1, -1).contiguous()

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseConvTensor:
        """[B, shape…, C], channels last: the sites where any channel is not 0."""
        coords, features = ops.from_dense(x.movedim(-1, 1).contiguous())
        return cls(features, coords.indices.clone(), x.shape[1:-1], x.shape[0])

    @property
    def is_quantized(self) -> bool:
        return False

    def dequantize(self) -> SparseConvTensor:
        return self.replace_feature(self.features.dequantize())

    def __getstate__(self) -> dict[str, Any]:
        """Maps stay behind: they are found again."""
        return {
            **self.__dict__, "_features": self.computed(), "_use": None, "indice_dict": {}, "_known": None,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"SparseConvTensor[shape={self._features.shape}]"


def check_same_sites(what: str, tensors: Sequence[SparseConvTensor]) -> None:
    """What is added row by row has to stand on the same sites."""
    at_least_one(f"{what}: input", tensors, "SparseConvTensor")
    for number, x in enumerate(tensors):
        if not isinstance(x, SparseConvTensor):
            raise PeerAssertionError(
                f"{what}: tensor {number} is {full_kind_of(x)}: give a SparseConvTensor, as x.replace_feature(features) makes one"
            )
    first = tensors[0]
    for other in tensors[1:]:
        if other.indices is first.indices:
            continue
        if other.spatial_shape != first.spatial_shape or not other.stands_on(first.coords):
            raise PeerAssertionError(
                f"{what}: tensors of {first.indices.shape[0]} and {other.indices.shape[0]} rows are "
                "on different sites; functional.sparse_add adds such"
            )


def _replace_feature(x: SparseConvTensor, feature: Tensor) -> SparseConvTensor:
    """`replace_feature` of what is no ordinary tensor."""
    check_rows("replace_feature: features", feature)
    held, use = deferred.store(feature)
    result = x._holding(held)
    result._use = use
    return result


_C.equip_sparse_conv_tensor(SparseConvTensor)
_C.connect_recorder({
    "SparseConvTensor": SparseConvTensor,
    "replace_feature": _replace_feature,
    "constants": vars(constants),
})  # fmt: skip
