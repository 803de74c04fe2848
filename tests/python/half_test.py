"""Networks that were converted as a whole, half() and bfloat16(), run as they do under autocast."""

from __future__ import annotations

import copy

import pytest
import torch
from chain_test import NETWORKS, calls, network, one_by_one  # noqa: F401  (fixtures)
from conftest import random_tensor

from pumice import nn

HALVES = [torch.float16, torch.bfloat16]
KINDS = ["as a whole", "with norms in float32"]


def convert(net: torch.nn.Module, dtype: torch.dtype, kind: str) -> torch.nn.Module:
    net.to(dtype)
    for module in net.modules():
        if kind != "as a whole" and isinstance(module, torch.nn.BatchNorm1d):
            module.float()
    return net


def far(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    mine, theirs = mine.detach().double(), theirs.detach().double()
    return float((mine - theirs).norm() / (1e-6 + theirs.norm()))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_norm_in_half_precision_is_that_of_pytorch(
    device: torch.device, dtype: torch.dtype, momentum: float | None
) -> None:
    """Running statistics too: computed in float32 and rounded once to their own type, as PyTorch does on
    a GPU. On the CPU its sums are in half precision."""
    torch.manual_seed(3)
    plain = torch.nn.BatchNorm1d(24, momentum=momentum).to(device, dtype)
    for tensor in (plain.weight, plain.bias, plain.running_mean, plain.running_var):
        torch.nn.init.uniform_(tensor, 0.5, 2)
    ours = nn.BatchNorm(24, momentum=momentum).to(device, dtype)
    ours.load_state_dict(plain.state_dict())
    x = random_tensor(channels=24, count=500, dtype=dtype, device=device)
    given = x.features.detach().clone().requires_grad_()
    step = torch.finfo(dtype).eps
    for _ in range(3):
        plain.load_state_dict(ours.state_dict())
        exact = copy.deepcopy(plain).double()
        exact(x.features.detach().double())
        y, expected = ours(x).features, plain(given)
        assert y.dtype == dtype
        torch.testing.assert_close(y, expected, rtol=2 * step, atol=2 * step)
        for name, value in plain.state_dict().items():
            mine, wanted = ours.state_dict()[name], exact.state_dict()[name]
            assert mine.dtype == value.dtype
            if value.is_floating_point():
                torch.testing.assert_close(mine.double(), wanted, rtol=step / 1.9, atol=0, msg=name)
                torch.testing.assert_close(mine, value, rtol=4 * step, atol=0, msg=name)
            else:
                assert torch.equal(mine, value)
    gradient = torch.randn_like(expected)
    y.backward(gradient)
    expected.backward(gradient)
    for mine, theirs in zip(
        (x.features, ours.weight, ours.bias), (given, plain.weight, plain.bias), strict=True
    ):
        assert mine.grad.dtype == dtype and far(mine.grad, theirs.grad) < 8 * step
    ours.eval(), plain.eval()
    torch.testing.assert_close(ours(x).features, plain(given), rtol=2 * step, atol=2 * step)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETWORKS)
def test_training_goes_through_chains(
    device: torch.device, name: str, kind: str, dtype: torch.dtype, calls: list[str], one_by_one  # noqa: ANN001, F811
) -> None:
    net = convert(network(name, device).float(), dtype, kind)
    other = copy.deepcopy(net)
    exact = copy.deepcopy(net).float()
    x = random_tensor(extent=32, count=800, dtype=dtype, device=device)

    def step(net: torch.nn.Module, x: object) -> list[torch.Tensor]:
        y = net(x).features
        loss = (y.float() * torch.linspace(-1, 1, y.numel(), device=device).reshape(y.shape)).mean()
        return [y, *torch.autograd.grad(128 * loss, [x.features, *net.parameters()])]

    mine, theirs = step(net, x), one_by_one(lambda: step(other, x))
    assert calls.count("chain_training") == calls.count("chain_gradients") > 0
    best = one_by_one(lambda: step(exact, x.replace(features=x.features.detach().float().requires_grad_())))
    for here, there, true in zip(mine, theirs, best, strict=True):
        assert here.dtype == there.dtype
        assert far(here, true) < 2 * far(there, true) + 64 * torch.finfo(dtype).eps
    for (key, here), there, true in zip(
        net.state_dict().items(), other.state_dict().values(), exact.state_dict().values(), strict=True
    ):
        assert here.dtype == there.dtype, key
        if "running" in key:
            assert far(here, true) < 2 * far(there, true) + 4 * torch.finfo(dtype).eps, key


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
def test_inference_is_folded(
    device: torch.device, kind: str, dtype: torch.dtype, bias: bool, calls: list[str], one_by_one  # noqa: ANN001, F811
) -> None:
    """In a chain, and one by one where there is a bias: in one pass all the same."""
    net = convert(network("stage", device).float(), dtype, kind).eval()
    if bias:
        for module in net.modules():
            if isinstance(module, nn.SubMConv3d):
                module.bias = torch.nn.Parameter(torch.randn_like(module.weight[0, 0]))
    x = random_tensor(extent=32, count=800, dtype=dtype, device=device).detach()
    with torch.no_grad():
        y = net(x).features
        assert ("chain_inference" in calls) is not bias
        exact = copy.deepcopy(net).float()
        true = exact(x.replace(features=x.features.float())).features
        assert y.dtype == dtype and far(y, true) < 16 * torch.finfo(dtype).eps
