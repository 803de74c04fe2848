"""MinkowskiEngine's helpers for data and initialisation."""

from . import coords, gradcheck
from .collation import SparseCollation, batch_sparse_collate, batched_coordinates, sparse_collate
from .init import kaiming_normal_
from .quantization import fnv_hash_vec, ravel_hash_vec, sparse_quantize, unique_coordinate_map
from .summary import summary

__all__ = [name for name in dir() if name[0] != "_"]
