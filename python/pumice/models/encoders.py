"""Defines the sparse encoders of CenterPoint and SECOND. Axes are x, y, z; papers list z first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import nn
from ..tensor import SparseTensor
from .blocks import DETECTOR_NORMS, Network, ResidualBlock, convolution_block, submanifold

_PADDED = (1, 1, 1)
_PADDED_FLAT = (1, 1, 0)  # the last halving keeps no cell below or above the grid


def _block(in_channels: int, out_channels: int) -> nn.Sequential:
    return convolution_block(submanifold(in_channels, out_channels), DETECTOR_NORMS)


def _residual(channels: int) -> ResidualBlock:
    return ResidualBlock(channels, channels, DETECTOR_NORMS)


def _halving(in_channels: int, out_channels: int, padding: Sequence[int]) -> nn.Sequential:
    """conv 3³ /2, outputs wherever an input reaches."""
    convolution = nn.Conv3d(in_channels, out_channels, 3, stride=2, padding=padding, bias=False)
    return convolution_block(convolution, DETECTOR_NORMS)


def _flattening(in_channels: int, out_channels: int) -> nn.Sequential:
    """conv (1,1,3) / (1,1,2): only the height shrinks."""
    convolution = nn.Conv3d(in_channels, out_channels, (1, 1, 3), stride=(1, 1, 2), bias=False)
    return convolution_block(convolution, DETECTOR_NORMS)


class _Encoder(Network):
    """Stages one after another, in the order of their names here."""

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    NAME: str  # of `pumice run`

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.in_channels = in_channels

    def made_with(self, in_channels: int | None = None, outputs: int | None = None) -> str:
        return f"{type(self).__name__}({in_channels or self.in_channels})"

    def card(self) -> dict[str, str]:
        return {"network": self.NAME, "in_channels": str(self.in_channels)}

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, in_channels] to what the last stage makes."""
        return nn.in_order(self, x)

    def stages(self, x: SparseTensor) -> dict[str, SparseTensor]:
        """What comes out of every stage, by its name: a decoder may want more than the last."""
        results = {}
        for name, stage in self.named_children():
            results[name] = x = stage(x)
        return results


class CenterPointEncoder(_Encoder):
    """The sparse encoder of CenterPoint on 0.075 m voxels: 21 convolutions, residual. Give the input the grid of its
    range as `spatial_shape` (for 108 m × 108 m × 8 m: [1440, 1440, 41]); the result has 128 channels and 1/8 of it
    in x and y.

    Args:
        in_channels: channels of the features that go in.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [M, 128] on coarser sites.
    Raises:
        UserError: other channels or axes, with the layer's path in the network.
    Waits:
        For a GPU, for how many sites each level has.
    Example:
        >>> coords = torch.tensor([[0, 10, 20, 30]])
        >>> x = pumice.SparseTensor(coords, torch.ones(1, 4), spatial_shape=[64, 64, 41])
        >>> models.CenterPointEncoder(4).eval()(x).spatial_shape
        (8, 8, 2)
    """

    NAME = "centerpoint"

    def __init__(self, in_channels: int = 4) -> None:
        """The arguments are those of the class."""
        super().__init__(in_channels)
        self.conv_input = _block(in_channels, 16)
        self.conv1 = nn.Sequential(_residual(16), _residual(16))
        self.conv2 = nn.Sequential(_halving(16, 32, _PADDED), _residual(32), _residual(32))
        self.conv3 = nn.Sequential(_halving(32, 64, _PADDED), _residual(64), _residual(64))
        self.conv4 = nn.Sequential(
            _halving(64, 128, _PADDED_FLAT), _residual(128), _residual(128)
        )
        self.conv_out = _flattening(128, 128)


class SecondEncoder(_Encoder):
    """The sparse encoder of SECOND, as in OpenPCDet's VoxelBackBone8x: 12 convolutions. Give the input the grid of its
    range as `spatial_shape` (for KITTI's 70.4 m × 80 m × 4 m: [1408, 1600, 41]); the result has 128 channels and
    1/8 of it in x and y.

    Args:
        in_channels: channels of the features that go in.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [M, 128] on coarser sites.
    Raises:
        UserError: other channels or axes, with the layer's path in the network.
    Waits:
        For a GPU, for how many sites each level has.
    Example:
        >>> coords = torch.tensor([[0, 10, 20, 30]])
        >>> x = pumice.SparseTensor(coords, torch.ones(1, 4), spatial_shape=[64, 64, 41])
        >>> models.SecondEncoder(4).eval()(x).spatial_shape
        (8, 8, 2)
    """

    NAME = "second"

    def __init__(self, in_channels: int = 4) -> None:
        """The arguments are those of the class."""
        super().__init__(in_channels)
        self.conv_input = _block(in_channels, 16)
        self.conv1 = nn.Sequential(_block(16, 16))
        self.conv2 = nn.Sequential(_halving(16, 32, _PADDED), _block(32, 32), _block(32, 32))
        self.conv3 = nn.Sequential(_halving(32, 64, _PADDED), _block(64, 64), _block(64, 64))
        self.conv4 = nn.Sequential(_halving(64, 64, _PADDED_FLAT), _block(64, 64), _block(64, 64))
        self.conv_out = _flattening(64, 128)
