"""Kernel maps: found again by the sites themselves and the window, never by a name.

In a compiled graph a map is a `TracedMap`, elsewhere a `_C.Map`; operators take both.
"""

from __future__ import annotations

from typing import NamedTuple, Union

import torch
from torch import Tensor

from .. import _C
from ..coords import Coordinates
from ..window import Window


class TracedMap(NamedTuple):
    """A map inside a graph."""

    token: Tensor
    in_rows: int
    out_rows: int
    offsets: int


Map = Union[_C.Map, TracedMap]


def as_traced(map: Map) -> TracedMap:
    if isinstance(map, TracedMap):
        return map
    return TracedMap(_C.map_token(map), map.in_rows, map.out_rows, map.offsets)


def submanifold_map(coords: Coordinates, window: Window) -> Map:
    """Outputs are the inputs."""
    if torch.compiler.is_compiling():
        rows = coords.indices.shape[0]
        token = torch.ops.pumice.submanifold_map(coords.token, window.numbers)
        return TracedMap(token, rows, rows, window.volume)
    return _C.submanifold_map(coords.sites, window.c)


def strided_map(coords: Coordinates, window: Window, cell: bool) -> tuple[Map, Coordinates]:
    """Onto every output cell that an offset reaches, or (`cell`) every occupied coarse cell."""
    if torch.compiler.is_compiling():
        token, sites, indices = torch.ops.pumice.strided_map(
            coords.token, coords.indices, window.numbers, cell
        )
        found = TracedMap(token, coords.indices.shape[0], indices.shape[0], window.volume)
        return found, Coordinates._traced(sites, indices)
    map = _C.strided_map(coords.sites, window.c, cell)
    return map, Coordinates._of(map.out_sites)


def transposed_map(coords: Coordinates, fine: Coordinates, window: Window) -> Map:
    """From coarse sites onto given finer ones."""
    if torch.compiler.is_compiling():
        token = torch.ops.pumice.transposed_map(coords.token, fine.token, window.numbers)
        return TracedMap(token, coords.indices.shape[0], fine.indices.shape[0], window.volume)
    return _C.transposed_map(coords.sites, fine.sites, window.c)


def generative_map(coords: Coordinates, window: Window) -> tuple[Map, Coordinates]:
    """Onto every finer site it reaches."""
    map = _C.generative_map(coords.sites, window.c)
    return map, Coordinates._of(map.out_sites)


def inverse_map(
    coords: Coordinates, window: Window, fine: Coordinates | None = None
) -> tuple[Map, Coordinates]:
    """The strided map of `window` that led to these sites, from the other side."""
    if torch.compiler.is_compiling() and fine is not None:
        token = torch.ops.pumice.inverse_map(coords.token, fine.token, window.numbers)
        return TracedMap(token, coords.indices.shape[0], fine.indices.shape[0], window.volume), fine
    map = _C.inverse_map(coords.sites, window.c, None if fine is None else fine.sites)
    return map, Coordinates._of(map.out_sites) if fine is None else fine
