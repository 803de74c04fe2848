"""Cropping."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ... import conventions
from ...tensor import SparseTensor


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
