"""Registers the operators between rows and dense grids, and the one that finds the cells around a point."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._registry import define, differentiate, fake_token, unknown_size

_ops = torch.ops.pumice
_Box = Any  # list of numbers an axis, or None


def _to_dense(
    features: Tensor,
    sites: Tensor,
    rows: int,
    batch_size: int,
    dimension: int,
    low: _Box,
    shape: _Box,
    crop: bool,
) -> Tensor:
    return _C.to_dense(features.contiguous(), _C.sites_of(sites), low, shape, crop)


def _fake_to_dense(
    features: Tensor,
    sites: Tensor,
    rows: Any,
    batch_size: Any,
    dimension: int,
    low: _Box,
    shape: _Box,
    crop: bool,
) -> Tensor:
    if shape is None:
        shape = [unknown_size() for _ in range(dimension)]
    return features.new_empty((batch_size, features.shape[1], *shape))


def _keep_to_dense(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, sites, ctx.rows, _, _, *ctx.box = inputs
    ctx.save_for_backward(sites)


def _of_to_dense(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    (sites,) = ctx.saved_tensors
    return _ops.to_dense_gradient(grad, sites, ctx.rows, *ctx.box), *[None] * 7


def _to_dense_gradient(
    grad: Tensor, sites: Tensor, rows: int, low: _Box, shape: _Box, crop: bool
) -> Tensor:
    return _C.to_dense_gradient(grad.contiguous(), _C.sites_of(sites), low, shape, crop)


def _keep_to_dense_gradient(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    grad, sites, rows, *ctx.box = inputs
    ctx.save_for_backward(sites)
    ctx.sizes = (rows, grad.shape[0], grad.dim() - 2)


def _of_to_dense_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    (sites,) = ctx.saved_tensors
    return _ops.to_dense(grad, sites, *ctx.sizes, *ctx.box), *[None] * 5


define(
    "to_dense(Tensor features, Tensor sites, SymInt rows, SymInt batch_size, int dimension, "
    "SymInt[]? low, SymInt[]? shape, bool crop) -> Tensor",
    _to_dense,
    _fake_to_dense,
)
define(
    "to_dense_gradient(Tensor grad, Tensor sites, SymInt rows, SymInt[]? low, SymInt[]? shape, "
    "bool crop) -> Tensor",
    _to_dense_gradient,
    lambda grad, sites, rows, low, shape, crop: grad.new_empty((rows, grad.shape[1])),
)
differentiate("to_dense", _keep_to_dense, _of_to_dense)
differentiate("to_dense_gradient", _keep_to_dense_gradient, _of_to_dense_gradient)


def _sites_of_mask(mask: Tensor) -> tuple[Tensor, Tensor]:
    values = mask[:, None].to(torch.float16)  # the mask alone says where sites are
    sites, _ = _C.from_dense(values.contiguous(), mask.contiguous(), [1] * (mask.dim() - 1))
    return _C.sites_token(sites), sites.coordinates().clone()


define(
    "sites_of_mask(Tensor mask) -> (Tensor, Tensor)",
    _sites_of_mask,
    lambda mask: (
        fake_token(mask),
        mask.new_empty((unknown_size(), mask.dim()), dtype=torch.int32),
    ),
)


def _interpolation_map(
    sites: Tensor, points: Tensor, dimension: int, nearest: bool, renormalize: bool
) -> tuple[Tensor, Tensor]:
    return _C.interpolation_map(_C.sites_of(sites), points.contiguous(), nearest, renormalize)


def _fake_interpolation_map(
    sites: Tensor, points: Tensor, dimension: int, nearest: bool, renormalize: bool
) -> tuple[Tensor, Tensor]:
    weights = points.new_empty((points.shape[0], 1 if nearest else 1 << dimension))
    return torch.empty_like(weights, dtype=torch.int32), weights


define(
    "interpolation_map(Tensor sites, Tensor points, int dimension, bool nearest, bool renormalize) "
    "-> (Tensor, Tensor)",
    _interpolation_map,
    _fake_interpolation_map,
)
