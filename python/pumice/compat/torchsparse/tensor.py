"""TorchSparse's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import kind_of
from ...coords import Coordinates
from ...nn import deferred
from ..mistakes import NoTensor, explaining, has_fractions, other_way_round
from . import conventions, tensor_cache
from .axis_numbers import make_ntuple
from .tensor_cache import TensorCache


def get_allow_negative_coordinates() -> bool:
    return conventions.allow_negative


def set_allow_negative_coordinates(allow_negative_coordinates: bool) -> None:
    """Whether the border of `use_border` leaves negative cells. Without a border they are always there."""
    conventions.allow_negative = allow_negative_coordinates


class SparseTensor(NoTensor):
    """feats [N, C] at coords int32 [N, 4]: (batch, x, y, z), divided by `stride`.

    spatial_range: (batch size, X, Y, Z), the extent of the grid; without it the grid has no border.
    """

    _modules = (
        "give it x.feats [N, C] in a module of your own, where torchsparse.SparseTensor(…, x.coords, x.stride) puts a "
        "result of N rows back on the sites"
    )
    _functions = (
        "torchsparse.nn.functional and torchsparse.cat take it, and others x.feats [N, C]; "
        "torchsparse.SparseTensor(…, x.coords, x.stride) puts a result of N rows back on the sites"
    )

    _layers: dict[str, str] = {}

    def __init__(
        self,
        feats: Tensor,
        coords: Tensor,
        stride: int | Sequence[int] = 1,
        spatial_range: Sequence[int] | None = None,
    ) -> None:
        if other_way_round(feats, coords):
            raise _C.UserError(
                f"coords are {coords.dtype} and feats {feats.dtype}, the other way round: give SparseTensor(feats, coords)"
            )
        self._held = feats
        self.coords = coords
        self.stride = make_ntuple(stride, 3, "stride")
        self.spatial_range = None if spatial_range is None else tuple(spatial_range)
        self._caches = tensor_cache.fresh()

    def _with(self, feats: Tensor) -> SparseTensor:
        """Other features at the same sites."""
        other = SparseTensor(feats, self.coords, self.stride, self.spatial_range)
        other._caches = self._caches
        return other

    @classmethod
    def _at(cls, sites: Coordinates, feats: Tensor, caches: TensorCache, bounded: bool) -> SparseTensor:
        """At sites that an operator made."""
        known = caches.kmaps.get(("sites", sites.stride))
        if known is not None and known[1].is_same(sites):
            coords = known[0]
        else:
            coords = sites.indices
            if not conventions.batch_first:
                scaled = coords[:, 1:] * coords.new_tensor(sites.stride)
                coords = torch.cat([scaled, coords[:, :1]], 1)
            caches.kmaps[("sites", sites.stride)] = (coords, sites)
        shape = sites.spatial_shape if bounded else None
        other = cls(feats, coords, sites.stride, None if shape is None else (sites.batch_size, *shape))
        other._caches = caches
        other._note()
        return other

    def _note(self) -> None:
        """Notes the coordinates by stride, as code of either release reads them."""
        of_stride = (self.coords, self.spatial_range) if conventions.batch_first else self.coords
        self._caches.cmaps.setdefault(self.stride, of_stride)

    @property
    def sites(self) -> Coordinates:
        """The coordinates as Pumice has them. Raises UserError for a site that occurs twice.

        Code that makes a tensor of other features by itself hands it the caches of the old one; where
        the coordinates are equal, it is on the same sites then.
        """
        known = self.known_sites()
        if known is not None:
            return known
        for name, rows in (("feats", self._held), ("coords", self.coords)):
            if type(rows).__module__ == "numpy":
                raise _C.UserError(
                    f"{name} are an array of NumPy: torchsparse.utils.collate.sparse_collate_fn makes tensors of a batch's, "
                    "and torch.from_numpy(array) one"
                )
        if self.coords.dim() != 2 or self.coords.shape[1] != 4:
            raise _C.UserError(
                f"coords have shape {tuple(self.coords.shape)}: give SparseTensor(feats, coords), in this order, coords "
                "of shape [rows, 4]"
            )
        if has_fractions(self.coords):
            raise _C.UserError(
                f"coords are {self.coords.dtype} with fractions: give coords.floor().int(), and SparseTensor(feats, coords) "
                "in this order"
            )
        cells = self.coords.int()
        if not conventions.batch_first:
            divided = torch.div(cells[:, :3], cells.new_tensor(self.stride), rounding_mode="floor")
            cells = torch.cat([cells[:, 3:], divided], 1)
        shape, items = None, None
        if self.spatial_range is not None:
            items, *shape = (int(extent) for extent in self.spatial_range)
        try:
            sites = Coordinates(
                cells.contiguous(), spatial_shape=shape, batch_size=items, stride=self.stride
            )
        except _C.UserError as error:  # in the words of TorchSparse's arguments
            text = str(error).replace("spatial_shape", "spatial_range[1:]").replace("batch_size", "spatial_range[0]")
            raise type(error)(text) from None
        self._caches.kmaps[("sites", self.stride)] = (self.coords, sites)
        self._note()
        return sites

    def known_sites(self) -> Coordinates | None:
        """`sites`, where a layer has asked for them before: then no site occurs twice."""
        known = self._caches.kmaps.get(("sites", self.stride))
        return known[1] if known is not None and same_rows(known[0], self.coords) else None

    @property
    def feats(self) -> Tensor:
        held = self._held
        if type(held) is deferred.Deferred:
            self._held = held = deferred.plain(held)
        return held

    @feats.setter
    def feats(self, feats: Tensor) -> None:
        self._held = feats

    @property
    def F(self) -> Tensor:  # noqa: N802
        return self.feats

    @F.setter
    def F(self, feats: Tensor) -> None:  # noqa: N802
        self.feats = feats

    @property
    def C(self) -> Tensor:  # noqa: N802
        return self.coords

    @C.setter
    def C(self, coords: Tensor) -> None:  # noqa: N802
        self.coords = coords

    @property
    def s(self) -> tuple[int, ...]:
        return self.stride

    @s.setter
    def s(self, stride: int | Sequence[int]) -> None:
        self.stride = make_ntuple(stride, 3, "stride")

    @property
    def cmaps(self) -> dict[Any, Any]:
        return self._caches.cmaps

    @cmaps.setter
    def cmaps(self, cmaps: dict[Any, Any]) -> None:
        self._own_caches().cmaps = cmaps

    @property
    def kmaps(self) -> dict[Any, Any]:
        return self._caches.kmaps

    @kmaps.setter
    def kmaps(self, kmaps: dict[Any, Any]) -> None:
        self._own_caches().kmaps = kmaps

    def _own_caches(self) -> TensorCache:
        """Which assigning to does not change for others."""
        fresh = TensorCache()
        fresh.cmaps, fresh.kmaps = self._caches.cmaps, self._caches.kmaps
        self._caches = fresh
        return fresh

    def __len__(self) -> int:
        return self._held.shape[0]

    # As in TorchSparse these change the tensor itself, and return it.
    def to(self, device: Any, non_blocking: bool = True) -> SparseTensor:
        moved = self.coords.to(device, non_blocking=non_blocking)
        if moved is not self.coords:
            self._caches = TensorCache()
        self.coords = moved
        self.feats = self.feats.to(device, non_blocking=non_blocking)
        return self

    def cpu(self) -> SparseTensor:
        return self.to("cpu")

    def cuda(self, device: Any = "cuda") -> SparseTensor:
        return self.to(device)

    def half(self) -> SparseTensor:
        self.feats = self.feats.half()
        return self

    def float(self) -> SparseTensor:
        self.feats = self.feats.float()
        return self

    def detach(self) -> SparseTensor:
        self.feats = self.feats.detach()
        return self

    def dense(self) -> Tensor:
        """[batch, X, Y, Z, C]; by `spatial_range`, or else the box from 0 to the last site."""
        sites = self.sites
        shape = sites.spatial_shape
        if shape is None:
            shape = (sites.indices[:, 1:].amax(0) + 1).tolist() if len(self) else [0, 0, 0]
        return ops.to_dense(self.feats, sites, shape=shape, low=[0, 0, 0]).movedim(1, -1)

    def _on_sites_of(self, other: SparseTensor) -> bool:
        """Whether both have the same coordinates in the same rows. Values are compared where nothing else says
        so: a GPU is waited for then."""
        if self.coords is other.coords or self.sites.is_same(other.sites):
            return True
        return same_rows(self.coords, other.coords)

    def __add__(self, other: SparseTensor) -> SparseTensor:
        if not isinstance(other, SparseTensor):
            raise _C.UserError(f"SparseTensor + {kind_of(other)}: give another SparseTensor, or change x.feats")
        if not self._on_sites_of(other):
            raise _C.UserError(
                "+: the tensors are on different sites; torchsparse.generative_add unites them"
            )
        later = deferred.added(self._held, other._held)
        return self._with(self.feats + other.feats if later is None else later)

    def __repr__(self) -> str:
        return f"SparseTensor({tuple(self.feats.shape)} {self.feats.dtype}, stride={self.stride})"


# For `forward` of layers.
explaining_layer = explaining(SparseTensor, "torchsparse.SparseTensor(feats, coords)")


def same_rows(left: Tensor, right: Tensor) -> bool:
    """Compares values, which on a GPU waits, only where identity says nothing."""
    if left is right:
        return True
    alike = left.shape == right.shape and left.device == right.device and left.dtype == right.dtype
    return alike and torch.equal(left, right)


class PointTensor:
    """Features F at points C, as code in the style of SPVCNN passes them about."""

    def __init__(
        self, feats: Tensor, coords: Tensor, idx_query: Any = None, weights: Any = None
    ) -> None:
        self.F = feats
        self.C = coords
        self.idx_query = {} if idx_query is None else idx_query
        self.weights = {} if weights is None else weights
        self.additional_features: dict[str, Any] = {"idx_query": {}, "counts": {}}

    def to(self, device: Any, non_blocking: bool = True) -> PointTensor:
        self.F = self.F.to(device, non_blocking=non_blocking)
        self.C = self.C.to(device, non_blocking=non_blocking)
        return self

    def cuda(self) -> PointTensor:
        return self.to("cuda")

    def detach(self) -> PointTensor:
        self.F, self.C = self.F.detach(), self.C.detach()
        return self

    def __add__(self, other: PointTensor) -> PointTensor:
        total = PointTensor(self.F + other.F, self.C, self.idx_query, self.weights)
        total.additional_features = self.additional_features
        return total
