"""Points to voxels."""

from __future__ import annotations

import torch
from torch import Tensor

from ..... import ops
from ....foreign import PeerAssertionError, check_rows


def spvoxelize(feats: Tensor, coords: Tensor, counts: Tensor) -> Tensor:
    """[N, C] to the means [M, C] of the rows that `coords` [N] sends to each; -1: to none."""
    for name, rows in (("feats", feats), ("coords", coords), ("counts", counts)):
        check_rows(name, rows)
    if not torch.compiler.is_compiling() and coords.shape != feats.shape[:1]:
        raise PeerAssertionError(
            f"coords have shape {tuple(coords.shape)}: give the number of a voxel for each of {len(feats)} rows of feats"
        )
    sizes = ops.take_rows(counts.to(feats.dtype)[:, None], coords).clamp_min(1)
    return ops.reduce_rows(feats / sizes, coords, len(counts), "sum")
