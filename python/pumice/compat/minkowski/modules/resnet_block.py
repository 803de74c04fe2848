"""Residual blocks, with the names of MinkowskiEngine's."""

from __future__ import annotations

from typing import Any

from torch import nn

from ..convolution import MinkowskiConvolution
from ..layers import MinkowskiBatchNorm, MinkowskiReLU


class BasicBlock(nn.Module):
    """Two 3-wide convolutions beside a shortcut."""

    expansion = 1

    def __init__(
        self, inplanes: int, planes: int, stride: Any = 1, dilation: Any = 1,
        downsample: nn.Module | None = None, bn_momentum: float = 0.1, dimension: int = -1,
    ) -> None:
        super().__init__()
        shape = {"dilation": dilation, "dimension": dimension}
        self.conv1 = MinkowskiConvolution(inplanes, planes, 3, stride=stride, **shape)
        self.norm1 = MinkowskiBatchNorm(planes, momentum=bn_momentum)
        self.conv2 = MinkowskiConvolution(planes, planes, 3, stride=1, **shape)
        self.norm2 = MinkowskiBatchNorm(planes, momentum=bn_momentum)
        self.relu = MinkowskiReLU(inplace=True)
        self.downsample = downsample

    def _residual(self, x: Any) -> Any:
        y = self.relu(self.norm1(self.conv1(x)))
        return self.norm2(self.conv2(y))

    def forward(self, x: Any) -> Any:
        return self.relu(self._residual(x) + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """A 3-wide convolution between two of width 1, beside a shortcut."""

    expansion = 4

    def __init__(
        self, inplanes: int, planes: int, stride: Any = 1, dilation: Any = 1,
        downsample: nn.Module | None = None, bn_momentum: float = 0.1, dimension: int = -1,
    ) -> None:
        super().__init__()
        wide = planes * self.expansion
        self.conv1 = MinkowskiConvolution(inplanes, planes, 1, dimension=dimension)
        self.norm1 = MinkowskiBatchNorm(planes, momentum=bn_momentum)
        self.conv2 = MinkowskiConvolution(
            planes, planes, 3, stride=stride, dilation=dilation, dimension=dimension
        )
        self.norm2 = MinkowskiBatchNorm(planes, momentum=bn_momentum)
        self.conv3 = MinkowskiConvolution(planes, wide, 1, dimension=dimension)
        self.norm3 = MinkowskiBatchNorm(wide, momentum=bn_momentum)
        self.relu = MinkowskiReLU(inplace=True)
        self.downsample = downsample

    def _residual(self, x: Any) -> Any:
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        return self.norm3(self.conv3(y))

    def forward(self, x: Any) -> Any:
        return self.relu(self._residual(x) + (x if self.downsample is None else self.downsample(x)))
