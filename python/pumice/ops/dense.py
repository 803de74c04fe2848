"""Between rows and dense grids."""

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
    box = _box(coords, shape, low)
    if modes.traced(features):
        low, shape = box
        if shape is None and low is None:
            known = coords.spatial_shape
            shape = None if known is None else list(known)
        items, dimension = coords.batch_size, coords.dimension
        return _ops.to_dense(
            features, coords.token, coords.rows, items, dimension, low, shape, crop
        )
    call = (coords.sites, *box, crop)
    return _Linear.apply(
        features,
        (lambda rows: _C.to_dense(rows, *call), lambda grid: _C.to_dense_gradient(grid, *call)),
    )


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
    axis %= dimension
    if shape is None and not torch.compiler.is_compiling() and coords.spatial_shape is None:
        raise _C.UserError(
            "the sites have no spatial_shape, so that the channels of a view from above would depend on the scan: "
            "give shape (and low, its first cell), or the tensor a spatial_shape"
        )
    if modes.traced(features):
        dense = to_dense(features, coords, shape=shape, low=low, crop=crop)
        return dense.movedim(2 + axis, 2).flatten(1, 2)
    sites, box = coords.sites, _box(coords, shape, low)
    channels = features.shape[1]
    return _Linear.apply(
        features,
        (
            lambda rows: _C.to_bev(rows, sites, axis, *box, crop),
            lambda grid: _C.to_bev_gradient(grid, sites, axis, channels, *box, crop),
        ),
    )


def from_dense(dense: Tensor, mask: Tensor | None = None) -> tuple[Coordinates, Tensor]:
    """[B, C, shape…] to the sites where any channel is not 0 (or where `mask` [B, shape…] says), in
    the order of the array, and their features, differentiable."""
    if dense.dim() < 3:
        raise _C.UserError(f"dense has shape {tuple(dense.shape)}: give [B, C, shape…]")
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


def _box(
    coords: Coordinates, shape: Sequence[int] | None, low: Sequence[int] | None
) -> tuple[list[int] | None, list[int] | None]:
    """(low, shape), a number for each axis."""
    for name, numbers in (("shape", shape), ("low", low)):
        if numbers is not None and len(numbers) != coords.dimension:
            raise _C.UserError(
                f"{name} = {tuple(numbers)}: give one number for each of {coords.dimension} axes"
            )
    return (
        None if low is None else [int(value) for value in low],
        None if shape is None else [int(value) for value in shape],
    )


class _Linear(torch.autograd.Function):
    """The first of two linear functions; each is the gradient of the other."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, functions: Any) -> Tensor:
        ctx.functions = functions
        return functions[0](values.contiguous())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return _Linear.apply(grad, ctx.functions[::-1]), None
