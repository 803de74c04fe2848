"""Converts between rows of features and dense grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._checks import whole_number
from .._objects import check_sites
from .._sites import axis_numbers
from .._tensors import check_tensor
from ..coords import Coordinates
from . import modes, traced

_ops = torch.ops.pumice


def to_dense(
    features: Tensor,
    coords: Coordinates,
    *,
    shape: Sequence[int] | None = None,
    low: Sequence[int] | None = None,
    crop: bool = False,
) -> Tensor:
    """Rows into a dense grid, 0 where no site is.

    Args:
        features: [rows, C].
        coords: the sites of the rows.
        shape: cells an axis; default: the spatial shape, else the box around the sites.
        low: the first cell; default: 0, or that of the box.
        crop: leave out rows outside of the grid instead of refusing them.
    Returns:
        [batch_size, C, shape…], differentiable.
    Raises:
        UserError: sites outside of the grid, and other numbers of axes.
    Waits:
        For a GPU where no grid is known.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> ops.to_dense(x.features, x.coords, shape=[2, 4, 5]).shape
        torch.Size([1, 4, 2, 4, 5])
    """
    check_sites("coords", coords)
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
    return _linear(
        features,
        (
            lambda rows: _in_memory(rows, coords, box, lambda: _C.to_dense(rows, *call)),
            lambda grid: _C.to_dense_gradient(grid, *call),
        ),
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
    """`to_dense` with an axis folded into the channels, channel-major.

    Args:
        features: [rows, C].
        coords: the sites of the rows.
        axis: the one that becomes channels.
        shape: cells an axis; default: the spatial shape. One of them is needed.
        low: the first cell; default: 0.
        crop: leave out rows outside of the grid instead of refusing them.
    Returns:
        [batch_size, C · shape[axis], the other axes in their order], differentiable.
    Raises:
        UserError: without a grid, for sites outside of it, and for axes that the sites do not have.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> ops.to_bev(x.features, x.coords, shape=[2, 4, 5]).shape
        torch.Size([1, 20, 2, 4])
    """
    check_sites("coords", coords)
    dimension = coords.dimension
    modes.look("features", features)
    if type(axis) is not int:
        axis = whole_number("axis", axis, -dimension, dimension - 1)
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
    if features.is_nested:
        check_tensor("features", features)
    return _linear(
        features,
        (
            lambda rows: _in_memory(rows, coords, box, lambda: _C.to_bev(rows, sites, axis, *box, crop)),
            lambda grid: _C.to_bev_gradient(grid, sites, axis, *box, crop),
        ),
    )


def from_dense(dense: Tensor, mask: Tensor | None = None) -> tuple[Coordinates, Tensor]:
    """The sites of a dense grid, in the order of the array.

    Args:
        dense: [B, C, shape…].
        mask: bool [B, shape…], which cells are sites; default: where any channel is not 0.
    Returns:
        (sites, their features [rows, C], differentiable).
    Raises:
        UserError: for fewer than three axes.
    Waits:
        For a GPU, for how many sites there are.
    Example:
        >>> coords, features = ops.from_dense(torch.eye(3)[None, None])
        >>> coords.indices.tolist()
        [[0, 0, 0], [0, 1, 1], [0, 2, 2]]
    """
    check_tensor("dense", dense)
    if mask is not None:
        check_tensor("mask", mask)
    if dense.dim() < 3:
        raise _C.UserError(f"dense has shape {tuple(dense.shape)}: give [B, C, shape…]")
    if mask is None:
        mask = (dense.detach() != 0).any(1)
    elif mask.shape != (dense.shape[0], *dense.shape[2:]):
        raise _C.UserError(
            f"mask has shape {tuple(mask.shape)}: give {[dense.shape[0], *dense.shape[2:]]}, one value for each cell of dense"
        )
    mask = (mask != 0).to(torch.uint8).contiguous()
    if modes.traced(dense):
        coords = traced.from_mask(mask)
    else:
        sites, _ = _C.from_dense(dense.detach().contiguous(), mask, [1] * (dense.dim() - 2))
        coords = Coordinates._of(sites)
    cells = coords.indices.long()
    return coords, dense[(cells[:, 0], slice(None), *cells[:, 1:].unbind(1))]


def _box(
    coords: Coordinates, shape: Sequence[int] | None, low: Sequence[int] | None
) -> tuple[list[int] | None, list[int] | None]:
    """(low, shape), a number for each axis."""
    return axis_numbers("low", low, coords.dimension), axis_numbers("shape", shape, coords.dimension)


def _in_memory(
    features: Tensor, coords: Coordinates, box: tuple[list[int] | None, list[int] | None], make: Callable[[], Any]
) -> Any:
    """What `make` makes. Raises UserError, with the size of the grid, where the host has no memory for it."""
    try:
        return make()
    except RuntimeError as error:
        # PyTorch has no class of its own for memory of the host that there is not: that of a GPU, which users catch,
        # and those of Pumice are derived from this one.
        if type(error) is not RuntimeError or features.is_cuda:
            raise
        none = error
    shape = box[1] or coords.spatial_shape
    if shape is None:
        cells = coords.indices[:, 1:]
        shape = (cells.amax(0) - cells.amin(0) + 1).tolist()
    grid = [coords.batch_size, features.shape[1], *shape]
    size = math.prod(grid) * features.element_size() / 2**30
    raise _C.UserError(
        f"a dense grid {grid} of {features.dtype} takes {size:.4g} GiB, for which there is no memory: give shape and low, "
        "with crop=True for sites outside, or the tensor a smaller spatial_shape"
    ) from none


class _Linear(torch.autograd.Function):
    """The first of two linear functions; each is the gradient of the other."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, functions: Any) -> Tensor:
        ctx.functions = functions
        return functions[0](values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return _linear(grad, ctx.functions[::-1]), None


_linear = modes.function(_Linear)
