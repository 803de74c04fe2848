"""Training as a whole: mixed precision learns what float32 learns, and thousands of steps hold no
more memory than a few."""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator

import pytest
import torch
from conftest import random_sites

import pumice
from pumice import _C, nn

CLASSES = 4


def net_of(device: torch.device) -> torch.nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.SubMConv3d(3, 16, 3, bias=False),
        nn.BatchNorm(16),
        nn.ReLU(),
        nn.Conv3d(16, 16, 2, stride=2, bias=False, outputs="cell"),
        nn.BatchNorm(16),
        nn.ReLU(),
        nn.InverseConv3d(16, 16, 2, stride=2, bias=False),
        nn.Residual(nn.Sequential(nn.SubMConv3d(16, 16, 3, bias=False), nn.BatchNorm(16))),
        nn.Linear(16, CLASSES),
    ).to(device)


def scene(seed: int, device: torch.device, sites: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sites whose class is the octant of a slanted grid that they lie in: cells, features, labels."""
    cells = random_sites(3, 16, sites, batch=2, seed=seed)
    features = cells[:, 1:].float() / 8 - 1
    slanted = features @ torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.5, 0.0, 1.0]])
    labels = (slanted[:, 0] > 0).long() + 2 * (slanted[:, 1] > 0).long()
    return cells.to(device), features.to(device), labels.to(device)


class Training:
    """SGD on a few scenes, in float32 or in mixed precision."""

    def __init__(
        self, device: torch.device, dtype: torch.dtype | None, scenes: int = 5, sites: int = 600
    ) -> None:
        self.net = net_of(device)
        self.device = device
        self.dtype = dtype
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
        self.scenes = [scene(seed, device, sites) for seed in range(scenes)]

    def step(self, index: int) -> torch.Tensor:
        cells, features, labels = self.scenes[index % len(self.scenes)]
        x = pumice.SparseTensor(cells, features, spatial_shape=[16] * 3, batch_size=2)
        enabled = self.dtype is not None
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=enabled):
            loss = torch.nn.functional.cross_entropy(self.net(x).features.float(), labels)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Steps of microseconds: threads would wait for each other longer than they work."""
    before = torch.get_num_threads(), _C.threads()
    torch.set_num_threads(1)
    _C.set_threads(1)
    yield
    torch.set_num_threads(before[0])
    _C.set_threads(before[1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_mixed_precision_learns_as_float32_does(
    device: torch.device, dtype: torch.dtype, one_thread: None
) -> None:
    """The two curves over 200 steps, smoothed over ten, stay within noise of each other: what a
    float32 run differs by from one with weights that a rounding of them to `dtype` moved."""
    steps = 200

    def curve(training: Training) -> torch.Tensor:
        losses = torch.stack([training.step(index) for index in range(steps)]).cpu()
        return losses.reshape(-1, 10).mean(1)

    exact = curve(Training(device, None))
    moved = Training(device, None)
    with torch.no_grad():
        for parameter in moved.net.parameters():
            parameter.copy_(parameter.to(dtype).float())
    noise = (curve(moved) - exact).abs().max().item()
    mixed = curve(Training(device, dtype))
    assert exact[-1] < 0.5 * exact[0], "it learns nothing, so that the test tells nothing"
    # Gradients are rounded at every step, weights were once: a few times as much.
    assert (mixed - exact).abs().max().item() <= 4 * noise + 0.02, (mixed, exact, noise)


def test_ten_thousand_steps_hold_no_more_memory(device: torch.device, one_thread: None) -> None:
    training = Training(device, None, scenes=1, sites=60)

    def held() -> int:
        gc.collect()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            return torch.cuda.memory_allocated(device)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    for index in range(500):
        training.step(index)
    before = held()
    for index in range(10_000):
        training.step(index)
    # Sites and maps of a step take some 20 KB: kept, they would be 200 MB.
    assert held() - before <= 8 << 20
