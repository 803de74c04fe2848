"""Pooling, interpolation, and batch items."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from conftest import at_sites, close, dense_of, random_tensor, working_type

import pumice
from pumice import nn


@pytest.mark.parametrize("kernel, stride, padding", [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
@pytest.mark.parametrize("kind", ["max", "average", "sum"])
def test_pooling_counts_active_inputs_alone(
    device: torch.device, kind: str, kernel: int, stride: int, padding: int
) -> None:
    type_ = working_type(device)
    x = random_tensor(extent=9, dtype=type_, device=device)
    layer = {"max": nn.MaxPool, "average": nn.AvgPool, "sum": nn.SumPool}[kind]
    y = layer(kernel, stride, padding)(x)
    ones = dense_of(x.replace(features=torch.ones_like(x.features)), 9)
    dense = dense_of(x, 9)
    count = F.avg_pool3d(ones, kernel, stride, padding) * kernel**3
    if kind == "max":
        low = dense.masked_fill(ones == 0, -1e9)
        expected = F.max_pool3d(low, kernel, stride, padding)
    else:
        expected = F.avg_pool3d(dense, kernel, stride, padding) * kernel**3
        if kind == "average":
            expected = expected / count.clamp_min(1)
    expected = at_sites(expected, y.indices)
    close(y.features, expected, 27)
    weights = torch.randn_like(expected)
    mine = torch.autograd.grad((y.features * weights).sum(), x.features)[0]
    theirs = torch.autograd.grad((expected * weights).sum(), x.features)[0]
    close(mine, theirs, 27)


@pytest.mark.parametrize("kind", ["max", "average", "sum"])
def test_global_pooling(device: torch.device, kind: str) -> None:
    type_ = working_type(device)
    x = random_tensor(dtype=type_, device=device, batch=3)
    y = nn.GlobalPool(kind)(x)
    of = {"max": lambda f: f.max(0).values, "average": lambda f: f.mean(0), "sum": lambda f: f.sum(0)}
    items = [x.features[x.indices[:, 0] == item] for item in range(3)]
    expected = torch.stack([of[kind](rows) for rows in items])
    close(y, expected, 100)
    weights = torch.randn_like(expected)
    mine = torch.autograd.grad((y * weights).sum(), x.features)[0]
    theirs = torch.autograd.grad((expected * weights).sum(), x.features)[0]
    close(mine, theirs, 100)


def test_pooling_passes_gradcheck() -> None:
    x = random_tensor(2, 4, 9, channels=2, batch=1)
    window = pumice.window.Window([2, 2], [2, 2], [0, 0], [1, 1])
    map, _ = pumice.ops.strided_map(x.coords, window, False)
    for kind in ("max", "average", "sum"):
        for run in (
            lambda f: pumice.ops.pool(f, map, kind),
            lambda f: pumice.ops.global_pool(f, x.coords, kind),
        ):
            assert torch.autograd.gradcheck(run, (x.features,))
            assert torch.autograd.gradgradcheck(run, (x.features,))
    dense = (lambda f: pumice.ops.to_dense(f, x.coords),)
    assert torch.autograd.gradcheck(*dense, (x.features,))
    assert torch.autograd.gradgradcheck(*dense, (x.features,))


@pytest.mark.parametrize("kind", ["max", "average", "sum"])
def test_global_pooling_of_nothing_has_second_derivatives(kind: str) -> None:
    cells = torch.zeros((0, 4), dtype=torch.int32)
    x = pumice.SparseTensor(cells, torch.zeros(0, 2).requires_grad_(), batch_size=2)
    y = nn.GlobalPool(kind)(x)
    assert torch.equal(y, torch.zeros(2, 2))
    (first,) = torch.autograd.grad(y, x.features, torch.ones(2, 2, requires_grad=True), create_graph=True)
    first.sum().backward()
    assert x.features.grad is None or x.features.grad.shape == (0, 2)


def test_pooling_is_for_as_many_axes_as_it_has_numbers() -> None:
    with pytest.raises(pumice.UserError, match="sites of 3"):
        nn.MaxPool((2, 2))(random_tensor())
    with pytest.raises(pumice.UserError, match="stride"):
        nn.MaxPool((2, 2), (2, 2, 2))


def test_interpolation_at_centres_and_between(device: torch.device) -> None:
    x = random_tensor(dtype=torch.float32, device=device)
    centres = x.indices.float()
    close(pumice.ops.interpolate(x.features, x.coords, centres), x.features)
    between = centres + torch.tensor([0, 0.5, 0, 0], device=device)
    there = dense_of(x, 9)
    following = F.pad(there, (0, 0, 0, 0, 0, 1))[:, :, 1:]
    expected = (at_sites(there, x.indices) + at_sites(following, x.indices)) / 2
    none = pumice.SparseTensor(x.indices[:0], x.features[:0], batch_size=2)
    nothing = pumice.ops.interpolate(none.features, none.coords, between)
    assert torch.equal(nothing, torch.zeros_like(x.features))
    close(pumice.ops.interpolate(x.features, x.coords, between), expected, 2)
