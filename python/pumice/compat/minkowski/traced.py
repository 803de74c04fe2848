"""The sites and maps of this interface inside a graph, where there are tensors alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ... import _C, ops
from ..._registry import define, fake_token, unknown_size
from ...coords import Coordinates
from ...ops.traced import TracedCoordinates, TracedMap
from ...window import Window
from . import order

_ops = torch.ops.pumice


def map_onto(sites: Coordinates, given: Coordinates, window: Window) -> ops.Map:
    """From sites onto coarser ones that are there: the pairs of the transposed convolution, from the other
    side."""
    if torch.compiler.is_compiling():
        token = _ops.map_onto(sites.token, given.token, window.numbers)
        return TracedMap(token, sites.rows, given.rows, window.volume)
    return _C.transposed_map(given.sites, sites.sites, window.c).transposed()


def coarsened(sites: Coordinates, steps: Sequence[int]) -> Coordinates:
    """order.coarsened, in a graph too."""
    if not torch.compiler.is_compiling():
        return order.coarsened(sites, steps)
    token, indices = _ops.coarsened_in_order(sites.token, sites.indices, list(steps))
    items, stride, _ = sites._described()
    known = items, tuple([s * step for s, step in zip(stride, steps)]), None
    return TracedCoordinates.of(token, indices, known)


def reached(
    sites: Coordinates, offsets: Sequence[Sequence[int]], steps: Sequence[int], finer: bool
) -> Coordinates:
    """order.reached, in a graph too."""
    if not torch.compiler.is_compiling():
        return order.reached(sites, offsets, steps, finer)
    flat = [number for offset in offsets for number in offset]
    token, indices = _ops.reached_in_order(sites.token, sites.indices, flat, list(steps), finer)
    items, stride, _ = sites._described()
    known = items, tuple(order.stride_reached(stride, steps, finer)), None
    return TracedCoordinates.of(token, indices, known)


def _map_onto(sites: Tensor, given: Tensor, window: list[int]) -> Tensor:
    found = _C.transposed_map(_C.sites_of(given), _C.sites_of(sites), Window.of(window).c)
    return _C.map_token(found.transposed())


def _coarsened(sites: Tensor, indices: Tensor, steps: list[int]) -> tuple[Tensor, Tensor]:
    return _parts(order.coarsened(Coordinates._of(_C.sites_of(sites)), steps))


def _reached(
    sites: Tensor, indices: Tensor, flat: list[int], steps: list[int], finer: bool
) -> tuple[Tensor, Tensor]:
    axes = len(steps)
    offsets = [flat[at : at + axes] for at in range(0, len(flat), axes)]
    return _parts(order.reached(Coordinates._of(_C.sites_of(sites)), offsets, steps, finer))


def _parts(made: Coordinates) -> tuple[Tensor, Tensor]:
    return made.token, made.sites.coordinates()


def _fake(sites: Tensor, indices: Tensor, *numbers: object) -> tuple[Tensor, Tensor]:
    return fake_token(sites), indices.new_empty((unknown_size(), indices.shape[1]))


define(
    "map_onto(Tensor sites, Tensor given, int[] window) -> Tensor",
    _map_onto,
    lambda sites, given, window: fake_token(sites),
)
define(
    "coarsened_in_order(Tensor sites, Tensor indices, int[] steps) -> (Tensor, Tensor)", _coarsened, _fake
)
define(
    "reached_in_order(Tensor sites, Tensor indices, int[] offsets, int[] steps, bool finer) -> "
    "(Tensor, Tensor)",
    _reached,
    _fake,
)
