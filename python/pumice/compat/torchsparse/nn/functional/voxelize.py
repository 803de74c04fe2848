"""Points to voxels."""

from __future__ import annotations

from torch import Tensor

from ..... import ops


def spvoxelize(feats: Tensor, coords: Tensor, counts: Tensor) -> Tensor:
    """[N, C] to the means [M, C] of the rows that `coords` [N] sends to each; -1: to none."""
    sizes = ops.take_rows(counts.to(feats.dtype)[:, None], coords).clamp_min(1)
    return ops.reduce_rows(feats / sizes, coords, len(counts), "sum")
