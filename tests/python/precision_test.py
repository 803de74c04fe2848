"""Half precision, autocast, and PyTorch's switches."""

from __future__ import annotations

import pytest
import torch
from conftest import random_tensor

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
    for parameter in (x.features, *net.parameters()):
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all() and parameter.grad.abs().max() > 0


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
def test_half_networks(device: torch.device, dtype: torch.dtype) -> None:
    x = random_tensor(channels=16, dtype=dtype, device=device)
    layer = nn.SubMConv3d(16, 32, 3).to(device, dtype)
    y = layer(x).features
    assert y.dtype == dtype
    y.float().sum().backward()
    assert layer.weight.grad.dtype == dtype and layer.bias.grad.dtype == dtype


def test_losses_under_autocast_follow_those_in_float32(device: torch.device) -> None:
    x = random_tensor(count=400, channels=8, dtype=torch.float32, device=device).detach()
    target = (x.features[:, 0] > 0).long()

    def losses(dtype: torch.dtype | None) -> list[float]:
        torch.manual_seed(3)
        net = nn.Sequential(
            nn.SubMConv3d(8, 16, 3), nn.BatchNorm(16), nn.ReLU(), nn.SubMConv3d(16, 2, 3)
        ).to(device)
        optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        values = []
        for _ in range(30):
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                scores = net(x).features
            loss = torch.nn.functional.cross_entropy(scores.float(), target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            values.append(loss.item())
        return values

    exact, halves = losses(None), losses(torch.bfloat16)
    assert exact[-1] < 0.5 * exact[0]
    assert abs(halves[-1] - exact[-1]) < 0.1 * exact[0]
