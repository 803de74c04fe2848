"""Hashes of coordinates, and where they are among others."""

from . import hash, query
from .hash import sphash
from .query import convert_transposed_out_in_map, sphashquery

__all__ = ["convert_transposed_out_in_map", "sphash", "sphashquery"]
