"""Blocks of the networks."""

from . import blocks
from .blocks import SparseConvBlock, SparseConvTransposeBlock, SparseResBlock

__all__ = ["SparseConvBlock", "SparseConvTransposeBlock", "SparseResBlock"]
