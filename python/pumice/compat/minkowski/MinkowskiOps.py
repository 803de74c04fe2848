"""The name under which MinkowskiEngine keeps these."""

from .layers import MinkowskiLinear
from .structure import (
    MinkowskiStackCat,
    MinkowskiStackSum,
    MinkowskiToDenseTensor,
    MinkowskiToFeature,
    MinkowskiToSparseTensor,
    cat,
    dense_coordinates,
    to_sparse,
    to_sparse_all,
)

__all__ = [name for name in dir() if name[0] != "_"]
