"""Two GPUs in one process: networks and steps on the one that is not current, what is moved, and what is mixed."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from planned_test import lone_and_dense, passes, scan, unet

import pumice
from pumice import losses, nn

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two CUDA devices are here")
FIRST, SECOND = "cuda:0", "cuda:1"
GRID = {"batch_size": 2}


def scores(net: torch.nn.Module, given: tuple[Any, Any]) -> torch.Tensor:
    with torch.no_grad():
        return net(pumice.SparseTensor(*given, **GRID)).features


@pytest.fixture(autouse=True)
def first_is_current() -> Any:
    torch.cuda.set_device(0)
    yield
    assert torch.cuda.current_device() == 0  # nobody leaves another device current
    torch.cuda.set_device(0)


def test_layers_run_where_their_tensors_are_cuda() -> None:
    net = unet()
    given = scan(3000, 1)
    expected = scores(net, given)
    for place in (SECOND, FIRST, SECOND):
        made = scores(copy.deepcopy(net).to(place), tuple(part.to(place) for part in given))
        assert str(made.device) == place
        torch.testing.assert_close(made.cpu(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("eager", [False, True])
def test_a_compiled_model_runs_on_the_device_that_is_not_current_cuda(eager: bool) -> None:
    net = unet()
    made = {}
    for place in (FIRST, SECOND):
        fast = pumice.compile(copy.deepcopy(net).to(place), eager=eager)
        scans = [scan(4000 - 10 * seed, seed, place) for seed in range(4)]
        passes(fast, scans)
        made[place] = [fast(*given, **GRID).features.cpu() for given in scans]
        fast.wait()
        assert all(bucket.recorder.device == torch.device(place) for bucket in fast._buckets)
    for one, other in zip(made[FIRST], made[SECOND]):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_compiled_models_of_both_devices_take_turns_cuda() -> None:
    nets = {place: unet().to(place) for place in (FIRST, SECOND)}
    fast = {place: pumice.compile(net) for place, net in nets.items()}
    for turn in range(12):
        for place in (FIRST, SECOND):
            given = scan(3000 - 20 * turn, turn, place)
            torch.testing.assert_close(fast[place](*given, **GRID).features, scores(nets[place], given), rtol=1e-3, atol=1e-3)
    for one in fast.values():
        one.wait()


def test_a_scan_that_does_not_fit_is_told_by_its_own_device_cuda() -> None:
    """Trouble on one GPU is none of the other's."""
    fast = {place: pumice.compile(unet().to(place)) for place in (FIRST, SECOND)}
    lone, dense = lone_and_dense(64_000)
    grid = {"batch_size": 1, "spatial_shape": [400, 400, 400]}
    features = torch.randn(64_000, 4)
    for place, one in fast.items():
        for _ in range(4):
            one(lone.to(place), features.to(place), **grid)
    fast[SECOND](dense.to(SECOND), features.to(SECOND), **grid)
    torch.cuda.synchronize(SECOND)
    fast[FIRST](lone.to(FIRST), features.to(FIRST), **grid)
    fast[FIRST].wait()
    with pytest.raises(pumice.UserError, match="needed, capacity"):
        fast[SECOND].wait()


def test_a_model_that_was_moved_is_noticed_cuda() -> None:
    net = unet().to(FIRST)
    fast = pumice.compile(net)
    given = scan(3000, 2, FIRST)
    for _ in range(4):
        fast(*given, **GRID)
    net.to(SECOND)
    moved = tuple(part.to(SECOND) for part in given)
    for _ in range(4):
        made = fast(*moved, **GRID).features
    assert str(made.device) == SECOND
    torch.testing.assert_close(made, scores(net, moved), rtol=1e-3, atol=1e-3)


def test_what_lies_on_two_devices_is_refused_cuda() -> None:
    cells, features = scan(200, 3)
    with pytest.raises(pumice.UserError, match="cuda:"):
        pumice.SparseTensor(cells.to(FIRST), features.to(SECOND), **GRID)
    x = pumice.SparseTensor(cells.to(FIRST), features.to(FIRST), **GRID)
    with pytest.raises((pumice.UserError, RuntimeError), match="cuda:"):
        nn.SubMConv3d(4, 8, 3).to(SECOND)(x)


def test_two_threads_train_on_a_device_each_cuda() -> None:
    nets = [nn.Sequential(nn.SubMConv3d(4, 16, 3, bias=False), nn.BatchNorm(16), nn.ReLU(), nn.SubMConv3d(16, 5, 1)) for _ in range(2)]

    def work(number: int, place: str) -> list[float]:
        net = copy.deepcopy(nets[number]).to(place)
        step = pumice.compile_step(net, losses.cross_entropy, torch.optim.AdamW(net.parameters(), lr=1e-2, fused=True))
        found = []
        for turn in range(40):
            cells, features = scan(2000 - 10 * turn, turn, place)
            labels = features[:, 0].gt(0).long()
            found.append(float(step(cells, features, labels, **GRID)))
        step.wait()
        return found

    alone = [work(number, FIRST) for number in range(2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(work, range(2), (FIRST, SECOND)))
    for one, other in zip(alone, together):
        assert one == pytest.approx(other, rel=1e-4) and other[-1] < 0.7 * other[0]
