"""TorchSparse's helpers for data."""

from . import collate, quantize, tensor_cache, tune, utils
from .to_dense import to_dense
from .utils import make_divisible, make_ntuple, make_tensor

__all__ = ["make_divisible", "make_ntuple", "make_tensor", "to_dense"]
