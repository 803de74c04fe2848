"""As much of spconv as TRELLIS uses, with dense convolutions of PyTorch: too simple to be wrong."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from conftest import at_sites
from torch import Tensor


class SparseConvTensor:
    """features [N, ...] at indices int32 [N, 4] of a grid of `spatial_shape`."""

    def __init__(
        self,
        features: Tensor,
        indices: Tensor,
        spatial_shape: Sequence[int],
        batch_size: int,
        grid: Any = None,
        voxel_num: Any = None,
        indice_dict: dict[str, Any] | None = None,
    ) -> None:
        self._features = features
        self.indices = indices
        self.spatial_shape = [int(extent) for extent in spatial_shape]
        self.batch_size = batch_size
        self.grid, self.voxel_num = grid, voxel_num
        self.indice_dict = {} if indice_dict is None else indice_dict
        self.benchmark = self.benchmark_record = self.thrust_allocator = None
        self._timer = self.force_algo = self.int8_scale = None

    @property
    def features(self) -> Tensor:
        return self._features

    def replace_feature(self, features: Tensor) -> SparseConvTensor:
        other = copy.copy(self)
        other._features = features
        return other

    def dense(self) -> Tensor:
        """[B, C, shape...]"""
        rows, cells = self._features, self.indices.long()
        grid = rows.new_zeros((self.batch_size, *self.spatial_shape, rows.shape[1]))
        return grid.index_put(tuple(cells.unbind(1)), rows).movedim(-1, 1)


class Convolution(torch.nn.Module):
    """`weight` [out, k, k, k, in]."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        bias: bool = True,
        indice_key: str | None = None,
        algo: Any = None,
    ) -> None:
        super().__init__()
        self.size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.in_channels, self.out_channels = in_channels, out_channels
        self.indice_key = indice_key
        self.weight = torch.nn.Parameter(torch.zeros(out_channels, *[kernel_size] * 3, in_channels))
        self.bias = torch.nn.Parameter(torch.zeros(out_channels)) if bias else None


class SubMConv3d(Convolution):
    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        if self.size == 1:  # the memory of such a weight is [in, out]
            matrix = self.weight.reshape(self.in_channels, self.out_channels)
            return x.replace_feature(F.linear(x.features, matrix.T, self.bias))
        weight, reach = self.weight.permute(0, 4, 1, 2, 3), self.size // 2 * self.dilation
        grid = F.conv3d(x.dense(), weight, self.bias, padding=reach, dilation=self.dilation)
        return x.replace_feature(at_sites(grid, x.indices))


class SparseConv3d(Convolution):
    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        window = (self.stride, self.padding, self.dilation)
        grid = F.conv3d(x.dense(), self.weight.permute(0, 4, 1, 2, 3), self.bias, *window)
        ones = x.replace_feature(torch.ones_like(x.features[:, :1])).dense()
        reached = F.conv3d(ones, ones.new_ones(1, 1, *[self.size] * 3), None, *window)
        cells = (reached[:, 0] > 0.5).nonzero()
        known = {**x.indice_dict, self.indice_key: (x, self)}
        rows = at_sites(grid, cells)
        return SparseConvTensor(rows, cells.int(), grid.shape[2:], x.batch_size, indice_dict=known)


class SparseInverseConv3d(Convolution):
    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        before, down = x.indice_dict[self.indice_key]
        reach = 2 * down.padding - down.dilation * (self.size - 1) - 1
        more = [
            fine - (coarse - 1) * down.stride + reach
            for fine, coarse in zip(before.spatial_shape, x.spatial_shape)
        ]
        weight = self.weight.permute(4, 0, 1, 2, 3)
        grid = F.conv_transpose3d(
            x.dense(), weight, self.bias, down.stride, down.padding, more, 1, down.dilation
        )
        return before.replace_feature(at_sites(grid, before.indices))
