"""Registers the operators that make kernel maps, and the sites that maps lead to."""

from __future__ import annotations

from torch import Tensor

from ... import _C
from ..._registry import define, fake_token, unknown_size
from ...window import Window

_Made = tuple[Tensor, Tensor, Tensor]  # map, sites, indices


def _made(map: _C.Map) -> _Made:
    out = map.out_sites
    return _C.map_token(map), _C.sites_token(out), out.coordinates()


def _fake_made(sites: Tensor, indices: Tensor) -> _Made:
    return fake_token(sites), fake_token(sites), indices.new_empty((unknown_size(), indices.shape[1]))


def _submanifold_map(sites: Tensor, window: list[int]) -> Tensor:
    return _C.map_token(_C.submanifold_map(_C.sites_of(sites), Window.of(window).c))


def _strided_map(sites: Tensor, indices: Tensor, window: list[int], cell: bool) -> _Made:
    return _made(_C.strided_map(_C.sites_of(sites), Window.of(window).c, cell))


def _generative_map(sites: Tensor, indices: Tensor, window: list[int]) -> _Made:
    return _made(_C.generative_map(_C.sites_of(sites), Window.of(window).c))


def _transposed_map(sites: Tensor, fine: Tensor, window: list[int]) -> Tensor:
    coarse = _C.sites_of(sites)
    return _C.map_token(_C.transposed_map(coarse, _C.sites_of(fine), Window.of(window).c))


def _inverse_map(sites: Tensor, fine: Tensor, window: list[int]) -> Tensor:
    coarse = _C.sites_of(sites)
    return _C.map_token(_C.inverse_map(coarse, Window.of(window).c, _C.sites_of(fine)))


def _inverse_map_back(sites: Tensor, indices: Tensor, window: list[int]) -> _Made:
    return _made(_C.inverse_map(_C.sites_of(sites), Window.of(window).c, None))


define(
    "submanifold_map(Tensor sites, int[] window) -> Tensor",
    _submanifold_map,
    lambda sites, window: fake_token(sites),
)
define(
    "strided_map(Tensor sites, Tensor indices, int[] window, bool cell) -> "
    "(Tensor, Tensor, Tensor)",
    _strided_map,
    lambda sites, indices, window, cell: _fake_made(sites, indices),
)
define(
    "generative_map(Tensor sites, Tensor indices, int[] window) -> (Tensor, Tensor, Tensor)",
    _generative_map,
    lambda sites, indices, window: _fake_made(sites, indices),
)
define(
    "transposed_map(Tensor sites, Tensor fine, int[] window) -> Tensor",
    _transposed_map,
    lambda sites, fine, window: fake_token(sites),
)
define(
    "inverse_map(Tensor sites, Tensor fine, int[] window) -> Tensor",
    _inverse_map,
    lambda sites, fine, window: fake_token(sites),
)
define(
    "inverse_map_back(Tensor sites, Tensor indices, int[] window) -> (Tensor, Tensor, Tensor)",
    _inverse_map_back,
    lambda sites, indices, window: _fake_made(sites, indices),
)
