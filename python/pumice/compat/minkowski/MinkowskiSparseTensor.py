"""The name under which MinkowskiEngine keeps sparse tensors."""

from __future__ import annotations

from typing import Any

import torch

from .base import Tensor
from .coordinates import CoordinateManager, CoordinateMapKey
from .enums import SparseTensorOperationMode, SparseTensorQuantizationMode
from .operation_mode import (
    clear_global_coordinate_manager,
    global_coordinate_manager,
    set_global_coordinate_manager,
    set_sparse_tensor_operation_mode,
    sparse_tensor_operation_mode,
)
from .tensor import SparseTensor


def _get_coordinate_map_key(
    input: SparseTensor, coordinates: Any = None, tensor_stride: Any = 1, expand_coordinates: bool = False
) -> CoordinateMapKey:
    """What layers hand to a function as the output's key: that of `coordinates` (a tensor, key or matrix), or a
    new one, which the function sets."""
    if coordinates is None or expand_coordinates:
        return CoordinateMapKey(input.D + 1)
    if isinstance(coordinates, torch.Tensor):
        return input._manager.insert_and_map(coordinates, tensor_stride)[0]
    return coordinates.coordinate_map_key if isinstance(coordinates, SparseTensor) else coordinates


__all__ = [
    "CoordinateManager", "CoordinateMapKey", "SparseTensor", "SparseTensorOperationMode",
    "SparseTensorQuantizationMode", "Tensor", "clear_global_coordinate_manager",
    "global_coordinate_manager", "set_global_coordinate_manager", "set_sparse_tensor_operation_mode",
    "sparse_tensor_operation_mode",
]
