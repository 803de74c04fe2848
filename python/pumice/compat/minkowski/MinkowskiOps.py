"""The name under which MinkowskiEngine keeps what joins, stacks and converts tensors."""

from .convolution import MinkowskiModuleBase
from .coordinates import CoordinateManager, CoordinateMapKey
from .layers import MinkowskiLinear
from .structure import (
    MinkowskiStackCat,
    MinkowskiStackMean,
    MinkowskiStackSum,
    MinkowskiStackVar,
    MinkowskiToDenseTensor,
    MinkowskiToFeature,
    MinkowskiToSparseTensor,
    _sum,
    cat,
    dense_coordinates,
    mean,
    to_sparse,
    to_sparse_all,
    var,
)
from .tensor import SparseTensor, TensorField

__all__ = [*(name for name in dir() if name[0] != "_"), "_sum"]
