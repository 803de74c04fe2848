"""Converts checkpoints between Pumice and other libraries of sparse convolution."""

from .. import _needs_torch  # noqa: F401  (first, since it says what is missing)
from .checkpoint import read_checkpoint, read_safetensors, write_checkpoint, write_safetensors
from .kernels import Choices
from .layouts import LAYOUTS, Layout, from_common, to_common
from .state import Converted, Kernel, convert_state

__all__ = [
    "LAYOUTS",
    "Choices",
    "Converted",
    "Kernel",
    "Layout",
    "convert_state",
    "from_common",
    "read_checkpoint",
    "read_safetensors",
    "to_common",
    "write_checkpoint",
    "write_safetensors",
]
