"""Pooling over batch items, and cropping."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..... import ops
from ... import conventions
from ...tensor import SparseTensor


def global_avg_pool(input: SparseTensor) -> Tensor:
    """[batch size, C]"""
    return ops.global_pool(input.feats, input.sites, "average")


def global_max_pool(input: SparseTensor) -> Tensor:
    """[batch size, C]"""
    return ops.global_pool(input.feats, input.sites, "max")


def spcrop(
    input: SparseTensor,
    coords_min: Sequence[int] | None = None,
    coords_max: Sequence[int] | None = None,
) -> SparseTensor:
    """The rows from coords_min up to, but without, coords_max."""
    cells = input.coords[:, conventions.axes()]
    inside = torch.ones(len(cells), dtype=torch.bool, device=cells.device)
    if coords_min is not None:
        inside &= (cells >= torch.as_tensor(coords_min, device=cells.device)).all(1)
    if coords_max is not None:
        inside &= (cells < torch.as_tensor(coords_max, device=cells.device)).all(1)
    return SparseTensor(
        input.feats[inside], input.coords[inside], input.stride, input.spatial_range
    )
