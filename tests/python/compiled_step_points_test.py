"""Compiled steps that are given points: voxels are made inside the graph, labels go with the points. On the CPU, on a
pretended device (pretended_step.py), and on a GPU."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pretended_step
import pytest
import torch
from compiled_step_test import CLASSES, expect_same_bits, state_of
from conftest import NO_GPU

import pumice
from pumice import Voxelizer, losses, nn

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
BOX = (-2.0, -3.0, -2.5, 3.0, 2.0, 2.5)
HOW = {
    "mean": Voxelizer(size=0.5, at_points=True),
    "range, max": Voxelizer(size=0.5, range=BOX, reduction="max", at_points=True),
    "shape, first": Voxelizer(size=0.25, spatial_shape=[20_000] * 3, reduction="first", at_points=True),
}


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pretended_step.use_counts(monkeypatch)
    yield


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        nn.SubMConv3d(4, 8, 3, bias=False), nn.BatchNorm(8), nn.ReLU(), nn.Conv3d(8, 8, 2, stride=2),
        nn.InverseConv3d(8, 8, 2, stride=2), nn.LayerNorm(8), nn.Linear(8, CLASSES),
    )  # fmt: skip


def cloud(seed: int, count: int, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    points = 5 * torch.rand(count, 4, generator=generator) - 2.5
    return points.to(device), torch.randint(-1, CLASSES, (count,), generator=generator).to(device)


def adam(net: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(net.parameters(), lr=2**-7, fused=True)


def by_hand(net: torch.nn.Module, optimizer: torch.optim.Optimizer, how: Voxelizer, points: Any, labels: Any, **more: Any) -> torch.Tensor:
    voxels = how(points, **more)
    loss = losses.cross_entropy(voxels.at_points(net(voxels.tensor)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


@pytest.mark.parametrize("compile_step", [pumice.compile_step, pretended_step.compile_step])
@pytest.mark.parametrize("name", HOW)
def test_curves_are_those_of_steps_by_hand(name: str, compile_step: Callable[..., Any]) -> None:
    net, how = network(), HOW[name]
    other = copy.deepcopy(net)
    step, optimizer = compile_step(net, losses.cross_entropy, adam(net), voxelize=how), adam(other)
    least = 100 if how.spatial_shape else 0  # norms of one voxel have no variance, and one point in eight is inside
    for turn in range(14):
        points, labels = cloud(turn, least + (400, 380, 390, 60, 33, 31, 370)[turn % 7])
        batch = torch.arange(len(points)) % 2
        expected = by_hand(other, optimizer, how, points, labels, batch=batch, batch_size=2)
        torch.testing.assert_close(step(points, labels, batch=batch, batch_size=2), expected, rtol=1e-3, atol=1e-4)
    for one, another in zip(state_of(net, step._training.optimizer), state_of(other, optimizer)):
        torch.testing.assert_close(one, another, rtol=1e-2, atol=2e-3)
    if compile_step is pretended_step.compile_step:
        assert step.recordings == 1


class WithTable(torch.nn.Module):
    """Scores of voxels, and a table of its own."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.body = network()
        self.table = torch.nn.Parameter(torch.ones(rows, 2))

    def forward(self, x: Any) -> Any:
        return self.body(x).features, self.table


@pytest.mark.parametrize("compile_step", [pumice.compile_step, pretended_step.compile_step])
def test_a_table_with_as_many_rows_as_there_are_voxels_is_not_moved_to_points(compile_step: Callable[..., Any]) -> None:
    how = HOW["mean"]
    seen = []

    def loss(output: Any, labels: torch.Tensor) -> torch.Tensor:
        scores, table = output
        seen.append(table.shape)
        return losses.cross_entropy(scores, labels) + table.square().sum() / 64

    loss.ignore_index = -1  # type: ignore[attr-defined]
    first = cloud(0, 300)
    net = WithTable(len(how(first[0])))
    other = copy.deepcopy(net)
    step, optimizer = compile_step(net, loss, adam(net), voxelize=how), adam(other)
    for given in (first, first, first, first, cloud(1, 200), first):
        voxels = how(given[0])
        scores, table = other(voxels.tensor)
        expected = loss((voxels.at_points(scores), table), given[1])
        optimizer.zero_grad()
        expected.backward()
        optimizer.step()
        torch.testing.assert_close(step(*given), expected.detach(), rtol=1e-3, atol=1e-4)
    assert set(seen) == {net.table.shape}
    for one, another in zip(state_of(net, step._training.optimizer), state_of(other, optimizer)):
        torch.testing.assert_close(one, another, rtol=1e-2, atol=2e-3)


def test_features_may_be_given_beside_points_and_models_go_back_themselves() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = network()

        def forward(self, voxels: Any) -> Any:
            return voxels.at_points(self.body(voxels.tensor))

    torch.manual_seed(0)
    net, how = Model(), Voxelizer(size=0.5)
    other = copy.deepcopy(net)
    step = pretended_step.compile_step(net, losses.cross_entropy, adam(net), voxelize=how, input=lambda voxels: voxels)
    optimizer = adam(other)
    for turn in range(8):
        points, labels = cloud(turn, 300 + turn)
        expected = by_hand(other.body, optimizer, how, points, labels, features=points * 2)
        torch.testing.assert_close(step(points, points * 2, labels), expected, rtol=1e-3, atol=1e-4)
    assert step.recordings == 1
    before = [tensor.clone() for tensor in state_of(net, step._training.optimizer)]
    assert step.plan(*cloud(1, 1500)) > 0
    expect_same_bits(state_of(net, step._training.optimizer), before)


def test_more_voxels_than_room_change_nothing() -> None:
    net = network()
    step = pretended_step.compile_step(net, losses.cross_entropy, adam(net), voxelize=HOW["mean"], max_voxels=250)
    few = [cloud(turn, 200) for turn in range(6)]
    for points, labels in few:
        assert step(points, labels).isfinite()
    before = [tensor.clone() for tensor in state_of(net, step._training.optimizer)]
    points, labels = cloud(9, 900)
    # The pretended device says so after the step, and not inside it.
    step._recorder.text = "voxels: rows: 500 needed, capacity 250"
    with pytest.raises(pumice.UserError, match="rows: 500 needed, capacity 250"):
        step(points, labels)
    expect_same_bits(state_of(net, step._training.optimizer), before)
    fresh = pretended_step.compile_step(network(), losses.cross_entropy, adam(network()), voxelize=HOW["mean"], max_voxels=250)
    with pytest.raises(pumice.UserError, match=r"\d+ voxels of 900 points, max_voxels = 250"):
        fresh(points, labels)
    net = network()
    other = copy.deepcopy(net)
    falling = pretended_step.compile_step(
        net, losses.cross_entropy, adam(net), voxelize=HOW["mean"], max_voxels=250, fallback="eager"
    )
    optimizer = adam(other)
    for points, labels in (cloud(9, 900), *few):
        torch.testing.assert_close(
            falling(points, labels), by_hand(other, optimizer, HOW["mean"], points, labels), rtol=1e-3, atol=1e-4
        )
    assert falling.recordings == 1


@cuda
@pytest.mark.parametrize("name", HOW)
def test_graphs_of_points_train_as_steps_by_hand_do(name: str) -> None:
    net, how = network().cuda(), HOW[name]
    other = copy.deepcopy(net)
    step, optimizer = pumice.compile_step(net, losses.cross_entropy, adam(net), voxelize=how), adam(other)
    for turn in range(40):
        points, labels = cloud(turn, 3000 + 61 * (turn % 5) - (2900 if turn % 9 == 8 else 0), "cuda")
        expected = by_hand(other, optimizer, how, points, labels, batch_size=1)
        torch.testing.assert_close(step(points, labels), expected, rtol=5e-2, atol=5e-2)
    step.wait()
    assert step._recorder._graphs >= 1 and int(step.exceeded) == 0


@cuda
def test_a_step_with_more_voxels_than_room_changes_nothing() -> None:
    net, how = network().cuda(), Voxelizer(size=0.5, range=[-20, -20, -20, 20, 20, 20], at_points=True)
    step = pumice.compile_step(net, losses.cross_entropy, adam(net), voxelize=how)
    for turn in range(5):
        points, labels = cloud(turn, 4000, "cuda")
        points[:, :3] *= 0.5
        step(points, labels)
    step.wait()
    before = [tensor.clone() for tensor in state_of(net, step._training.optimizer)]
    points, labels = cloud(9, 4000, "cuda")
    points[:, :3] *= 4
    assert step(points, labels).isnan()
    with pytest.raises(pumice.UserError, match=r"rows: \d+ needed, capacity \d+"):
        step.wait()
    expect_same_bits(state_of(net, step._training.optimizer), before)
    points[:, :3] *= 0.1
    assert step(points, labels).isfinite()
