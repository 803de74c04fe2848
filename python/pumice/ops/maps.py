"""Kernel maps: found again by the sites themselves and the window, never by a name.

In a graph a map is a `TracedMap`, elsewhere a `_C.Map`; operators take both.
"""

from __future__ import annotations

from typing import Union

import torch

from .. import _C
from ..coords import Coordinates
from ..window import Window
from . import graph
from .graph import TracedMap

Map = Union[_C.Map, TracedMap]


def as_traced(map: Map) -> TracedMap:
    if isinstance(map, TracedMap):
        return map
    return TracedMap(_C.map_token(map), map.in_rows, map.out_rows, map.offsets)


def submanifold_map(coords: Coordinates, window: Window) -> Map:
    """Outputs are the inputs."""
    if torch.compiler.is_compiling():
        return graph.submanifold_map(coords, window)
    return _C.submanifold_map(coords.sites, window.c)


def strided_map(coords: Coordinates, window: Window, cell: bool) -> tuple[Map, Coordinates]:
    """Onto every output cell that an offset reaches, or (`cell`) every occupied coarse cell."""
    if torch.compiler.is_compiling():
        return graph.strided_map(coords, window, cell)
    map = _C.strided_map(coords.sites, window.c, cell)
    return map, Coordinates._of(map.out_sites)


def transposed_map(coords: Coordinates, fine: Coordinates, window: Window) -> Map:
    """From coarse sites onto given finer ones."""
    if torch.compiler.is_compiling():
        return graph.transposed_map(coords, fine, window)
    return _C.transposed_map(coords.sites, fine.sites, window.c)


def generative_map(coords: Coordinates, window: Window) -> tuple[Map, Coordinates]:
    """Onto every finer site it reaches."""
    if torch.compiler.is_compiling():
        return graph.generative_map(coords, window)
    map = _C.generative_map(coords.sites, window.c)
    return map, Coordinates._of(map.out_sites)


def inverse_map(
    coords: Coordinates, window: Window, fine: Coordinates | None = None
) -> tuple[Map, Coordinates]:
    """The strided map of `window` that led to these sites, from the other side."""
    if torch.compiler.is_compiling():
        return graph.inverse_map(coords, window, fine)
    map = _C.inverse_map(coords.sites, window.c, None if fine is None else fine.sites)
    return map, Coordinates._of(map.out_sites) if fine is None else fine


def finer_sites(coords: Coordinates, window: Window) -> Coordinates | None:
    """The sites from which a strided map of the stride of `window`, whatever its size, led to
    `coords`; None where none did. Raises UserError where several did from different sites."""
    if torch.compiler.is_compiling():
        return graph.finer_sites(coords, window)
    found = _C.finer_sites(coords.sites, window.stride)
    return None if found is None else Coordinates._of(found)
