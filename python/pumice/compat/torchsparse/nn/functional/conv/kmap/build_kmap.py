"""Kernel maps as tensors, for code with convolutions of its own. Layers do without: Pumice has its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ......foreign import PeerAssertionError
from .....axis_numbers import make_divisible, make_ntuple
from ..conv_config import Dataflow, checked_dataflow
from ..conv_mode import checked_downsample_mode
from ..hash.query import convert_transposed_out_in_map
from .func import hashmap, hashmap_on_the_fly

_WITHOUT = (
    "reorder_out_in_map", "reduced_sorted_mask", "reorder_loc", "sorted_mask", "input_mask",
    "output_mask", "nbaddrs", "qnbaddrs", "qmapsize",
)  # fmt: skip


def build_kernel_map(
    _coords: Tensor,
    input_node_num: int,
    kernel_size: Any = 2,
    stride: Any = 2,
    padding: Any = 0,
    hashmap_keys: Tensor | None = None,
    hashmap_vals: Tensor | None = None,
    spatial_range: Sequence[int] | None = None,
    mode: str = "hashmap",
    dataflow: Any = Dataflow.ImplicitGEMM,
    downsample_mode: str = "spconv",
    training: bool = False,
    ifsort: bool = False,
    generative: bool = False,
    split_mask_num: int = 1,
    split_mask_num_bwd: int = 1,
) -> dict[str, Any]:
    """Of coords (batch, x, y, z), as 2.1 has them.

    Returns:
        "coords" of the outputs; "sizes", (inputs, outputs); "spatial_range"; "out_in_map" int32 [M, K], the
        input row of each output row and offset, -1: none, M a multiple of 128; "nbmaps" [pairs, 2] of
        (input row, output row) by offset, and "nbsizes" [K]. Sorted copies and bit masks are None.
    Raises:
        ValueError: for another mode or dataflow, and a generative map "on the fly".
    """
    size, steps, pads = (make_ntuple(value, 3) for value in (kernel_size, stride, padding))
    extents = None
    if spatial_range is not None:
        axes = zip(spatial_range[1:], size, steps, pads)
        extents = (spatial_range[0], *((n + 2 * p - k) // s + 1 for n, k, s, p in axes))
    kmap = {
        **dict.fromkeys(_WITHOUT),
        "hashmap_keys": hashmap_keys,
        "hashmap_vals": hashmap_vals,
        "spatial_range": extents,
    }
    call = (kmap, input_node_num, _coords, size, steps, pads, extents)
    subm = max(steps) == 1
    checked_downsample_mode(downsample_mode)
    if checked_dataflow(dataflow) is Dataflow.CodedCSR:
        raise PeerAssertionError("dataflow = CodedCSR is not there: give another")
    if mode == "hashmap":
        return hashmap.build_kmap_implicit_GEMM_hashmap(
            *call, subm=subm, downsample_mode=downsample_mode, generative=generative
        )
    if mode == "hashmap_on_the_fly" and not generative:
        return hashmap_on_the_fly.build_kmap_implicit_GEMM_hashmap_on_the_fly(*call, subm=subm)
    raise ValueError(
        f"mode = {mode!r}: there are hashmap and, where not generative, hashmap_on_the_fly"
    )


def transpose_kernel_map(
    kmap: dict[str, Any],
    ifsort: bool = False,
    training: bool = False,
    split_mask_num: int = 1,
    split_mask_num_bwd: int = 1,
) -> dict[str, Any]:
    """The map with "out_in_map_t", as it is from the other side."""
    rows = make_divisible(kmap["sizes"][0], hashmap.ROWS)
    kmap["out_in_map_t"] = convert_transposed_out_in_map(kmap["out_in_map"], rows)
    return kmap


__all__ = ["build_kernel_map", "transpose_kernel_map"]
