"""Residual blocks whose channels are weighed, with the names of MinkowskiEngine's."""

from __future__ import annotations

from typing import Any

from torch import nn

from ..layers import MinkowskiLinear, MinkowskiReLU, MinkowskiSigmoid
from ..pooling import MinkowskiGlobalPooling
from ..structure import MinkowskiBroadcastMultiplication
from .resnet_block import BasicBlock, Bottleneck


class SELayer(nn.Module):
    """Each channel times a weight between 0 and 1, which two linear layers find from the means of an item."""

    def __init__(self, channel: int, reduction: int = 16, D: int = -1) -> None:  # noqa: N803
        super().__init__()
        self.fc = nn.Sequential(
            MinkowskiLinear(channel, channel // reduction),
            MinkowskiReLU(inplace=True),
            MinkowskiLinear(channel // reduction, channel),
            MinkowskiSigmoid(),
        )
        self.pooling = MinkowskiGlobalPooling()
        self.broadcast_mul = MinkowskiBroadcastMultiplication()

    def forward(self, x: Any) -> Any:
        return self.broadcast_mul(x, self.fc(self.pooling(x)))


class SEBasicBlock(BasicBlock):
    """A BasicBlock with an SELayer before the shortcut comes in."""

    def __init__(
        self, inplanes: int, planes: int, stride: Any = 1, dilation: Any = 1,
        downsample: nn.Module | None = None, reduction: int = 16, D: int = -1,  # noqa: N803
    ) -> None:
        super().__init__(inplanes, planes, stride, dilation, downsample, dimension=D)
        self.se = SELayer(planes, reduction, D)

    def _residual(self, x: Any) -> Any:
        return self.se(super()._residual(x))


class SEBottleneck(Bottleneck):
    """A Bottleneck with an SELayer before the shortcut comes in."""

    def __init__(
        self, inplanes: int, planes: int, stride: Any = 1, dilation: Any = 1,
        downsample: nn.Module | None = None, D: int = 3, reduction: int = 16,  # noqa: N803
    ) -> None:
        super().__init__(inplanes, planes, stride, dilation, downsample, dimension=D)
        self.se = SELayer(planes * self.expansion, reduction, D)

    def _residual(self, x: Any) -> Any:
        return self.se(super()._residual(x))
