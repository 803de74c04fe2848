"""Which sites a convolution leads to, and by which of Pumice's maps."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...... import _C, ops
from ......coords import Coordinates
from ......window import Window
from .... import conventions
from ....tensor import SparseTensor


def find(
    input: SparseTensor,
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    generative: bool,
    floor: bool,
) -> tuple[ops.Map, Coordinates | None]:
    """The map and where it leads; None: to the same sites. `floor`: as `strided` takes it."""
    sites = input.sites
    centre = [(k - 1) // 2 * d for k, d in zip(size, dilation)]
    if transposed and generative:
        return ops.generative_map(sites, Window(size, stride, centre, dilation))
    if all(s == 1 for s in stride):
        even = size[0] * size[1] * size[2] % 2 == 0 and conventions.batch_first
        map = ops.submanifold_map(
            sites, Window(size, stride, [0, 0, 0] if even else centre, dilation)
        )
        return (map.transposed() if transposed else map), None
    if not transposed:
        return strided(input, size, stride, padding, floor, dilation=dilation)
    known = input._caches.kmaps.get(("window", sites.stride, tuple(size), tuple(stride)))
    if known is None:
        raise _C.UserError(
            f"transposed convolution of kernel {tuple(size)} and stride {tuple(stride)}: no convolution "
            f"of both led to these sites of stride {sites.stride}; generative=True makes sites of its own"
        )
    window, fine, cut = known
    if cut is not None and cut.is_same(sites):
        return ops.transposed_map(sites, fine, window), fine
    return ops.inverse_map(sites, window, fine)


def strided(
    input: SparseTensor,
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    floor: bool,
    extents: Sequence[int] | None = None,
    dilation: Sequence[int] = (1, 1, 1),
) -> tuple[ops.Map, Coordinates]:
    """Onto coarser sites, and noted for the way back.

    floor: onto each occupied coarse cell, around its centre and without a border.
    extents: (batch size, X, Y, Z) of the outputs, where the input does not say.
    """
    cell = floor
    if not conventions.batch_first:  # padding is no argument before 2.1
        cell = all(s in (1, k) for k, s in zip(size, stride))
    if floor or not conventions.batch_first:
        padding = [(k - 1) // 2 * d for k, d in zip(size, dilation)]
    window, sites = Window(size, stride, padding, dilation), input.sites
    map, coarse = ops.strided_map(sites, window, cell)
    cut = None
    if conventions.batch_first and not floor and input.spatial_range is None:
        if extents is not None:
            high = coarse.indices.new_tensor(extents[1:]) - 1
            cut = _kept(coarse, torch.zeros_like(high), high)
        elif conventions.border and len(sites) > 0:
            cut = _within_border(input, window, coarse)
    if cut is not None:
        map, coarse = ops.transposed_map(cut, sites, window).transposed(), cut
    # TorchSparse finds maps by stride and kernel, without padding.
    input._caches.kmaps[("window", coarse.stride, tuple(size), tuple(stride))] = (window, sites, cut)
    return map, coarse


def _within_border(input: SparseTensor, window: Window, coarse: Coordinates) -> Coordinates | None:
    """Of the coarse sites those that TorchSparse 2.1 has without `spatial_range`; None: all of them."""
    key = ("border", *window.numbers, conventions.allow_negative)
    known = input._caches.kmaps.get(key)
    if known is not None and known[0].is_same(input.sites):
        return known[1]
    sizes, steps, pads, _ = (coarse.indices.new_tensor(axis) for axis in zip(*window._axes()))
    cells = input.sites.indices[:, 1:]
    high = torch.div(cells.amax(0) + 2 * pads - sizes + 1, steps, rounding_mode="floor")
    low = torch.zeros_like(high)
    if conventions.allow_negative:
        low = torch.div(cells.amin(0) - 2 * pads + sizes - 1, steps, rounding_mode="trunc")
    cut = _kept(coarse, low, high)
    input._caches.kmaps[key] = (input.sites, cut)
    return cut


def _kept(coarse: Coordinates, low: torch.Tensor, high: torch.Tensor) -> Coordinates | None:
    """The sites from `low` to `high`; None: all of them. On a GPU it waits for how many."""
    cells = coarse.indices[:, 1:]
    inside = ((cells >= low) & (cells <= high)).all(1)
    if bool(inside.all()):
        return None
    return Coordinates(
        coarse.indices[inside], batch_size=coarse.batch_size, stride=coarse.stride
    )
