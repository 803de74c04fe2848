"""Defines MinkUNet42, a network for semantic segmentation, and the U-net that it shares with SPVCNN."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .. import _C, nn
from .._checks import shown, whole_number
from ..tensor import SparseTensor
from .blocks import NamedBlock, Network, ResidualBlock, convolution_block, submanifold

# Channels of the stem, four stages that go down, and four that go up.
WIDTHS: dict[str, tuple[int, ...]] = {
    "spvnas": (32, 32, 64, 128, 256, 256, 128, 96, 96),
    "driving": (64, 64, 64, 128, 256, 256, 128, 64, 64),
}
_LEVELS = 4


class UNet(Network):
    """The part that MinkUNet42 and SPVCNN share: a stem and four stages that go down and up again.

    A stage is conv 2³/2 and two residual blocks; an up is the inverse of that convolution, the
    concatenation with the encoder's features on the same sites, and two residual blocks.
    """

    in_channels: int
    classes: int

    def __init__(self, in_channels: int, widths: Sequence[int]) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.in_channels = whole_number("in_channels", in_channels, 1)
        width = self.widths = tuple(widths)
        self.stem = nn.Sequential(
            *convolution_block(submanifold(in_channels, width[0])),
            *convolution_block(submanifold(width[0], width[0])),
        )
        for level in range(1, _LEVELS + 1):
            channels, out = width[level - 1], width[level]
            halving = nn.Conv3d(channels, channels, 2, stride=2, bias=False, outputs="cell")
            stage = nn.Sequential(
                NamedBlock(halving), ResidualBlock(channels, out), ResidualBlock(out, out)
            )
            self.add_module(f"stage{level}", stage)
        for up in range(1, _LEVELS + 1):
            channels, out = width[_LEVELS + up - 1], width[_LEVELS + up]
            skip = width[_LEVELS - up]
            doubling = nn.InverseConv3d(channels, out, 2, stride=2, bias=False)
            blocks = nn.Sequential(ResidualBlock(out + skip, out), ResidualBlock(out, out))
            self.add_module(f"up{up}", torch.nn.ModuleList([NamedBlock(doubling), blocks]))

    def _sizes(self) -> dict[str, str]:
        """The entries of a card that say how wide the network is."""
        return {
            "in_channels": str(self.in_channels),
            "outputs": str(self.classes),
            "widths": ",".join(map(str, self.widths)),
        }

    def down(self, x: SparseTensor) -> list[SparseTensor]:
        """What goes into each stage, and what comes out of the last."""
        levels = [x]
        for level in range(1, _LEVELS + 1):
            levels.append(self.get_submodule(f"stage{level}")(levels[-1]))
        return levels

    def up(self, number: int, x: SparseTensor, skip: SparseTensor) -> SparseTensor:
        """Goes up, number 1 to 4, onto the sites of `skip`: those that the same step on the way down came from."""
        doubling, blocks = self.get_submodule(f"up{number}")
        return blocks(doubling(x, skip), second=skip)


class MinkUNet42(UNet):
    """A U-net of 42 convolutions with kernels above 1, for semantic segmentation. A `spatial_shape` of the input has
    to be a multiple of 16 on every axis, or absent. `pumice run minkunet42 --weights` takes what
    `pumice.save_weights` writes of it.

    Args:
        in_channels: channels of the features that go in.
        classes: channels of the scores.
        widths: "spvnas", "driving", or nine numbers: of the stem, four stages down and four up.
        width_factor: multiplies them; the results are rounded to the nearest number, at least 1.
    Returns:
        Of a call with a sparse tensor [N, in_channels], scores [N, classes] on the same sites.
    Raises:
        UserError: widths and factors that leave no channel; other channels or axes, with the layer's path in the
        network.
    Waits:
        For a GPU, for how many sites each level has.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> models.MinkUNet42(4, 19, width_factor=0.25).eval()(x).shape
        torch.Size([2, 19])
    """

    def __init__(
        self,
        in_channels: int = 4,
        classes: int = 19,
        widths: str | Sequence[int] = "spvnas",
        width_factor: float = 1.0,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__(in_channels, _scaled(widths, width_factor))
        self.classes = whole_number("classes", classes, 1)
        self.classifier = nn.Sequential(nn.Linear(self.widths[-1], classes))

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def made_with(self, in_channels: int | None = None, outputs: int | None = None) -> str:
        ends = f"{in_channels or self.in_channels}, {outputs or self.classes}"
        is_default = self.widths == WIDTHS["spvnas"]
        return f"MinkUNet42({ends})" if is_default else f"MinkUNet42({ends}, widths={list(self.widths)})"

    def card(self) -> dict[str, str]:
        return {"network": "minkunet42", **self._sizes()}

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, in_channels] to scores [N, classes] on the same sites."""
        skips = self.down(self.stem(x))
        x = skips.pop()
        for number in range(1, _LEVELS + 1):
            x = self.up(number, x, skips.pop())
        return self.classifier(x)


def _scaled(widths: str | Sequence[int], factor: float) -> tuple[int, ...]:
    if isinstance(widths, str):
        if widths not in WIDTHS:
            raise _C.UserError(
                f"widths = {widths!r}: there are {', '.join(WIDTHS)}; or give nine numbers"
            )
        widths = WIDTHS[widths]
    if isinstance(widths, (int, float)):
        raise _C.UserError(
            f"widths = {widths}: give nine numbers or a name; width_factor={widths} scales them"
        )
    if len(widths) != 2 * _LEVELS + 1 or any(width < 1 for width in widths):
        raise _C.UserError(f"widths = {list(widths)}: give nine numbers of at least 1")
    if not (isinstance(factor, numbers.Real) and factor > 0 and math.isfinite(factor)):
        raise _C.UserError(f"width_factor {shown(factor)}: give a number above 0, as 0.5")
    return tuple(max(1, math.floor(factor * width + 0.5)) for width in widths)
