"""The name under which MinkowskiEngine keeps coordinate managers, and the settings of its memory."""

from __future__ import annotations

import warnings

from .coordinates import CoordinateManager, CoordinateMapKey, CoordsManager
from .enums import CoordinateMapType, GPUMemoryAllocatorType, MinkowskiAlgorithm, RegionType, check_member


def set_gpu_allocator(backend: GPUMemoryAllocatorType) -> None:
    """Has no effect: memory is PyTorch's."""
    check_member("backend", backend, GPUMemoryAllocatorType)


def set_memory_manager_backend(backend: GPUMemoryAllocatorType) -> None:
    """The old name of `set_gpu_allocator`."""
    warnings.warn(
        "set_memory_manager_backend is the old name of set_gpu_allocator, and neither has an effect: memory is "
        "PyTorch's", DeprecationWarning, stacklevel=2,
    )
    set_gpu_allocator(backend)


def set_coordinate_map_type(coordinate_map_type: CoordinateMapType) -> None:
    """Has no effect: sites are where their coordinates are."""
    check_member("coordinate_map_type", coordinate_map_type, CoordinateMapType)


__all__ = [
    "CoordinateManager", "CoordinateMapKey", "CoordinateMapType", "CoordsManager", "GPUMemoryAllocatorType",
    "MinkowskiAlgorithm", "RegionType", "set_coordinate_map_type", "set_gpu_allocator",
    "set_memory_manager_backend",
]
