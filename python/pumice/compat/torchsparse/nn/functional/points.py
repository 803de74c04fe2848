"""Between points and voxels, as SPVCNN does it: hashes, averages and interpolation."""

from __future__ import annotations

import torch
from torch import Tensor

from ..... import _C, ops
from ... import conventions


def sphash(coords: Tensor, offsets: Tensor | None = None) -> Tensor:
    """int64 [N] of coords int [N, 4]; or [K, N] of the coords moved by each of offsets [K, 3]. Equal rows
    have equal hashes, and others almost never: 64 bits, mixed."""
    rows = coords.to(torch.int64)
    if offsets is not None:
        moved = rows[None].repeat(len(offsets), 1, 1)
        moved[:, :, conventions.axes()] += offsets.to(rows)[:, None]
        rows = moved
    result = torch.full(rows.shape[:-1], 1469598103934665603, dtype=torch.int64, device=rows.device)
    for column in range(rows.shape[-1]):
        # Multiplication wraps around; the shift brings high bits down.
        result = (result ^ rows[..., column]) * 0x2545F4914F6CDD1D
        result = result ^ ((result >> 29) & 0x7FFFFFFFF)
    return result


def sphashquery(queries: Tensor, references: Tensor) -> Tensor:
    """int64, shaped as `queries`: where in `references` each is; -1: nowhere."""
    if len(references) == 0:
        return torch.full_like(queries, -1, dtype=torch.int64)
    ordered, order = torch.sort(references, stable=True)
    place = torch.searchsorted(ordered, queries).clamp_max(len(ordered) - 1)
    return torch.where(ordered[place] == queries, order[place], -1)


def spcount(coords: Tensor, num: int | Tensor) -> Tensor:
    """int32 [num]: how often each row occurs in `coords` [N]; negative ones count for nothing."""
    rows = coords[coords >= 0].long()
    if len(rows) > 0 and int(rows.max()) >= int(num):
        raise _C.UserError(f"spcount: coords hold row {int(rows.max())}: rows are 0 to {int(num) - 1}")
    return torch.bincount(rows, minlength=int(num)).int()


def spvoxelize(feats: Tensor, coords: Tensor, counts: Tensor) -> Tensor:
    """[N, C] to the means [M, C] of the rows that `coords` [N] sends to each; -1: to none."""
    sizes = ops.take_rows(counts.to(feats.dtype)[:, None], coords).clamp_min(1)
    return ops.reduce_rows(feats / sizes, coords, len(counts), "sum")


def spdevoxelize(feats: Tensor, coords: Tensor, weights: Tensor) -> Tensor:
    """[M, C] to the weighted sums [N, C] of rows `coords` [N, 8]; -1 weighs nothing."""
    shares = weights.detach() if weights.dtype == torch.float64 else weights.detach().float()
    return ops.interpolate(feats, ops.InterpolationMap(coords.clamp(-2, 2**31 - 1).int(), shares, len(feats)))


def calc_ti_weights(coords: Tensor, idx_query: Tensor, scale: float = 1) -> Tensor:
    """[8, N]: trilinear weights of points `coords` [N, 4] to the corners that idx_query [8, N] found, last
    axis fastest; they sum to 1 over the corners that exist."""
    with torch.no_grad():
        points = coords[:, conventions.axes()].float()
        above = points / scale - torch.floor(points / scale)
        near_far = torch.stack([1 - above, above])  # [2, N, 3]
        x, y, z = near_far.unbind(2)
        weights = (x[:, None, None] * y[None, :, None] * z[None, None]).reshape(8, -1)
        weights = weights.masked_fill(idx_query < 0, 0)
        return weights / (weights.sum(0) + 1e-8)
