"""Enumerations, keys and maps that MinkowskiEngine's extension gives to Python. Its managers and kernels are
internal; MinkowskiConvolutionFunction and so on stand for these."""

from ..coordinates import CoordinateMapKey
from ..diagnostics import cuda_version, cudart_version, get_gpu_memory_info, is_cuda_available
from ..enums import (
    BroadcastMode,
    ConvolutionMode,
    CoordinateMapType,
    GPUMemoryAllocatorType,
    MinkowskiAlgorithm,
    PoolingMode,
    RegionType,
)
from ..utils.quantization import quantize as quantize_np
from ..utils.quantization import quantize as quantize_th
from ..utils.quantization import quantize_label as quantize_label_np
from ..utils.quantization import quantize_label as quantize_label_th

__all__ = [name for name in dir() if name[0] != "_"]
