"""Interpolates features at points between cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _C
from .._checks import true_or_false
from .._objects import check_sites
from .._tensors import check_floating, check_tensor
from ..coords import Coordinates
from . import modes

_ops = torch.ops.pumice


class InterpolationMap(NamedTuple):
    """The rows that each point is interpolated from, and their weights; for any features on the same sites.

    Args:
        rows: int32 [P, corners], -1 for a cell that is not there.
        weights: [P, corners], of the points' type.
        in_rows: how many rows the sites have.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> found = ops.interpolation_map(x.coords, torch.tensor([[0, 1.0, 2.0, 3.5]]))
        >>> found.weights.sum()
        tensor(1.)
    """

    rows: Tensor  # int32 [P, corners], -1 for a cell that is not there
    weights: Tensor  # [P, corners], of the points' type
    in_rows: int


def interpolation_map(
    coords: Coordinates, points: Tensor, *, nearest: bool = False, renormalize: bool = False
) -> InterpolationMap:
    """Finds the cells around each point, and their weights.

    Args:
        coords: the sites.
        points: float32 or float64 [P, 1 + D], the batch index, then the position in cells, whose centres are at
            whole numbers.
        nearest: the nearest cell alone, in place of the 2^D around.
        renormalize: absent cells are left out; else they count as 0.
    Returns:
        An `InterpolationMap` of P points.
    Raises:
        UserError: for other shapes and types.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> ops.interpolation_map(x.coords, torch.tensor([[0, 1.0, 2.0, 3.0]]), nearest=True).rows
        tensor([[0]], dtype=torch.int32)
    """
    check_sites("coords", coords)
    check_tensor("points", points)
    points = points.detach()
    if torch.compiler.is_compiling():
        call = (coords.token, points, coords.dimension, nearest, renormalize)
        return InterpolationMap(*_ops.interpolation_map(*call), coords.rows)
    found = _C.interpolation_map(coords.sites, points, nearest, renormalize)
    return InterpolationMap(*found, coords.rows)


def interpolate(
    features: Tensor,
    coords: Coordinates | InterpolationMap,
    points: Tensor | None = None,
    *,
    nearest: bool = False,
    renormalize: bool = False,
) -> Tensor:
    """Features at points. Either a map and nothing else, or what `interpolation_map` takes to make one.

    Args:
        features: floating [rows, C].
        coords: the sites of the rows, or an `InterpolationMap`.
        points: float32 or float64 [P, 1 + D], where `coords` are sites.
        nearest: as `interpolation_map` has it.
        renormalize: as `interpolation_map` has it.
    Returns:
        [P, C], differentiable in the features.
    Raises:
        UserError: for other shapes and types, and where a map and points are given.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> ops.interpolate(x.features, x.coords, torch.tensor([[0, 1.0, 2.0, 3.5]])).shape
        torch.Size([1, 4])
    """
    check_floating(features)
    true_or_false("nearest", nearest)
    true_or_false("renormalize", renormalize)
    if isinstance(coords, InterpolationMap):
        if points is not None or nearest or renormalize:
            raise _C.UserError("points, nearest and renormalize are those of the map: give it alone")
        return _interpolate(features, coords)
    if points is None:
        raise _C.UserError("interpolate: give points, or an interpolation_map in place of coords")
    found = interpolation_map(coords, points, nearest=nearest, renormalize=renormalize)
    return _interpolate(features, found)


def _interpolate(features: Tensor, map: InterpolationMap) -> Tensor:
    modes.look("rows", map.rows)
    modes.look("weights", map.weights)
    if map.rows.dtype is not torch.int32:
        raise _C.UserError(f"rows of the map are {map.rows.dtype}: give int32, as interpolation_map makes them")
    if not modes.traced(features):
        return _apply(features, map)
    return _ops.interpolate(features, *map)


class _Interpolate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, map: InterpolationMap) -> Tensor:
        ctx.map = map
        return _C.interpolate(features, *map)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _apply_gradient(grad, ctx.map), None


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, map: InterpolationMap) -> Tensor:
        ctx.map = map
        return _C.interpolate_gradient(grad, *map)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _apply(grad, ctx.map), None


_apply = modes.function(_Interpolate)
_apply_gradient = modes.function(_Gradient)
