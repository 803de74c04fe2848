"""Voxels to points."""

from __future__ import annotations

import torch
from torch import Tensor

from ..... import _C, ops
from ... import conventions


def spdevoxelize(feats: Tensor, coords: Tensor, weights: Tensor) -> Tensor:
    """[M, C] to the weighted sums [N, C] of rows `coords` [N, 8]; -1 weighs nothing."""
    shares = weights.detach() if weights.dtype == torch.float64 else weights.detach().float()
    return ops.interpolate(feats, ops.InterpolationMap(coords.clamp(-2, 2**31 - 1).int(), shares, len(feats)))


def calc_ti_weights(coords: Tensor, idx_query: Tensor, scale: float = 1) -> Tensor:
    """Trilinear weights of points to the corners that `idx_query` found, last axis fastest; they sum to 1
    over the corners that exist.

    Args:
        coords: [N, 3] or more: x, y, z come first, in 2.1 too.
        idx_query: [N, 8]; before 2.1 [8, N], and so are the weights.
    """
    shape = (len(coords), 8) if conventions.batch_first else (8, len(coords))
    if tuple(idx_query.shape) != shape:
        raise _C.UserError(
            f"calc_ti_weights: idx_query has shape {tuple(idx_query.shape)}: give {shape}, or choose the "
            "release by use_version: '2.1' has a row for each point, '2.0' a column"
        )
    with torch.no_grad():
        points = coords[:, :3].float()
        above = points / scale - torch.floor(points / scale)
        near_far = torch.stack([1 - above, above])  # [2, N, 3]
        x, y, z = near_far.unbind(2)
        weights = (x[:, None, None] * y[None, :, None] * z[None, None]).reshape(8, -1)
        missing = idx_query.T if conventions.batch_first else idx_query
        weights = weights.masked_fill(missing < 0, 0)
        weights = weights / (weights.sum(0) + 1e-8)
        return weights.T.contiguous() if conventions.batch_first else weights
