"""MinkowskiEngine's helpers for data and initialisation."""

from .collation import SparseCollation, batch_sparse_collate, batched_coordinates, sparse_collate
from .init import kaiming_normal_
from .quantization import sparse_quantize, unique_coordinate_map

__all__ = [name for name in dir() if name[0] != "_"]
