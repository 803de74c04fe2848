"""PyTorch's counter of operations counts what `explain` says."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from conftest import random_tensor
from torch.utils.flop_counter import FlopCounterMode

import pumice
from pumice import explain, models, nn


def counted(call: object) -> int:
    with FlopCounterMode(display=False) as counter:
        call()  # type: ignore[operator]
    return counter.get_total_flops()


def said(net: torch.nn.Module, x: pumice.SparseTensor) -> int:
    return round(1e9 * sum(layer.gflop for layer in explain(net, x)))


@pytest.mark.parametrize("training", [True, False])
def test_forward_is_what_explain_says(device: torch.device, training: bool) -> None:
    x = random_tensor(extent=32, count=900, dtype=torch.float32, device=device).detach()
    net = models.MinkUNet42(4, 7, width_factor=0.25).to(device).train(training)
    with torch.no_grad():
        assert counted(lambda: net(x)) == said(net, x) > 0


def test_backward_is_twice_the_forward(device: torch.device) -> None:
    x = random_tensor(extent=32, count=900, dtype=torch.float32, device=device)
    net = nn.Sequential(
        nn.SubMConv3d(4, 8, 3, bias=False), nn.BatchNorm(8), nn.ReLU(), nn.Conv3d(8, 8, 2, 2, groups=2),
        nn.InverseConv3d(8, 4, 2, 2), nn.GenerativeConvTranspose3d(4, 2, 1), nn.Linear(2, 5),
    ).to(device)  # fmt: skip
    forward = said(net, x)
    assert counted(lambda: net(x).features.sum().backward()) == 3 * forward
    net.requires_grad_(False)
    assert counted(lambda: net(x).features.sum().backward()) == 2 * forward


def test_only_the_backward() -> None:
    script = """
import torch, pumice
from torch.utils.flop_counter import FlopCounterMode
x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3]]), torch.ones(1, 4, requires_grad=True))
loss = pumice.nn.SubMConv3d(4, 8, 3)(x).features.sum()
with FlopCounterMode(display=False) as counter:
    loss.backward()
assert counter.get_total_flops() == 128, counter.get_total_flops()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_layers_of_other_interfaces_count_too() -> None:
    import pumice.compat.spconv as spconv

    x = random_tensor(dtype=torch.float32)
    mine, theirs = nn.SubMConv3d(4, 8, 3), spconv.SubMConv3d(4, 8, 3)
    given = spconv.SparseConvTensor(x.features, x.indices, [9] * 3, 2)
    assert counted(lambda: theirs(given)) == counted(lambda: mine(x)) > 0


def test_per_module() -> None:
    x = random_tensor(dtype=torch.float32)
    net = nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.SubMConv3d(8, 2, 1))
    with FlopCounterMode(display=False) as counter:
        net(x)
    assert sum(counter.get_flop_counts()["Sequential.1"].values()) == 2 * len(x) * 8 * 2


def test_a_counter_made_before_the_package() -> None:
    script = """
import torch
from torch.utils.flop_counter import FlopCounterMode
counter = FlopCounterMode(display=False)
import pumice
x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3]]), torch.ones(1, 4))
layer = pumice.nn.SubMConv3d(4, 8, 3)
with counter:
    layer(x)
assert counter.get_total_flops() == 64, counter.get_total_flops()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_import_does_not_bring_in_the_counter() -> None:
    script = "import sys, pumice.nn; assert 'torch.utils.flop_counter' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_compiled_network(device: torch.device) -> None:
    """The formulas do not disturb a compiler that estimates with them."""
    x = random_tensor(dtype=torch.float32, device=device).detach()
    layer = nn.SubMConv3d(4, 8, 3).to(device)
    compiled = torch.compile(lambda x: layer(x).features, backend="aot_eager")
    counted(lambda: layer(x))
    with torch.no_grad():
        assert torch.equal(compiled(x), layer(x).features)
