"""Offsets of kernels, and functions of PyTorch on features."""

from . import apply, kernel
from .apply import fapply
from .kernel import get_kernel_offsets

__all__ = ["fapply", "get_kernel_offsets"]
