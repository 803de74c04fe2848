"""Kernel maps from the first cell of each output's window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ......axis_numbers import make_ntuple
from .....utils.kernel import get_kernel_offsets
from ..downsample import spdownsample
from .hashmap import ROWS, fill


def build_kmap_implicit_GEMM_hashmap_on_the_fly(  # noqa: N802
    kmap: dict[str, Any],
    input_node_num: int,
    _coords: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    spatial_range: Sequence[int] | None = None,
    cta_M: int = ROWS,  # noqa: N803
    subm: bool = False,
    ifsort: bool = False,
    split_mask_num: int = 1,
) -> dict[str, Any]:
    """`kmap` with what `build_kernel_map` says; spatial_range: of the outputs."""
    size, steps, pads = (make_ntuple(value, 3) for value in (kernel_size, stride, padding))
    offsets = get_kernel_offsets(size, device=_coords.device)
    first = offsets - offsets.amin(0)
    if subm:  # an odd kernel is around its output, an even one begins there
        offsets = first if len(offsets) % 2 == 0 else offsets
        return fill(kmap, input_node_num, _coords, _coords, (1, 1, 1), offsets)
    outputs = spdownsample(_coords, steps, size, pads, spatial_range, on_the_fly=True)
    return fill(kmap, input_node_num, _coords, outputs, steps, first - first.new_tensor(pads))


def build_kmap_Gather_Scatter_hashmap_on_the_fly(  # noqa: N802
    kmap: dict[str, Any],
    input_node_num: int,
    _coords: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    spatial_range: Sequence[int] | None = None,
    cta_M: int = ROWS,  # noqa: N803
    subm: bool = False,
) -> dict[str, Any]:
    """The same map."""
    return build_kmap_implicit_GEMM_hashmap_on_the_fly(
        kmap, input_node_num, _coords, kernel_size, stride, padding, spatial_range, cta_M, subm
    )


build_kmap_Fetch_on_Demand_hashmap_on_the_fly = build_kmap_Gather_Scatter_hashmap_on_the_fly  # noqa: N816
