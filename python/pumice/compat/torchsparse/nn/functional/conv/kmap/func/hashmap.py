"""Kernel maps around the centre of each output cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ......axis_numbers import make_divisible, make_ntuple
from .....utils.kernel import get_kernel_offsets
from ....hash import sphash
from ....query import sphashquery
from ..downsample import spdownsample
from ..upsample import spupsample_generative

ROWS = 128  # maps have a multiple of that many


def build_kmap_implicit_GEMM_hashmap(  # noqa: N802
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
    downsample_mode: str = "spconv",
    generative: bool = False,
) -> dict[str, Any]:
    """`kmap` with what `build_kernel_map` says; spatial_range: of the outputs."""
    size, steps = make_ntuple(kernel_size, 3), make_ntuple(stride, 3)
    offsets = get_kernel_offsets(size, device=_coords.device)
    if generative:
        outputs = spupsample_generative(_coords, steps, size, padding, spatial_range)
        finer = _coords * _coords.new_tensor((1, *steps))
        return fill(kmap, input_node_num, finer, outputs, (1, 1, 1), offsets)
    if subm:
        return fill(kmap, input_node_num, _coords, _coords, (1, 1, 1), offsets)
    outputs = spdownsample(_coords, steps, size, padding, spatial_range, downsample_mode)
    return fill(kmap, input_node_num, _coords, outputs, steps, offsets)


def build_kmap_Gather_Scatter_hashmap(  # noqa: N802
    kmap: dict[str, Any],
    input_node_num: int,
    _coords: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    spatial_range: Sequence[int] | None = None,
    cta_M: int = ROWS,  # noqa: N803
    subm: bool = False,
    downsample_mode: str = "spconv",
    generative: bool = False,
) -> dict[str, Any]:
    """The same map."""
    return build_kmap_implicit_GEMM_hashmap(
        kmap, input_node_num, _coords, kernel_size, stride, padding, spatial_range, cta_M, subm,
        downsample_mode=downsample_mode, generative=generative,
    )  # fmt: skip


build_kmap_Fetch_on_Demand_hashmap = build_kmap_Gather_Scatter_hashmap  # noqa: N816


def fill(
    kmap: dict[str, Any],
    nodes: int,
    inputs: Tensor,
    outputs: Tensor,
    stride: Sequence[int],
    offsets: Tensor,
) -> dict[str, Any]:
    """The map by in = out · stride + offset."""
    moved = outputs * outputs.new_tensor((1, *stride))
    found = sphashquery(sphash(moved.int(), offsets), sphash(inputs.int()))  # [K, M]
    missing = make_divisible(len(outputs), ROWS) - len(outputs)
    there = found >= 0
    kmap.update(
        out_in_map=torch.nn.functional.pad(found, (0, missing), value=-1).T.int().contiguous(),
        coords=outputs,
        sizes=(nodes, len(outputs)),
        nbmaps=torch.stack([found[there], there.nonzero()[:, 1]], 1),
        nbsizes=there.sum(1),
    )
    return kmap
