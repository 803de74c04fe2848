"""Views from above: the axis `dim` of x, y, z goes, into nothing, into channels, or through a weight of
each height. TorchSparse 2.1 counts columns with the batch index there as if it came last, and stops or
mixes axes; here `dim`, `shape` and `offset` mean the axes x, y, z in every release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..... import _C, ops
from ... import conventions
from ...tensor import SparseTensor, explaining_layer


class ToBEVReduction(torch.nn.Module):
    """The mean of each column, at 0 of the axis `dim`."""

    def __init__(self, dim: int = 1) -> None:
        super().__init__()
        self.dim = _axis("ToBEVReduction", dim)

    def extra_repr(self) -> str:
        return f"dim = {self.dim}"

    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        coords = input.coords.clone()
        coords[:, _column(self.dim)] = 0
        columns, row_of = torch.unique(coords, dim=0, return_inverse=True)
        feats = ops.reduce_rows(input.feats, row_of, len(columns), "mean")
        return SparseTensor(feats, columns, input.stride)


class _OverHeights(torch.nn.Module):
    """`kernel` [heights, in, out] and `bias` [1, out], which every site adds before sites are summed."""

    def __init__(self, in_channels: int, out_channels: int, n_kernels: int, dim: int, bias: bool) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.n_kernels = n_kernels
        self.dim = _axis(type(self).__name__, dim)
        self.kernel = torch.nn.Parameter(torch.empty(n_kernels, in_channels, out_channels))
        if bias:
            self.bias: Any = torch.nn.Parameter(torch.zeros(1, out_channels))
        else:
            self.bias = 0
        self.reset_parameters()

    def extra_repr(self) -> str:
        return f"in_channels={self.in_channels}, out_channels={self.out_channels}, n_kernels={self.n_kernels}"

    def reset_parameters(self) -> None:
        """Uniform in ±1 / sqrt(channels)."""
        bound = 1 / math.sqrt(self.in_channels)
        torch.nn.init.uniform_(self.kernel, -bound, bound)

    def _rows(self, input: SparseTensor) -> Tensor:
        """[N, out]: each row through the weight of its height. A GPU is waited for, once."""
        heights = _cells(input)[:, self.dim].long()
        order = heights.argsort(stable=True)
        known = heights.clamp(-1, self.n_kernels) + 1
        below, *counts, above = torch.bincount(known, minlength=self.n_kernels + 2).tolist()
        if below or above:
            raise _C.UserError(
                f"{below + above} sites are outside of heights 0 to {self.n_kernels - 1} on axis "
                f"{self.dim}: give a longer kernel, or crop them"
            )
        parts = input.feats[order].split(counts)
        rows = torch.cat([part @ self.kernel[height] for height, part in enumerate(parts)])
        return rows[order.argsort()] + self.bias


class ToDenseBEVConvolution(_OverHeights):
    """[batch, out, the other two of `shape`]: rows through the weight of their height, summed where they
    are above each other.

    Args:
        shape: cells of x, y, z; a weight for each of those of `dim`.
        offset: the first cell of the other two axes; before 2.1 in cells of the finest level.
        dim: the axis that goes.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        shape: Any,
        offset: Sequence[int] = (0, 0, 0),
        dim: int = 1,
        bias: bool = False,
    ) -> None:
        extents = _extents(shape)
        heights = extents[_axis("ToDenseBEVConvolution", dim)]
        super().__init__(in_channels, out_channels, heights, dim, bias)
        _keep_box(self, extents, offset)

    @explaining_layer
    def forward(self, input: SparseTensor) -> Tensor:
        rows = self._rows(input)
        cells = _cells(input, self.offset)[:, self.bev_dims]
        return _dense(input, rows, cells, [self._extents[axis] for axis in self.bev_dims])


class ToBEVConvolution(_OverHeights):
    """The same onto sites, at 0 of the axis `dim`; `stride` merges columns besides."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_kernels: int,
        stride: int = 1,
        dim: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__(in_channels, out_channels, n_kernels, dim, bias)
        self.stride = stride

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, stride={self.stride}"

    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        rows = self._rows(input)
        stride = tuple(step * self.stride for step in input.stride)
        cells = torch.div(_cells(input), self.stride, rounding_mode="floor")
        cells[:, self.dim] = 0
        if not conventions.batch_first:
            cells = cells * cells.new_tensor(stride)
        coords = input.coords.clone()
        coords[:, conventions.axes()] = cells.to(coords.dtype)
        columns, row_of = torch.unique(coords, dim=0, return_inverse=True)
        return SparseTensor(ops.reduce_rows(rows, row_of, len(columns), "sum"), columns, stride)


class ToBEVHeightCompression(torch.nn.Module):
    """[batch, cells of `dim` · channels, the other two of `shape`], channels fastest. What is higher or
    lower than `shape` is added to its last and first cell.

    Args:
        channels: of the input.
        shape: cells of x, y, z.
        offset: the first cell; before 2.1 in cells of the finest level.
        dim: the axis that becomes channels.
    """

    def __init__(
        self, channels: int, shape: Any, offset: Sequence[int] = (0, 0, 0), dim: int = 1
    ) -> None:
        super().__init__()
        self.channels = channels
        self.dim = _axis("ToBEVHeightCompression", dim)
        _keep_box(self, _extents(shape), offset)

    def extra_repr(self) -> str:
        return f"channels={self.channels}"

    @explaining_layer
    def forward(self, input: SparseTensor) -> Tensor:
        cells = _cells(input, self.offset)[:, [*self.bev_dims, self.dim]]
        extents = [self._extents[axis] for axis in (*self.bev_dims, self.dim)]
        cells[:, 2] = cells[:, 2].clamp(0, extents[2] - 1)
        grid = _dense(input, input.feats, cells, extents)  # [batch, channels, a, b, height]
        return grid.movedim(-1, 1).flatten(1, 2)


def _axis(layer: str, dim: Any) -> int:
    if dim not in (0, 1, 2):
        raise _C.UserError(f"{layer}: dim = {dim!r}: give 0, 1 or 2, which are x, y and z")
    return int(dim)


def _extents(shape: Any) -> list[int]:
    extents = [int(extent) for extent in shape]
    if len(extents) != 3:
        raise _C.UserError(f"shape = {extents}: give the cells of x, y and z")
    return extents


def _keep_box(module: Any, extents: list[int], offset: Sequence[int]) -> None:
    """As TorchSparse keeps it in state dicts, batch index last; and what runs."""
    first = [int(cell) for cell in offset]
    module.register_buffer("offset", torch.tensor([[*first, 0]], dtype=torch.int32))
    module.register_buffer("shape", torch.tensor(extents, dtype=torch.int32))
    module.bev_dims = [axis for axis in range(3) if axis != module.dim]
    module.bev_shape = module.shape[module.bev_dims]
    module._extents = extents


def _column(dim: int) -> int:
    return range(4)[conventions.axes()][dim]


def _cells(input: SparseTensor, offset: Tensor | None = None) -> Tensor:
    """[N, 3] in cells of the tensor's stride, from the cell `offset` [1, 4] on."""
    cells = input.coords[:, conventions.axes()]
    if offset is not None:
        cells = cells - offset[:, :3]
    if conventions.batch_first:
        return cells.clone()
    return torch.div(cells, cells.new_tensor(input.stride), rounding_mode="floor")


def _dense(input: SparseTensor, rows: Tensor, cells: Tensor, extents: Sequence[int]) -> Tensor:
    """[batch, C, extents…]: sums of rows in one cell. A GPU is waited for, once."""
    items = input.coords[:, conventions.batch()].long()
    limits = cells.new_tensor(extents)
    outside = ((cells < 0) | (cells >= limits)).any(1).sum()
    last = items.amax() if len(items) else items.new_tensor(-1)
    outside, batch_size = torch.stack([outside, last + 1]).tolist()
    if outside:
        raise _C.UserError(
            f"{outside} sites are outside of the grid of {list(extents)} cells: crop them, or give a larger "
            "shape, or an offset"
        )
    place = items
    for axis, extent in enumerate(extents):
        place = place * extent + cells[:, axis]
    full = ops.reduce_rows(rows, place, batch_size * math.prod(extents), "sum")
    return full.reshape(batch_size, *extents, rows.shape[1]).movedim(-1, 1).contiguous()
