"""The name under which MinkowskiEngine keeps kernels, and what describes them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from .coordinates import CoordinateManager, CoordinateMapKey
from .enums import RegionType
from .kernels import KernelGenerator
from .MinkowskiCommon import convert_to_int_list
from .regions import convert_region_type, get_kernel_volume

_Region = namedtuple(
    "_Region", ("kernel_size", "kernel_stride", "kernel_dilation", "region_type", "offset", "D")
)


class KernelRegion(_Region):
    """Size, stride and dilation [D], region type and own offsets of a kernel."""

    __slots__ = ()

    def __new__(
        cls, kernel_size: Any, kernel_stride: Any, kernel_dilation: Any, region_type: RegionType,
        offset: Any, dimension: int,
    ) -> KernelRegion:
        sizes = (convert_to_int_list(v, dimension) for v in (kernel_size, kernel_stride, kernel_dilation))
        return super().__new__(cls, *sizes, region_type, offset, dimension)


def save_ctx(
    ctx: Any, kernel_generator: KernelGenerator, in_coords_key: CoordinateMapKey,
    out_coords_key: CoordinateMapKey, coordinate_manager: CoordinateManager,
) -> Any:
    """`ctx` with all of these, for a function of your own."""
    ctx.kernel_generator = kernel_generator
    ctx.in_coordinate_map_key = in_coords_key
    ctx.out_coordinate_map_key = out_coords_key
    ctx.coordinate_manager = coordinate_manager
    return ctx


__all__ = [
    "CoordinateManager", "CoordinateMapKey", "KernelGenerator", "KernelRegion", "RegionType",
    "convert_region_type", "convert_to_int_list", "get_kernel_volume", "save_ctx",
]
