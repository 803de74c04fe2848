"""Compares a converted layer with a dense reference, which reads the original weight by its own library's
definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .. import ops
from ..coords import Coordinates
from ..window import Window
from .layouts import Layout, first_is_fastest


def matrix_at(
    layout: Layout, weight: Tensor, size: Sequence[int], offset: Sequence[int], strided: bool
) -> Tensor:
    """[in, out] of one offset, by index arithmetic on the memory of the parameter alone."""
    if weight.dim() == 2:
        return weight
    if layout.flat:
        axes = range(len(size)) if first_is_fastest(layout, size) else reversed(range(len(size)))
        index, step = 0, 1
        for axis in axes:
            index += offset[axis] * step
            step *= size[axis]
        chosen = weight[index]
        return torch.block_diag(*chosen) if chosen.dim() == 3 else chosen
    if layout.axes == "kio":
        return weight[tuple(offset)]
    outputs, inputs = weight.shape[0], weight.shape[-1]
    if layout.pointwise == "swapped" and math.prod(size) == 1 and not strided:
        memory = weight.contiguous().flatten()
        return torch.stack([memory[i * outputs : (i + 1) * outputs] for i in range(inputs)])
    return torch.stack([weight[(o, *offset)] for o in range(outputs)], dim=1)


def dense_reference(
    layout: Layout, weight: Tensor, size: Sequence[int], grid: Tensor, strided: bool, low: Sequence[int]
) -> Tensor:
    """grid [extent..., in] to [extent..., out]: out(p) = sum over r of in(p - low + r) W(r)."""
    extents = grid.shape[:-1]
    padded = grid.new_zeros((*(e + k - 1 for e, k in zip(extents, size)), grid.shape[-1]))
    padded[tuple(slice(left, left + e) for left, e in zip(low, extents))] = grid
    total: Tensor | None = None
    for offset in itertools.product(*(range(k) for k in size)):
        window = padded[tuple(slice(r, r + e) for r, e in zip(offset, extents))]
        part = window @ matrix_at(layout, weight, size, offset, strided)
        total = part if total is None else total + part
    assert total is not None
    return total


def error_of(
    source: Layout, weight: Tensor, size: Sequence[int], common: Tensor, groups: int, strided: bool,
    reverse_axes: bool, seed: int = 0,
) -> float:
    """The largest difference on random input, relative to the largest output: `weight` as `source` defines
    it, and Pumice's convolution with `common` [k..., in / groups, out], both in float64.

    `reverse_axes`: `common` is for coordinates in the opposite order.
    """
    generator = torch.Generator().manual_seed(seed)
    extents = [k + 1 for k in size]
    low = [(k - 1) // 2 for k in size]
    inputs, outputs = common.shape[-2] * groups, common.shape[-1]
    grid = torch.randn((*extents, inputs), generator=generator, dtype=torch.float64)
    occupied = torch.rand(tuple(extents), generator=generator) < 0.8
    occupied[tuple(slice(0, 1) for _ in extents)] = True
    grid = grid * occupied[..., None]
    expected = dense_reference(source, weight.double(), size, grid, strided, low)

    cells = occupied.nonzero()
    at = tuple(cells.unbind(1))
    ordered = cells.flip(1) if reverse_axes else cells
    indices = torch.cat([torch.zeros((len(cells), 1), dtype=torch.int32), ordered.int()], 1)
    new_size = list(common.shape[:-2])
    ones = [1] * len(size)
    window = Window(new_size, ones, list(reversed(low)) if reverse_axes else low, ones)
    found = ops.convolution(
        grid[at],
        common.double().reshape(-1, common.shape[-2], outputs).contiguous(),
        ops.submanifold_map(Coordinates(indices.contiguous(), batch_size=1), window),
        groups=groups,
    )
    scale = max(expected.abs().max().item(), 1e-30)
    return (found - expected[at]).abs().max().item() / scale
