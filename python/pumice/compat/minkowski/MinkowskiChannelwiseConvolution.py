"""The name under which MinkowskiEngine keeps its channelwise convolution."""

from .convolution import MinkowskiChannelwiseConvolution, MinkowskiModuleBase
from .coordinates import CoordinateMapKey
from .enums import RegionType
from .kernels import KernelGenerator
from .tensor import SparseTensor

__all__ = [
    "CoordinateMapKey", "KernelGenerator", "MinkowskiChannelwiseConvolution", "MinkowskiModuleBase",
    "RegionType", "SparseTensor",
]
