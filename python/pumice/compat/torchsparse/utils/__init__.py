"""TorchSparse's helpers for data."""

from . import collate, quantize, utils
from .utils import make_ntuple

__all__ = ["make_ntuple"]
