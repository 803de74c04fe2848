"""Makes sites and maps inside a graph of torch.compile or torch.export. A graph holds tensors only, so tokens
stand for sites and maps, and the number of rows may be unknown until the graph runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._sites import known_of
from ..coords import Coordinates
from ..window import Window
from . import library  # noqa: F401  (registers the operators)

_ops = torch.ops.pumice


class TracedMap(NamedTuple):
    """A map inside a graph."""

    token: Tensor
    in_rows: int
    out_rows: int
    offsets: int


class TracedCoordinates(Coordinates):
    """Sites that a graph makes.

    `known`: batch size, stride, spatial shape (None: there is none, or only the call itself tells).
    `origin`: the sites and the window of the strided map that led here.
    """

    __slots__ = ("_known", "_origin")

    _known: tuple[Any, ...]
    _origin: tuple[Coordinates, Window] | None

    @classmethod
    def of(
        cls,
        token: Tensor,
        indices: Tensor,
        known: tuple[Any, ...],
        origin: tuple[Coordinates, Window] | None = None,
    ) -> TracedCoordinates:
        self = cls.__new__(cls)
        self._sites = None
        self._indices = indices
        self._version = None
        self._meta = None
        self._token = token
        self._known = known
        self._origin = origin
        return self

    def _described(self) -> tuple[Any, ...]:
        return self._known if torch.compiler.is_compiling() else super()._described()


def voxel_sites(
    positions: Tensor,
    batch: Tensor | None,
    size: Sequence[float],
    range: Sequence[float] | None,
    spatial_shape: Sequence[int] | None,
    batch_size: int | None,
) -> tuple[Coordinates, Tensor]:
    """(sites, int32 [P] row of each point); see `library.sites.find_voxels`."""
    shape = None if spatial_shape is None else list(spatial_shape)
    bounds = None if range is None else list(range)
    made = _ops.voxel_sites(positions, batch, list(size), bounds, shape, batch_size)
    token, cells, row_of, items = made
    batch_size = None if batch_size is None else max(batch_size, 1)  # the operator refuses less when it runs
    known = known_of(items, batch_size, [1, 1, 1], shape)
    return TracedCoordinates.of(token, cells, known), row_of


def submanifold_map(coords: Coordinates, window: Window) -> TracedMap:
    rows = coords.rows
    return TracedMap(_ops.submanifold_map(coords.token, window.numbers), rows, rows, window.volume)


def strided_map(
    coords: Coordinates, window: Window, cell: bool
) -> tuple[TracedMap, Coordinates]:
    made = _ops.strided_map(coords.token, coords.indices, window.numbers, cell)
    items, stride, shape = coords._described()
    known = (
        items,
        tuple([s * step for s, step in zip(stride, window.stride)]),
        None if shape is None else window.strided_shape(shape),
    )
    return _made(coords, window, made, known, (coords, window))


def generative_map(coords: Coordinates, window: Window) -> tuple[TracedMap, Coordinates]:
    made = _ops.generative_map(coords.token, coords.indices, window.numbers)
    items, stride, shape = coords._described()
    known = (
        items,
        _finer(stride, window),
        None if shape is None else window.transposed_shape(shape),
    )
    return _made(coords, window, made, known, None)


def transposed_map(coords: Coordinates, fine: Coordinates, window: Window) -> TracedMap:
    token = _ops.transposed_map(coords.token, fine.token, window.numbers)
    return TracedMap(token, coords.rows, fine.rows, window.volume)


def inverse_map(
    coords: Coordinates, window: Window, fine: Coordinates | None
) -> tuple[TracedMap, Coordinates]:
    if fine is None:
        origin = _origin(coords)
        if origin is not None and origin[1] == window:
            fine = origin[0]
    if fine is not None:
        token = _ops.inverse_map(coords.token, fine.token, window.numbers)
        return TracedMap(token, coords.rows, fine.rows, window.volume), fine
    made = _ops.inverse_map_back(coords.token, coords.indices, window.numbers)
    items, stride, _ = coords._described()
    return _made(coords, window, made, (items, _finer(stride, window), None), None)


def finer_sites(coords: Coordinates, window: Window) -> Coordinates:
    origin = _origin(coords)
    if origin is not None and origin[1].stride == window.stride:
        return origin[0]
    token, indices = _ops.finer_sites(coords.token, coords.indices, window.stride)
    items, stride, _ = coords._described()
    return TracedCoordinates.of(token, indices, (items, _finer(stride, window), None))


def _origin(coords: Coordinates) -> tuple[Coordinates, Window] | None:
    return coords._origin if isinstance(coords, TracedCoordinates) else None


def _finer(stride: Sequence[int], window: Window) -> tuple[int, ...]:
    return tuple([s // step if s % step == 0 else 1 for s, step in zip(stride, window.stride)])


def _made(
    coords: Coordinates,
    window: Window,
    made: tuple[Tensor, Tensor, Tensor],
    known: tuple[Any, ...],
    origin: tuple[Coordinates, Window] | None,
) -> tuple[TracedMap, Coordinates]:
    token, sites, indices = made
    out = TracedCoordinates.of(sites, indices, known, origin)
    return TracedMap(token, coords.rows, out.rows, window.volume), out


def unite(left: Coordinates, right: Coordinates) -> tuple[Coordinates, Tensor, Tensor]:
    """(sites of either, the row there of each of `left`, of each of `right`)"""
    token, indices, *rows = _ops.unite_sites(
        left.token, right.token, left.indices, right.indices
    )
    items, stride, shape = left._described()
    others, _, other_shape = right._described()
    known = (max(items, others), stride, None if other_shape is None else shape)
    return TracedCoordinates.of(token, indices, known), *rows


def prune(coords: Coordinates, keep: Tensor) -> tuple[Coordinates, Tensor]:
    """(sites that stay, int64 row of each)"""
    token, indices, kept = _ops.prune_sites(coords.token, coords.indices, keep)
    return TracedCoordinates.of(token, indices, coords._described()), kept


def from_mask(mask: Tensor) -> Coordinates:
    """uint8 [B, shape...] to the sites where it is not 0."""
    token, indices = _ops.sites_of_mask(mask)
    known = (mask.shape[0], (1,) * (mask.dim() - 1), None)
    return TracedCoordinates.of(token, indices, known)


def on_sites(features: Tensor, sites: Coordinates, wanted: Coordinates, what: str) -> Tensor:
    """A copy of `features`, with the rows of `wanted`; raises where those are not the same sites."""
    return _ops.on_sites(features, sites.token, wanted.token, sites.rows, wanted.rows, what)
