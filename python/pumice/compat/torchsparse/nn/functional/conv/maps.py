"""Which sites a convolution leads to, and by which of Pumice's maps.

Sites that are made come sorted by batch index, x, y, z, as TorchSparse sorts them; the engine makes them in
another order, which costs a reordering without a sort of its own.
"""

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
        return _generated(input, Window(size, stride, centre, dilation))
    if all(s == 1 for s in stride):
        even = size[0] * size[1] * size[2] % 2 == 0 and conventions.batch_first
        map = ops.submanifold_map(
            sites, Window(size, stride, [0, 0, 0] if even else centre, dilation)
        )
        return (map.transposed() if transposed else map), None
    if not transposed:
        return strided(input, size, stride, padding, floor, dilation=dilation)
    known = input._caches.kmaps.get(("window", sites.stride, tuple(size), tuple(stride)))
    if known is None or not known[2].is_same(sites):
        raise _C.UserError(
            f"transposed convolution of kernel {tuple(size)} and stride {tuple(stride)}: no convolution "
            f"of both led to these sites of stride {sites.stride}; generative=True makes sites of its own"
        )
    window, fine, _ = known
    return ops.transposed_map(sites, fine, window), fine


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
    earlier = not conventions.batch_first  # padding is no argument then
    cell = all(s in (1, k) for k, s in zip(size, stride)) if earlier else floor
    if floor or earlier:
        padding = [(k - 1) // 2 * d for k, d in zip(size, dilation)]
    window, sites = Window(size, stride, padding, dilation), input.sites
    reach = _reach_before(size, stride, dilation) if earlier and not cell else window
    bounded = not cell and input.spatial_range is None
    border = bounded and conventions.border and extents is None and len(sites) > 0
    key = (
        "coarse", cell, border, conventions.allow_negative, extents and tuple(extents), *window.numbers,
        *reach.numbers,
    )  # fmt: skip
    known = input._caches.kmaps.get(key)
    if known is None or not known[0].is_same(sites):
        made = Coordinates._of(_C.strided_sites(sites.sites, reach.c, cell))
        bounds = _border(sites, window) if border else None
        if bounded and extents is not None:
            bounds = sites.indices.new_zeros(3), sites.indices.new_tensor(extents[1:]) - 1
        known = sites, _sorted(made) if bounds is None else _cut(made, *bounds)
        input._caches.kmaps[key] = known
    coarse = known[1]
    # TorchSparse finds maps by stride and kernel, without padding.
    input._caches.kmaps[("window", coarse.stride, tuple(size), tuple(stride))] = (window, sites, coarse)
    return _C.transposed_map(coarse.sites, sites.sites, window.c).transposed(), coarse


def _generated(input: SparseTensor, window: Window) -> tuple[ops.Map, Coordinates]:
    """Onto every finer site, sorted."""
    sites = input.sites
    key = ("generated", *window.numbers)
    known = input._caches.kmaps.get(key)
    if known is None or not known[0].is_same(sites):
        known = sites, _sorted(ops.generative_map(sites, window)[1])
        input._caches.kmaps[key] = known
    return ops.transposed_map(sites, known[1], window), known[1]


def _sorted(made: Coordinates) -> Coordinates:
    """Sites in key order, in the order of TorchSparse: by batch index, x, y, z."""
    order = _lexicographic(made.indices, made.sites)
    row = torch.empty_like(order)
    row[order] = torch.arange(len(order), device=order.device)
    return Coordinates._of(made.sites.reorder(row.int()))


def _lexicographic(cells: torch.Tensor, sites: _C.Sites) -> torch.Tensor:
    """int64 [N]: the rows of cells int32 [N, 4], which are of `sites`, in the order of their columns. Does
    not wait for a GPU, whose sites have bounds."""
    if len(cells) == 0:
        return cells.new_zeros(0, dtype=torch.int64)
    bounds = sites.bounds or (cells[:, 1:].amin(0).tolist(), cells[:, 1:].amax(0).tolist())
    item, *columns = cells.long().unbind(1)
    place = item  # the engine's keys have 63 bits, and this needs no more
    for column, low, high in zip(columns, *bounds):
        place = place * (high - low + 1) + (column - low)
    return place.argsort()


def _reach_before(size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Window:
    """The window whose outputs are the sites that releases before 2.1 make: a row and each offset of the kernel
    in them, where the sums have an output and each offset. For an even kernel that is not the same. 2.0 counts
    its offsets from 0 for this, and from −((k − 1) // 2) for the sums, as 1.4 does for both."""
    from_zero = conventions.release >= (2, 0)
    last = [k - 1 if from_zero and k % 2 == 0 else k // 2 for k in size]
    return Window(size, stride, [step * d for step, d in zip(last, dilation)], dilation)


def _border(sites: Coordinates, window: Window) -> tuple[torch.Tensor, torch.Tensor]:
    """The first and last cell that TorchSparse has without `spatial_range`; before 2.1 there is no last one."""
    sizes, steps, pads, _ = (sites.indices.new_tensor(axis) for axis in zip(*window._axes()))
    cells = sites.indices[:, 1:]
    if not conventions.batch_first:
        low = -torch.div(-cells.amin(0), steps, rounding_mode="floor")
        return low, torch.full_like(low, torch.iinfo(low.dtype).max)
    high = torch.div(cells.amax(0) + 2 * pads - sizes + 1, steps, rounding_mode="floor")
    low = torch.zeros_like(high)
    if conventions.allow_negative:
        low = torch.div(cells.amin(0) - 2 * pads + sizes - 1, steps, rounding_mode="trunc")
    return low, high


def _cut(made: Coordinates, low: torch.Tensor, high: torch.Tensor) -> Coordinates:
    """The sites from `low` to `high`, sorted. On a GPU it waits for how many."""
    cells = made.indices
    inside = ((cells[:, 1:] >= low) & (cells[:, 1:] <= high)).all(1)
    if bool(inside.all()):
        return _sorted(made)
    kept = cells[inside]
    kept = kept[_lexicographic(kept, made.sites)]
    return Coordinates(kept, batch_size=made.batch_size, stride=made.stride)
