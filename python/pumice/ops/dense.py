"""Between rows and dense grids, and features at points between cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._checks import check_floating
from ..coords import Coordinates


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
    for name, numbers in (("shape", shape), ("low", low)):
        if numbers is not None and len(numbers) != coords.dimension:
            raise _C.UserError(
                f"{name} = {tuple(numbers)}: give one number for each of {coords.dimension} axes"
            )
    box = (
        None if low is None else [int(value) for value in low],
        None if shape is None else [int(value) for value in shape],
    )
    return _ToDense.apply(features, coords.sites, box, crop, False)


def from_dense(dense: Tensor, mask: Tensor | None = None) -> tuple[Coordinates, Tensor]:
    """[B, C, shape…] to the sites where any channel is not 0 (or where `mask` [B, shape…] says), in
    the order of the array, and their features, differentiable."""
    if dense.dim() < 3:
        raise _C.UserError(f"dense has shape {tuple(dense.shape)}: give [B, C, shape…]")
    if mask is None:
        mask = (dense.detach() != 0).any(1)
    mask = mask.to(torch.uint8).contiguous()
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
    check_floating(features)
    rows, weights = _C.interpolation_map(coords.sites, points.contiguous(), nearest, renormalize)
    corners = features[rows.clamp_min(0).long()]  # [P, corners, C]; absent ones weigh 0
    return (corners * weights.to(features.dtype)[:, :, None]).sum(1)


class _ToDense(torch.autograd.Function):
    """Linear: its gradient reads the grid at the sites, and the gradient of that is this again."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, sites: _C.Sites, box: Any, crop: bool, gradient: bool
    ) -> Tensor:
        ctx.call = (sites, box, crop)
        ctx.gradient = gradient
        run = _C.to_dense_gradient if gradient else _C.to_dense
        return run(values.contiguous(), sites, *box, crop)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return _ToDense.apply(grad, *ctx.call, not ctx.gradient), None, None, None, None
