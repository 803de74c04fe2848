"""Sparse to dense."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from .... import ops
from ....coords import Coordinates


def to_dense(feats: Tensor, coords: Tensor, spatial_range: Sequence[int]) -> Tensor:
    """[batch, X, Y, Z, C] of feats [N, C] at coords [N, 4], (batch, x, y, z); `spatial_range` are the first
    four numbers. Differentiable. Raises UserError for a site outside of it, or there twice; on a
    device the next call that waits for it raises."""
    items, *shape = (int(extent) for extent in spatial_range)
    sites = Coordinates(coords.int(), spatial_shape=shape, batch_size=items)
    return ops.to_dense(feats, sites).movedim(1, -1).contiguous()
