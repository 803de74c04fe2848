"""What a call of a compiled model is given, and how the model is given it: a table of the sparse tensors of this
package and of the libraries whose interfaces it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _C
from .._checks import kind_of, whole_number
from .._sites import axis_numbers
from .._tensors import check_floating, no_tensor, ordinary
from ..coords import Coordinates
from ..tensor import SparseTensor


class Grid(NamedTuple):
    """What a scan declares of its sites, the same for all scans of a bucket."""

    dimension: int
    batch_size: int
    spatial_shape: tuple[int, ...] | None
    stride: tuple[int, ...]


class Scan(NamedTuple):
    """Voxels as a call was given them."""

    indices: Tensor  # int32 [N, 1 + D]
    features: Tensor  # [N, C]
    grid: Grid
    kind: Kind
    given: Any  # the sparse tensor that was given; None where they came as tensors

    @property
    def rows(self) -> int:
        """How many voxels."""
        return self.features.shape[0]

    @property
    def sizes(self) -> list[int]:
        """What labels may have a row for each of."""
        return [self.rows]

    @property
    def key(self) -> tuple[Any, ...]:
        """What a graph takes for granted beside the grid, the kind, and the type and width of features."""
        return ()

    @property
    def point_rows(self) -> int | None:
        """The rows of what a model makes for each point; None where there are none."""
        return None

    def first(self, rows: int) -> Scan:
        """The first voxels alone."""
        return self._replace(indices=self.indices[:rows], features=self.features[:rows], given=None)

    def fresh(self) -> Any:
        """A sparse tensor without the maps that earlier calls have made."""
        return self.kind.of(self.indices, self.features, self.grid)

    def input(self) -> Any:
        """What the model is called with where it runs as it is."""
        return self.fresh() if self.given is None else self.given

    def coords_of(self, x: Any) -> Coordinates:
        """The sites of an input of the model."""
        return self.kind.parts(x)[0]


class Kind:
    """A type of sparse tensor, its parts, and how one is made of them."""

    type: type

    def scan(self, x: Any) -> Scan:
        """The voxels of one."""
        raise NotImplementedError

    def on(self, coords: Coordinates, indices: Tensor, features: Tensor) -> Any:
        """One on sites that exist; `indices` are theirs."""
        raise NotImplementedError

    def of(self, indices: Tensor, features: Tensor, grid: Grid) -> Any:
        """One of voxels, whose sites are made from them."""
        raise NotImplementedError

    def parts(self, x: Any) -> tuple[Coordinates, Tensor]:
        """The sites and the features of one."""
        raise NotImplementedError

    def replaced(self, x: Any, features: Tensor) -> Any:
        """Other features on the sites of one."""
        raise NotImplementedError

    def fresh(self, x: Any) -> Any:
        """One of the same voxels, without the maps that earlier calls have made, and without history."""
        scan = self.scan(x)
        return self.of(scan.indices, scan.features.detach(), scan.grid)


class _Own(Kind):
    type = SparseTensor

    def scan(self, x: SparseTensor) -> Scan:
        coords = x.coords
        grid = Grid(coords.dimension, coords.batch_size, coords.spatial_shape, coords.stride)
        return Scan(coords.indices, x.features, grid, self, x)

    def on(self, coords: Coordinates, indices: Tensor, features: Tensor) -> SparseTensor:
        return SparseTensor._of(coords, features)

    def of(self, indices: Tensor, features: Tensor, grid: Grid) -> SparseTensor:
        return SparseTensor._of(SitesLater.of(indices, grid), features)

    def parts(self, x: SparseTensor) -> tuple[Coordinates, Tensor]:
        return x.coords, x.features

    def replaced(self, x: SparseTensor, features: Tensor) -> SparseTensor:
        return SparseTensor._of(x.coords, features)

    def fresh(self, x: SparseTensor) -> SparseTensor:
        coords = Coordinates(
            x.indices, spatial_shape=x.spatial_shape, batch_size=x.batch_size, stride=x.stride
        )
        return SparseTensor(coords, x.features.detach())


OWN = _Own()
_kinds: dict[type, Kind] = {SparseTensor: OWN}


def know(kind: Kind) -> None:
    """Adds a type of sparse tensors, which compiled models then take and give."""
    _kinds[kind.type] = kind


def kind_for(x: Any) -> Kind | None:
    """How to treat `x`; None where it is no sparse tensor."""
    return _kinds.get(type(x))


class SitesLater(Coordinates):
    """Coordinates whose sites are made when somebody asks for them: who reads features alone never does."""

    __slots__ = ("_grid",)

    _grid: Grid

    @classmethod
    def of(cls, indices: Tensor, grid: Grid) -> SitesLater:
        """Of int32 [N, 1 + D], which is kept."""
        self = cls.__new__(cls)
        self._sites = None
        self._token = None
        self._grid = grid
        self._meta = (grid.batch_size, grid.stride, grid.spatial_shape)
        self._keep(indices)
        return self

    @property
    def sites(self) -> _C.Sites:
        """The sites, made at first use as `Coordinates` makes them."""
        if self._sites is None:
            grid = self._grid
            made = Coordinates(
                self._indices,
                spatial_shape=grid.spatial_shape,
                batch_size=grid.batch_size,
                stride=grid.stride,
            )
            self._sites = made._sites
        return Coordinates.sites.fget(self)  # type: ignore[attr-defined]

    @property
    def rows(self) -> int:
        """How many sites there are."""
        return self._indices.shape[0]  # type: ignore[union-attr]

    @property
    def device(self) -> torch.device:
        """Where the sites are."""
        return self._indices.device  # type: ignore[union-attr]

    @property
    def token(self) -> Tensor:
        """Stands for the sites in operators of torch.library."""
        _ = self.sites
        return Coordinates.token.fget(self)  # type: ignore[attr-defined]


def scan_of(
    given: tuple[Any, ...],
    batch_size: int | None,
    spatial_shape: Sequence[int] | None,
    stride: Sequence[int] | None,
) -> Scan:
    """The voxels of one call's arguments. Raises UserError for what is neither a sparse tensor nor (coords,
    features)."""
    kind = kind_for(given[0]) if len(given) == 1 else None
    if kind is not None:
        if not (batch_size is None and spatial_shape is None and stride is None):
            raise _C.UserError(
                "batch_size, spatial_shape and stride are those of the sparse tensor: leave them out"
            )
        scan = kind.scan(given[0])
    else:
        if len(given) != 2 or not isinstance(given[0], Tensor):
            kinds = ", ".join(kind_of(value) for value in given) or "nothing"
            raise _C.UserError(
                f"a compiled model was given {kinds}: give coords [N, 1 + D] and features [N, C], a sparse tensor, or "
                "features [N, C] and edges [2, E] of nodes"
            )
        scan = _of_tensors(*given, batch_size, spatial_shape, stride)
    check_no_gradient(scan.features)
    return scan


def check_no_gradient(features: Tensor) -> None:
    """Raises UserError for features that want one."""
    if features.requires_grad and torch.is_grad_enabled():
        raise _C.UserError(
            "features want a gradient, which a compiled model does not give: detach() them, or call the model itself"
        )


def check_matrix(name: str, features: Tensor, rows: str) -> None:
    """Raises UserError for what has another rank than two."""
    if features.dim() != 2:
        remedy = {0: "", 1: f": {name}[:, None] has one channel"}.get(features.dim(), f": {name}.flatten(1) joins the last axes")
        raise _C.UserError(f"{name} have shape {tuple(features.shape)} and must be 2-D, [{rows}, channels]{remedy}")


def _of_tensors(
    coords: Tensor,
    features: Any,
    batch_size: int | None,
    spatial_shape: Sequence[int] | None,
    stride: Sequence[int] | None,
) -> Scan:
    if not isinstance(features, Tensor):
        raise _C.UserError(no_tensor("features", features))
    features = ordinary(features)
    check_floating(features)
    if coords.dim() != 2 or not 2 <= coords.shape[1] <= 5:
        raise _C.UserError(
            f"coords have shape {tuple(coords.shape)}: give [rows, 1 + D], the batch index first, for D = 1 to 4"
        )
    check_matrix("features", features, "rows")
    if features.shape[0] != coords.shape[0]:
        raise _C.UserError(
            f"features have shape {tuple(features.shape)} for {coords.shape[0]} coords: give one row for each"
        )
    if coords.device != features.device:
        raise _C.UserError(
            f"coords are on {coords.device} and features on {features.device}: .to() brings one to the other"
        )
    dimension = coords.shape[1] - 1
    items = 1 if batch_size is None else whole_number("batch_size", batch_size, 1, 2**31 - 1)
    shape = axis_numbers("spatial_shape", spatial_shape, dimension)
    steps = axis_numbers("stride", stride, dimension) or [1] * dimension
    grid = Grid(dimension, items, None if shape is None else tuple(shape), tuple(steps))
    return of_parts(coords, features, grid, OWN, None)


def of_parts(coords: Tensor, features: Tensor, grid: Grid, kind: Kind, given: Any) -> Scan:
    """The voxels of coords of int32 or int64 [N, 1 + D]; UserError for other types."""
    if coords.dtype == torch.int64:
        # What int32 does not hold stays out of any bounds, and is reported as such.
        coords = coords.clamp(-(2**31), 2**31 - 1).to(torch.int32)
    if coords.dtype != torch.int32:
        raise _C.UserError(f"coords are {coords.dtype}: give int32 or int64, as coords.int() makes")
    return Scan(coords, features, grid, kind, given)
