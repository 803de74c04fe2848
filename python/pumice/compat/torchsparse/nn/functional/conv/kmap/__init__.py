"""Kernel maps as tensors, and the coordinates that they lead to."""

from . import build_kmap, downsample, func, upsample
from .build_kmap import build_kernel_map, transpose_kernel_map
from .downsample import spdownsample
from .upsample import spupsample_generative

__all__ = ["build_kernel_map", "spdownsample", "spupsample_generative", "transpose_kernel_map"]
