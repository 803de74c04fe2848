"""Networks of the field, with the names of modules that the C++ networks have."""

from .blocks import ResidualBlock, convolution_block
from .encoders import CenterPointEncoder, SecondEncoder
from .minkunet import WIDTHS, MinkUNet42

__all__ = [
    "WIDTHS",
    "CenterPointEncoder",
    "MinkUNet42",
    "ResidualBlock",
    "SecondEncoder",
    "convolution_block",
]
