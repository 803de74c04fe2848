"""Between rows and dense grids."""

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


def to_bev(
    features: Tensor,
    coords: Coordinates,
    axis: int = -1,
    *,
    shape: Sequence[int] | None = None,
    low: Sequence[int] | None = None,
    crop: bool = False,
) -> Tensor:
    """`to_dense` with an axis folded into the channels, channel-major: [rows, C] to [batch_size,
    C · shape[axis], the other axes in their order]."""
    dimension = coords.dimension
    if not -dimension <= axis < dimension:
        raise _C.UserError(f"axis = {axis}: the sites have axes 0 to {dimension - 1}")
    box = (
        None if low is None else [int(value) for value in low],
        None if shape is None else [int(value) for value in shape],
    )
    return _ToBEV.apply(features, coords.sites, axis % dimension, box, crop)


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


class _ToBEV(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, sites: _C.Sites, axis: int, box: Any, crop: bool
    ) -> Tensor:
        ctx.call = (sites, axis, features.shape[1], *box, crop)
        return _C.to_bev(features.contiguous(), sites, axis, *box, crop)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return _C.to_bev_gradient(grad.contiguous(), *ctx.call), None, None, None, None
