"""Coordinate managers for tensors of new coordinates: one each, or one for all."""

from __future__ import annotations

from torch import Tensor as Rows

from .coordinates import CoordinateManager, check_manager
from .enums import CoordinateMapType, SparseTensorOperationMode, check_member

_operation_mode = SparseTensorOperationMode.SEPARATE_COORDINATE_MANAGER
_global_manager: CoordinateManager | None = None


def set_sparse_tensor_operation_mode(operation_mode: SparseTensorOperationMode) -> None:
    """Whether tensors of new coordinates share one manager, until it is cleared."""
    global _operation_mode
    check_member("operation_mode", operation_mode, SparseTensorOperationMode)
    _operation_mode = operation_mode


def sparse_tensor_operation_mode() -> SparseTensorOperationMode:
    return _operation_mode


def global_coordinate_manager() -> CoordinateManager | None:
    return _global_manager


def set_global_coordinate_manager(coordinate_manager: CoordinateManager | None) -> None:
    global _global_manager
    if coordinate_manager is not None:
        check_manager(coordinate_manager)
    _global_manager = coordinate_manager


def clear_global_coordinate_manager() -> None:
    set_global_coordinate_manager(None)


def manager_for(coordinates: Rows) -> CoordinateManager:
    """A new one, or the one that all share, by the operation mode."""
    kind = CoordinateMapType.CUDA if coordinates.is_cuda else CoordinateMapType.CPU
    if _operation_mode is SparseTensorOperationMode.SEPARATE_COORDINATE_MANAGER:
        return CoordinateManager(coordinates.shape[1] - 1, coordinate_map_type=kind)
    if _global_manager is None:
        set_global_coordinate_manager(
            CoordinateManager(coordinates.shape[1] - 1, coordinate_map_type=kind)
        )
    assert _global_manager is not None
    return _global_manager
