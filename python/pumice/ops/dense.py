"""Between rows and dense grids, and features at points between cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _C
from ..coords import Coordinates
from . import graph, modes

_ops = torch.ops.pumice


def to_dense(
    features: Tensor,
    coords: Coordinates,
    *,
    shape: Sequence[int] | None = None,
    low: Sequence[int] | None = None,
    crop: bool = False,
) -> Tensor:
    """[rows, C] to [batch_size, C, shape…], 0 where no site is. `low`: the first cell; `crop`: leave
    out rows outside the grid instead of refusing them."""
    box = (
        None if low is None else [int(value) for value in low],
        None if shape is None else [int(value) for value in shape],
    )
    if modes.traced(features):
        low, shape = box
        if shape is None and low is None:
            known = coords.spatial_shape
            shape = None if known is None else list(known)
        items, dimension = coords.batch_size, coords.dimension
        return _ops.to_dense(
            features, coords.token, coords.rows, items, dimension, low, shape, crop
        )
    return _ToDense.apply(features, coords.sites, box, crop)


def from_dense(dense: Tensor, mask: Tensor | None = None) -> tuple[Coordinates, Tensor]:
    """[B, C, shape…] to the sites where any channel is not 0 (or where `mask` [B, shape…] says), in
    the order of the array, and their features, differentiable."""
    if mask is None:
        mask = (dense.detach() != 0).any(1)
    mask = mask.to(torch.uint8).contiguous()
    if modes.traced(dense):
        coords = graph.from_mask(mask)
    else:
        sites, _ = _C.from_dense(dense.detach().contiguous(), mask, [1] * (dense.dim() - 2))
        coords = Coordinates._of(sites)
    cells = coords.indices.long()
    return coords, dense[(cells[:, 0], slice(None), *cells[:, 1:].unbind(1))]


def interpolate(
    features: Tensor,
    coords: Coordinates,
    points: Tensor,
    *,
    nearest: bool = False,
    renormalize: bool = False,
) -> Tensor:
    """Features [rows, C] at points [P, 1 + D] (batch index, then position in cells, whose centres
    are at whole numbers): [P, C]. Absent cells count as 0, or are left out (`renormalize`)."""
    if modes.traced(features):
        rows, weights = _ops.interpolation_map(
            coords.token, points, coords.dimension, nearest, renormalize
        )
    else:
        rows, weights = _C.interpolation_map(
            coords.sites, points.contiguous(), nearest, renormalize
        )
    if features.shape[0] == 0 and not torch.compiler.is_compiling():
        return features.new_zeros((points.shape[0], features.shape[1]))
    corners = features[rows.clamp_min(0).long()]  # [P, corners, C]; absent ones weigh 0
    return (corners * weights.to(features.dtype)[:, :, None]).sum(1)


class _ToDense(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, sites: _C.Sites, box: Any, crop: bool) -> Tensor:
        ctx.call = (sites, box, crop)
        return _C.to_dense(features.contiguous(), sites, *box, crop)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return _ToDenseGradient.apply(grad, *ctx.call), None, None, None


class _ToDenseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, sites: _C.Sites, box: Any, crop: bool) -> Tensor:
        ctx.call = (sites, box, crop)
        return _C.to_dense_gradient(grad.contiguous(), sites, *box, crop)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return _ToDense.apply(grad, *ctx.call), None, None, None
