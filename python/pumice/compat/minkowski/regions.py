"""Which offsets a kernel has, by its region type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ..foreign import PeerAssertionError
from .enums import RegionType


def get_kernel_volume(
    region_type: RegionType, kernel_size: Sequence[int], region_offset: Any, axis_types: Any, dimension: int
) -> int:
    """How many offsets there are: all of a cube, those on the axes of a cross, or the ones that are given
    [K, D] for RegionType.CUSTOM."""
    given = 0 if region_offset is None else len(region_offset)
    if region_type is RegionType.CUSTOM:
        if given == 0 or len(region_offset[0]) != dimension:
            raise PeerAssertionError(
                f"region_offset = {region_offset}: RegionType.CUSTOM takes at least one row of {dimension} numbers"
            )
        return given
    size = [int(k) for k in kernel_size]
    if region_type not in (RegionType.HYPER_CUBE, RegionType.HYPER_CROSS) or given or axis_types is not None:
        raise PeerAssertionError(
            f"region_type = {region_type!r} with {given} offsets and axis_types = {axis_types}: give HYPER_CUBE or "
            "HYPER_CROSS and neither of these, or CUSTOM with offsets"
        )
    if min(size) < 1:
        raise PeerAssertionError(f"kernel_size = {size}: give at least 1")
    if region_type is RegionType.HYPER_CUBE:
        return math.prod(size)
    if any(k % 2 == 0 for k in size):
        raise PeerAssertionError(f"kernel_size = {size}: a HYPER_CROSS has odd ones")
    return sum(k - 1 for k in size) + 1


def convert_region_type(
    region_type: RegionType, tensor_stride: Any, kernel_size: Any, up_stride: Any, dilation: Any,
    region_offset: Any, axis_types: Any, dimension: int, center: bool = True,
) -> tuple[RegionType, torch.Tensor, int]:
    """(region type, offsets of a CUSTOM one int32 [K, D], else none, how many offsets there are). Strides and
    dilation change neither."""
    volume = get_kernel_volume(region_type, kernel_size, region_offset, axis_types, dimension)
    offsets = [] if region_offset is None else region_offset
    return region_type, torch.as_tensor(offsets, dtype=torch.int32), volume
