"""Defines `Coordinates`, the sites of sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import _C, window
from ._checks import kind_of
from ._sites import as_cells, make_sites, site_options, trace_sites
from ._tensors import numbered_device


class Coordinates:
    """Distinct integer sites, one row each; immutable, shared by all tensors on them.

    Kernel maps are found again by the identity of this object: tensors with the same `Coordinates`
    share their maps, and no others do.

    Args:
        indices: int32 or int64 [N, 1 + D], batch index first, D = 1 to 4, on the CPU or a GPU.
        spatial_shape: cells an axis, D numbers; default: the grid has no bounds.
        batch_size: number of batch items; default: the largest batch index and one.
        stride: length of a cell in cells of the finest level, D numbers; default: 1.
    Raises:
        UserError: for a site that occurs twice (`Coordinates.unique` merges them), outside
            `spatial_shape`, or of a negative batch index. Where a GPU does not wait, the next call that
            does raises it.
    Waits:
        On a GPU twice; where `spatial_shape` and `batch_size` are both given not at all.
    Example:
        >>> sites = pumice.Coordinates(torch.tensor([[0, 1, 2, 3], [1, 4, 5, 6]]))
        >>> len(sites), sites.dimension, sites.batch_size
        (2, 3, 2)
    """

    __slots__ = ("_indices", "_meta", "_sites", "_token", "_version")

    _indices: torch.Tensor | None
    _meta: tuple[Any, ...] | None
    _token: torch.Tensor | None
    _version: int | None

    def __init__(
        self,
        indices: torch.Tensor,
        *,
        spatial_shape: Sequence[int] | None = None,
        batch_size: int | None = None,
        stride: Sequence[int] | None = None,
    ) -> None:
        given = (indices, spatial_shape, batch_size, stride)
        if torch.compiler.is_compiling():
            self._sites = None
            self._token, self._indices, self._meta = trace_sites(*given)
            self._version = None
            return
        self._sites, cells = make_sites(*given)
        self._keep(cells)
        self._meta = None
        self._token = None
        self.traceable()

    @classmethod
    def _of(cls, sites: _C.Sites, indices: torch.Tensor | None = None) -> Coordinates:
        self = cls.__new__(cls)
        self._sites = sites
        self._indices = self._version = None
        if indices is not None:
            self._keep(indices)
        self._meta = None
        self._token = None
        return self

    def _keep(self, indices: torch.Tensor) -> None:
        """Keeps the tensor that `indices` returns, and its version, so that a write into it is noticed. PyTorch
        does not count writes in inference mode, through .data or through NumPy; results stay right, since
        nothing is computed from this tensor."""
        self._indices = indices
        self._version = None if indices.is_inference() else indices._version

    @classmethod
    def unique(
        cls,
        indices: torch.Tensor,
        *,
        spatial_shape: Sequence[int] | None = None,
        batch_size: int | None = None,
        stride: Sequence[int] | None = None,
    ) -> tuple[Coordinates, torch.Tensor, torch.Tensor]:
        """The sites of indices that may repeat: (sites, int32 [P] row of each given site, int32 [N] first
        given site of each row). Takes what `Coordinates` takes; waits for a GPU."""
        cells = as_cells(indices)
        options = site_options(cells, spatial_shape, batch_size, stride)
        sites, row_of, first = _C.unique_sites(cells, *options)
        return cls._of(sites), row_of, first

    @property
    def sites(self) -> _C.Sites:
        """The sites of the extension, for operators. Raises UserError where `indices` were written into."""
        if self._sites is None:
            self._sites = _C.sites_of(self._token)
        if self._version is not None and self._indices._version != self._version:
            raise _C.UserError(
                "indices were written into, and sites do not change: make new ones with "
                "pumice.Coordinates(indices.clone())"
            )
        return self._sites

    @property
    def token(self) -> torch.Tensor:
        """int64 [1] that stands for the sites in operators of torch.library, which take tensors only."""
        if self._token is None:
            self._token = _C.sites_token(self._sites)
        return self._token

    @property
    def indices(self) -> torch.Tensor:
        """int32 [N, 1 + D], batch first. A copy, to read: after writing into it the next layer on these
        sites raises UserError."""
        if self._indices is None:
            with torch.inference_mode(False):  # the same tensor whoever asks first
                self._keep(self.sites.coordinates())
        return self._indices

    def copied_indices(self, like: torch.Tensor) -> torch.Tensor:
        """`indices` in memory of its own, made as that of `like` is, a tensor on the same device."""
        if self._indices is not None:
            return self._indices.clone()
        return self.sites.coordinates(like if type(like) is torch.Tensor else None)

    def traceable(self) -> Coordinates:
        """Makes the token and the indices, which a compiled graph can take but not make. Sites made from
        coordinates have both; call this for sites that an eager layer made, before a compiled layer takes them."""
        _ = self.token, self.indices, self._described()
        return self

    def _described(self) -> tuple[Any, ...]:
        """(batch size, stride, spatial shape)"""
        if self._meta is None:
            sites = self.sites
            shape = sites.spatial_shape
            self._meta = (
                sites.batch_size,
                tuple(sites.stride),
                None if shape is None else tuple(shape),
            )
        return self._meta

    @property
    def rows(self) -> int:
        """How many sites there are; inside a graph a number without a value."""
        return self._indices.shape[0] if torch.compiler.is_compiling() else self.sites.rows

    @property
    def dimension(self) -> int:
        """D, the number of axes: 1 to 4."""
        return len(self.stride)

    @property
    def batch_size(self) -> int:
        """How many batch items there are, those without rows too."""
        return self._described()[0]

    @property
    def stride(self) -> tuple[int, ...]:
        """Cell size in cells of the finest level, per axis."""
        return self._described()[1]

    @property
    def spatial_shape(self) -> tuple[int, ...] | None:
        """Cells an axis, D numbers; None where the grid has no bounds."""
        return self._described()[2]

    @property
    def device(self) -> torch.device:
        """Where the sites are."""
        if torch.compiler.is_compiling():
            return self._indices.device
        return torch.device(self.sites.device)

    def __len__(self) -> int:
        return self.rows

    def is_same(self, other: Coordinates) -> bool:
        """Whether both are the same sites in the same rows, by identity. Inside a graph: whether that is certain."""
        if self is other:
            return True
        if not isinstance(other, Coordinates):
            raise _C.UserError(f"other is {kind_of(other)}: give Coordinates, as x.coords of a sparse tensor x")
        if torch.compiler.is_compiling():
            return self.token is other.token
        return self.sites.is_same(other.sites)

    def to(self, device: torch.device | str) -> Coordinates:
        """The same sites on another device, without their maps; itself where it is there already."""
        device = numbered_device(device)
        if device == self.device:
            return self
        return Coordinates._of(self.sites.copy_to(str(device)))

    def __copy__(self) -> Coordinates:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Coordinates:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        _ = self.sites  # raises where the indices were written into
        return _rebuild, (self.indices, self.spatial_shape, self.batch_size, self.stride)

    def __repr__(self) -> str:
        return (
            f"Coordinates({len(self)} sites, dimension={self.dimension}, "
            f"batch_size={self.batch_size}, stride={self.stride}, "
            f"spatial_shape={self.spatial_shape}, device={self.device})"
        )


def _rebuild(
    indices: torch.Tensor,
    spatial_shape: tuple[int, ...] | None,
    batch_size: int,
    stride: tuple[int, ...],
) -> Coordinates:
    return Coordinates(indices, spatial_shape=spatial_shape, batch_size=batch_size, stride=stride)


# torch.load reads sites that torch.save wrote without `weights_only=False`.
torch.serialization.add_safe_globals([Coordinates, _rebuild, window._rebuild])
