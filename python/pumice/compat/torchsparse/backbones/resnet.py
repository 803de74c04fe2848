"""A residual encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..tensor import SparseTensor
from .modules import SparseConvBlock, SparseResBlock


class SparseResNet(torch.nn.ModuleList):
    """Gives the outputs of all stages.

    blocks: of each stage (number of blocks, channels, kernel size, stride).
    """

    def __init__(
        self,
        blocks: Sequence[tuple[int, int, Any, Any]],
        *,
        in_channels: int = 4,
        width_multiplier: float = 1.0,
    ) -> None:
        super().__init__()
        self.blocks = blocks
        self.in_channels = in_channels
        self.width_multiplier = width_multiplier
        for number, width, size, stride in blocks:
            channels = int(width * width_multiplier)
            stage: list[torch.nn.Module] = [SparseConvBlock(in_channels, channels, size, stride)]
            stage += [SparseResBlock(channels, channels, size) for _ in range(number - 1)]
            self.append(torch.nn.Sequential(*stage))
            in_channels = channels

    def forward(self, x: SparseTensor) -> list[SparseTensor]:
        outputs = []
        for stage in self:
            x = stage(x)
            outputs.append(x)
        return outputs


class SparseResNet21D(SparseResNet):
    def __init__(self, **kwargs: Any) -> None:
        stages = [(3, 16, 3, 1), (3, 32, 3, 2), (3, 64, 3, 2), (3, 128, 3, 2)]
        super().__init__([*stages, (1, 128, (1, 3, 1), (1, 2, 1))], **kwargs)
