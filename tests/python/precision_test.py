"""Half precision, autocast, and PyTorch's switches."""

from __future__ import annotations

import functools

import pytest
import torch
from conftest import random_tensor
from float64_reference import UNIT, in_float64, results_of

from pumice import nn

HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("training", [True, False])
def test_autocast_computes_in_that_type(
    device: torch.device, dtype: torch.dtype, training: bool
) -> None:
    x = random_tensor(channels=16, dtype=torch.float32, device=device)
    net = nn.Sequential(nn.SubMConv3d(16, 32, 3), nn.Conv3d(32, 16, 2, 2)).to(device)
    net.train(training)
    exact = net(x).features
    with torch.autocast(device.type, dtype=dtype):
        y = net(x)
        first = net[0](x)
    assert y.features.dtype == dtype and first.features.dtype == dtype
    # The same bits as with features and weights rounded beforehand: no detour through float32.
    rounded = nn.SubMConv3d(16, 32, 3).to(device)
    rounded.load_state_dict(net[0].state_dict())
    rounded.weight.data = rounded.weight.data.to(dtype)
    assert torch.equal(first.features, rounded(x.replace(features=x.features.to(dtype))).features)
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(y.features.float(), exact, rtol=8 * step, atol=16 * step)
    y.features.float().square().sum().backward()
    # Nine roundings of up to half a unit in the last place lie between a gradient and that in float64: features,
    # weights and outputs of two layers, and what flows back through them. In the norm they add up as their
    # squares do, to less than sqrt(9) / 2 units.
    other, at = in_float64(net, x)
    other(at).features.square().sum().backward()
    expected = [at.features, *other.parameters()]
    for parameter, there in zip((x.features, *net.parameters()), expected, strict=True):
        assert parameter.grad.dtype == torch.float32
        error = (parameter.grad.cpu().double() - there.grad).norm() / there.grad.norm()
        assert error < 1.5 * step, f"{error / step} units"


def test_autocast_inference_without_gradients(device: torch.device) -> None:
    x = random_tensor(channels=16, dtype=torch.float32, device=device).detach()
    layer = nn.SubMConv3d(16, 16, 3).to(device).eval()
    with torch.no_grad(), torch.autocast(device.type, dtype=torch.bfloat16):
        first = layer(x).features
        assert first.dtype == torch.bfloat16
        layer.weight.mul_(0.5)
        layer.bias.mul_(0.5)
        torch.testing.assert_close(layer(x).features, first * 0.5)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", ["submanifold", "strided"])
def test_half_networks(device: torch.device, dtype: torch.dtype, kind: str) -> None:
    """Each number is within half a unit in the last place of that in float64: sums are of float32, and are
    rounded once. What float32 adds, n roundings of 2^-24 of the sum of all products without their signs, tells
    the same layer of absolute values."""
    x = random_tensor(channels=16, dtype=dtype, device=device)
    layer = nn.SubMConv3d(16, 32, 3) if kind == "submanifold" else nn.Conv3d(16, 32, 2, 2)
    layer = layer.to(device, dtype)
    rows = layer(x).features.shape[0]
    gradient = torch.linspace(-1, 1, rows * 32).reshape(rows, 32).to(dtype)
    found = results_of(layer, x, gradient)
    exact = results_of(*in_float64(layer, x), gradient)
    unsigned = results_of(*in_float64(layer, x, torch.abs), gradient.abs())
    unit = torch.finfo(dtype).eps / 2
    products = {"output": 27 * 16 + 1, "features": 27 * 32, "weight": rows, "bias": rows}
    for name, value in found.items():
        assert value.dtype == dtype, name
        of_sums = products[name] * UNIT * unsigned[name]
        bound = (unit * exact[name].abs() + of_sums) * (1 + unit) + 2.0**-25  # half the least f16
        error = (value.double() - exact[name]).abs()
        assert (error <= bound).all(), f"{name} is off by {(error / bound).max()} of its bound"
        # Not so wide that a mistake of 1 % would pass.
        assert bound.norm() < 0.01 * exact[name].norm(), name


@functools.cache
def losses(device: torch.device, dtype: torch.dtype | None, seed: int) -> torch.Tensor:
    """float64 [200]: of 200 steps under autocast to `dtype` (None: in float32)."""
    torch.manual_seed(20)  # the same input each time
    x = random_tensor(count=200, channels=8, dtype=torch.float32, device=device).detach()
    target = (x.features[:, 0] > 0).long()
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.SubMConv3d(8, 16, 3), nn.BatchNorm(16), nn.ReLU(), nn.SubMConv3d(16, 2, 3)
    ).to(device)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
    values = []
    for _ in range(200):
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            scores = net(x).features
        loss = torch.nn.functional.cross_entropy(scores.float(), target)
        optimiser.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        values.append(loss.item())
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("dtype", HALVES)
def test_losses_under_autocast_follow_those_in_float32(
    device: torch.device, dtype: torch.dtype
) -> None:
    """Over 200 steps they stay closer than those of other initial weights in float32 do."""
    exact = losses(device, None, 3)
    assert exact[-1] < 0.1 * exact[0]
    noise = (losses(device, None, 4) - exact).abs()
    apart = (losses(device, dtype, 3) - exact).abs()
    assert apart.mean() < noise.mean() and apart.max() < noise.max()
