"""The name under which MinkowskiEngine keeps the base of networks."""

from .structure import MinkowskiNetwork
from .tensor import SparseTensor

__all__ = ["MinkowskiNetwork", "SparseTensor"]
