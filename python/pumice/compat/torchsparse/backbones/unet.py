"""A residual U-net."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..nn.modules import BatchNorm, Conv3d, ReLU
from ..operators import cat
from ..tensor import SparseTensor
from .modules import SparseConvBlock, SparseConvTransposeBlock, SparseResBlock


class SparseResUNet(torch.nn.Module):
    """Gives the outputs of stem, encoders and decoders, in this order."""

    def __init__(
        self,
        stem_channels: int,
        encoder_channels: Sequence[int],
        decoder_channels: Sequence[int],
        *,
        in_channels: int = 4,
        width_multiplier: float = 1.0,
    ) -> None:
        super().__init__()
        self.stem_channels = stem_channels
        self.encoder_channels = encoder_channels
        self.decoder_channels = decoder_channels
        self.in_channels = in_channels
        self.width_multiplier = width_multiplier
        down = [int(width_multiplier * width) for width in (stem_channels, *encoder_channels)]
        up = [down[-1], *(int(width_multiplier * width) for width in decoder_channels)]
        self.stem = torch.nn.Sequential(
            Conv3d(in_channels, down[0], 3), BatchNorm(down[0]), ReLU(True),
            Conv3d(down[0], down[0], 3), BatchNorm(down[0]), ReLU(True),
        )  # fmt: skip
        self.encoders = torch.nn.ModuleList(
            torch.nn.Sequential(
                SparseConvBlock(before, before, 2, stride=2),
                SparseResBlock(before, after, 3),
                SparseResBlock(after, after, 3),
            )
            for before, after in zip(down, down[1:])
        )
        self.decoders = torch.nn.ModuleList(
            torch.nn.ModuleDict(
                {
                    "upsample": SparseConvTransposeBlock(before, after, 2, stride=2),
                    "fuse": torch.nn.Sequential(
                        SparseResBlock(after + beside, after, 3), SparseResBlock(after, after, 3)
                    ),
                }
            )
            for before, after, beside in zip(up, up[1:], down[-2::-1])
        )

    def forward(self, x: SparseTensor) -> list[SparseTensor]:
        outputs = [self.stem(x)]
        for encoder in self.encoders:
            outputs.append(encoder(outputs[-1]))
        beside = outputs[-2::-1]
        for decoder, fine in zip(self.decoders, beside):
            assert isinstance(decoder, torch.nn.ModuleDict)
            outputs.append(decoder["fuse"](cat([decoder["upsample"](outputs[-1]), fine])))
        return outputs


class SparseResUNet42(SparseResUNet):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(32, [32, 64, 128, 256], [256, 128, 96, 96], **kwargs)
