"""Blocks of convolution, norm and activation. Children have TorchSparse's names."""

from __future__ import annotations

from typing import Any

import torch

from ...axis_numbers import make_ntuple
from ...nn.modules import BatchNorm, Conv3d, ReLU
from ...tensor import SparseTensor


class SparseConvBlock(torch.nn.Sequential):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, dilation: int = 1
    ) -> None:
        conv = Conv3d(in_channels, out_channels, kernel_size, stride=stride, dilation=dilation)
        super().__init__(conv, BatchNorm(out_channels), ReLU(True))


class SparseConvTransposeBlock(torch.nn.Sequential):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, dilation: int = 1
    ) -> None:
        conv = Conv3d(
            in_channels, out_channels, kernel_size, stride=stride, dilation=dilation, transposed=True
        )
        super().__init__(conv, BatchNorm(out_channels), ReLU(True))


class SparseResBlock(torch.nn.Module):
    """Two convolutions round which the input goes, through a 1x1x1 convolution where shapes differ."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, dilation: int = 1
    ) -> None:
        super().__init__()
        self.main = torch.nn.Sequential(
            Conv3d(in_channels, out_channels, kernel_size, stride=stride, dilation=dilation),
            BatchNorm(out_channels),
            ReLU(True),
            Conv3d(out_channels, out_channels, kernel_size, dilation=dilation),
            BatchNorm(out_channels),
        )
        self.shortcut: torch.nn.Module = torch.nn.Identity()
        if in_channels != out_channels or make_ntuple(stride, 3) != (1, 1, 1):
            self.shortcut = torch.nn.Sequential(
                Conv3d(in_channels, out_channels, 1, stride=stride), BatchNorm(out_channels)
            )
        self.relu = ReLU(True)

    def forward(self, x: SparseTensor) -> SparseTensor:
        return self.relu(self.main(x) + self.shortcut(x))
