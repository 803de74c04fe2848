"""Provides well-known networks. Modules have the names of the C++ networks; those of SPVCNN have spvnas' names."""

from .. import _needs_torch  # noqa: F401  (first, since it says what is missing)
from .blocks import ResidualBlock, convolution_block
from .encoders import CenterPointEncoder, SecondEncoder
from .minkunet import WIDTHS, MinkUNet42
from .point_voxel import PointTensor
from .pretrained import Pretrained, pretrained
from .spvcnn import SPVCNN

__all__ = [
    "SPVCNN",
    "WIDTHS",
    "CenterPointEncoder",
    "MinkUNet42",
    "PointTensor",
    "Pretrained",
    "ResidualBlock",
    "SecondEncoder",
    "convolution_block",
    "pretrained",
]
