"""An unmodified network written for spconv trains."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
import torch
from conftest import random_sites
from standing_in import by_name

STEPS = 30


@pytest.fixture
def network() -> Iterator[torch.nn.Module]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # waiting for each other costs more than such small norms
    with by_name("spconv"):
        yield importlib.import_module("spunet").SpUNet(4, 5)
    torch.set_num_threads(threads)


def scene(device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sites on surfaces, whose class follows from where they lie."""
    cells = random_sites(3, 16, 2500)
    cells = cells[(cells[:, 3] < 3) | (cells[:, 1] % 8 == 0)]
    features = torch.cat([cells[:, 1:] / 16, torch.ones(len(cells), 1)], 1)
    labels = (cells[:, 3] >= 3) * 2 + (cells[:, 2] > 8)
    return cells.to(device), features.to(device), labels.long().to(device)


def train(net: torch.nn.Module, device: torch.device, dtype: torch.dtype | None) -> list[float]:
    cells, features, labels = scene(device)
    net = net.to(device).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype, enabled=dtype is not None):
            scores = net(features, cells, [16, 16, 16], 2)
            loss = torch.nn.functional.cross_entropy(scores.float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


def test_it_trains(network: torch.nn.Module, device: torch.device) -> None:
    losses = train(network, device, None)
    assert losses[-1] < 0.2 * losses[0]
    for name, parameter in network.named_parameters():
        assert parameter.grad.shape == parameter.shape, name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_it_trains_in_mixed_precision(
    network: torch.nn.Module, device: torch.device, dtype: torch.dtype
) -> None:
    if device.type == "cpu" and dtype == torch.float16:
        pytest.skip("in half precision it trains on a GPU; the CPU trains in bfloat16")
    losses = train(network, device, dtype)
    assert losses[-1] < 0.2 * losses[0]


def test_evaluation_gives_what_training_left(network: torch.nn.Module, device: torch.device) -> None:
    cells, features, _ = scene(device)
    network = network.to(device)
    network(features, cells, [16, 16, 16], 2)
    network.eval()
    with torch.no_grad():
        first = network(features, cells, [16, 16, 16], 2)
        again = importlib.import_module("spunet").SpUNet(4, 5).to(device).eval()
        again.load_state_dict(network.state_dict())
        # Rows belong to sites, in whatever order they are given.
        order = torch.randperm(len(cells), device=device)
        second = again(features[order], cells[order], [16, 16, 16], 2)
    torch.testing.assert_close(second, first[order], rtol=1e-4, atol=1e-4)
