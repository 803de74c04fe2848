"""As much of TorchSparse as TRELLIS uses, with dense convolutions of PyTorch: too simple to be wrong.
Grids have no border."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from conftest import at_sites
from torch import Tensor


class SparseTensor:
    """feats [N, ...] at coords int32 [N, 4], divided by `stride`."""

    def __init__(
        self, feats: Tensor, coords: Tensor, stride: Sequence[int] = (1, 1, 1), spatial_range: Any = None
    ) -> None:
        self.F, self.C = feats, coords
        self.coords, self.stride, self.spatial_range = coords, stride, spatial_range
        self._caches: dict[Any, Tensor] = {}  # coordinates by stride

    def dense(self) -> Tensor:
        """[B, shape..., C]"""
        return filled(self.F, self.C).movedim(1, -1)


def filled(rows: Tensor, cells: Tensor) -> Tensor:
    """[B, C, shape...], from cell 0 to the last."""
    extents = (cells.amax(0) + 1).tolist()
    return rows.new_zeros((*extents, rows.shape[1])).index_put(tuple(cells.long().unbind(1)), rows).movedim(-1, 1)


class Conv3d(torch.nn.Module):
    """`kernel` [K, in, out], or [in, out] of a single offset and stride 1: an odd number of offsets with
    the first axis fastest, an even one with the last."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        padding: int,
        dilation: int,
        bias: bool,
        transposed: bool = False,
    ) -> None:
        super().__init__()
        self.size, self.step, self.stride = kernel_size, stride, (stride,) * 3
        self.out_channels, self.transposed = out_channels, transposed
        offsets = [kernel_size**3] if kernel_size > 1 or stride > 1 else []
        self.kernel = torch.nn.Parameter(torch.zeros(*offsets, in_channels, out_channels))
        self.bias = torch.nn.Parameter(torch.zeros(out_channels)) if bias else None

    def weight(self) -> Tensor:
        """[in, out, k, k, k]"""
        weight = self.kernel.reshape(*[self.size] * 3, *self.kernel.shape[-2:])
        return weight.permute(3, 4, 2, 1, 0) if self.size % 2 else weight.permute(3, 4, 0, 1, 2)

    def forward(self, x: SparseTensor) -> SparseTensor:
        if self.transposed:
            stride = tuple(step // self.step for step in x.stride)
            cells, rows = x._caches[stride], self.backward_rows(x, x._caches[stride])
        elif self.step == 1:
            cells, stride = x.C, x.stride
            # Cells may be negative; `low` of them are added on every side.
            low = x.C.new_tensor([0, *[int(-x.C.min().clamp_max(0))] * 3])
            grid = F.conv3d(
                filled(x.F, x.C + low), self.weight().transpose(0, 1), self.bias, padding=self.size // 2
            )
            rows = at_sites(grid, x.C + low)
        else:
            stride = tuple(step * self.step for step in x.stride)
            cells, rows = self.coarser(x)
        y = SparseTensor(rows, cells, stride)
        x._caches.setdefault(x.stride, x.C)
        y._caches = x._caches
        return y

    def coarser(self, x: SparseTensor) -> tuple[Tensor, Tensor]:
        """in = out · stride + offset, for every out that meets an input; x has no negative cells."""
        below = -(-(self.size - 1) // self.step)  # the smallest out, negated
        around = [below * self.step, self.size - 1] * 3
        grid = F.conv3d(
            F.pad(filled(x.F, x.C), around), self.weight().transpose(0, 1), self.bias, self.step
        )
        ones = F.pad(filled(torch.ones_like(x.F[:, :1]), x.C), around)
        reached = F.conv3d(ones, ones.new_ones(1, 1, *[self.size] * 3), None, self.step)
        cells = (reached[:, 0] > 0.5).nonzero().int()
        return cells - cells.new_tensor([0, below, below, below]), at_sites(grid, cells)

    def backward_rows(self, x: SparseTensor, fine: Tensor) -> Tensor:
        low = x.C.amin(0).clamp_max(0)
        grid = F.conv_transpose3d(filled(x.F, x.C - low), self.weight(), self.bias, self.step)
        return at_sites(grid, fine - low * self.step)
