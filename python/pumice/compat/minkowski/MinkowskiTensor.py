"""The name under which MinkowskiEngine keeps what sparse tensors and fields share."""

from .base import Tensor
from .coordinates import CoordinateMapKey
from .enums import SparseTensorOperationMode, SparseTensorQuantizationMode
from .operation_mode import (
    clear_global_coordinate_manager,
    global_coordinate_manager,
    set_global_coordinate_manager,
    set_sparse_tensor_operation_mode,
    sparse_tensor_operation_mode,
)

__all__ = [name for name in dir() if name[0] != "_"]
