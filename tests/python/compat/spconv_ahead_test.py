"""Sites of strided layers are made before these are called, as they followed each other in the last pass: the same
results, each map made once, and nothing made for long that is not asked for."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from conftest import working_type
from deferred_networks import agree
from deferred_programs import CHANNELS, scene

import pumice
import pumice.compat.spconv as spconv
from pumice import ops

nn = torch.nn
EXTENT = 12


class Net(nn.Module):
    """Down twice and up again, with a norm behind each convolution; `levels`: how far."""

    def __init__(self, levels: int = 2) -> None:
        super().__init__()
        self.levels = levels
        self.stem = spconv.SubMConv3d(CHANNELS, CHANNELS, 3, bias=False, indice_key="0")
        self.down = nn.ModuleList(
            [spconv.SparseConv3d(CHANNELS, CHANNELS, 2, 2, bias=False, indice_key=f"d{at}") for at in range(2)]
        )
        self.up = nn.ModuleList(
            [spconv.SparseInverseConv3d(CHANNELS, CHANNELS, 2, bias=False, indice_key=f"d{at}") for at in range(2)]
        )
        self.again = spconv.SparseConv3d(CHANNELS, CHANNELS, 3, 2, 1, bias=False, indice_key="again")
        self.calls: list[str] = []

    def forward(self, x: Any) -> Any:
        self.calls.append("stem")
        x = self.stem(x)
        for at in range(self.levels):
            self.calls.append("down")
            x = self.down[at](x)
        for at in reversed(range(self.levels)):
            x = self.up[at](x)
        self.calls.append("again")
        return self.again(x)


def tensor(seed: int, device: torch.device) -> spconv.SparseConvTensor:
    cells, features = scene(seed)
    cells[:, 1:] %= EXTENT
    cells = torch.unique(cells, dim=0)
    rows = features[: len(cells)].to(device, working_type(device))
    return spconv.SparseConvTensor(rows, cells.to(device), [EXTENT] * 3, 2)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sites of which strided maps were asked for, with their windows, and calls of layers of `Net.calls`."""
    log: list[Any] = []
    strided = ops.strided_map

    def logged(coords: Any, window: Any, cell: bool) -> Any:
        log.append((len(coords), tuple(window.numbers)))
        return strided(coords, window, cell)

    monkeypatch.setattr(ops, "strided_map", logged)
    return log


@pytest.mark.parametrize("training", [False, True])
def test_the_second_pass_makes_them_before_and_gives_the_same(
    device: torch.device, made: list[Any], training: bool
) -> None:
    net = Net().to(device, working_type(device)).train(training)
    fresh = copy.deepcopy(net)
    for seed in (1, 2, 3):
        made.clear()
        net.calls = made
        y = net(tensor(seed, device))
        z = copy.deepcopy(fresh)(tensor(seed, device))  # its first pass
        assert torch.equal(y.indices, z.indices)
        if device.type == "cuda":
            torch.testing.assert_close(y.features, z.features, rtol=1e-4, atol=1e-5)
        else:
            agree(y.features, z.features)
        calls = made[: made.index("again") + 2]
        if seed == 1:
            assert [type(call) for call in calls] == [str, str, tuple, str, tuple, str, tuple]
        else:
            # Of the finest level two maps lead on, so three are made at the first layer; each is then found once.
            assert [type(call) for call in calls] == [str, tuple, tuple, tuple, str, tuple, str, tuple, str, tuple]
            assert set(calls[1:4]) == {calls[5], calls[7], calls[9]}


def test_a_changed_path_is_learnt_again(made: list[Any]) -> None:
    net = Net().double()
    cpu = torch.device("cpu")
    for _ in range(2):
        net(tensor(1, cpu))
    net.levels = 0
    counts = []
    for seed in (2, 3, 4):
        made.clear()
        net(tensor(seed, cpu))
        counts.append(len(made))
    assert counts == [4, 2, 2]  # three in advance and the one that is asked for; then one of each
    net.levels = 2
    for seed in (5, 6):
        net(tensor(seed, cpu))
    made.clear()
    net(tensor(7, cpu))
    assert len(made) == 6


def test_copies_and_files_start_anew(made: list[Any]) -> None:
    net = Net().double()
    cpu = torch.device("cpu")
    for _ in range(2):
        net(tensor(1, cpu))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        made.clear()
        agree(other(tensor(2, cpu)).features, net(tensor(2, cpu)).features)
        assert len(made) == 3 + 6
    x = tensor(3, cpu)
    y = net(x)
    for other in (pickle.loads(pickle.dumps(y)), copy.copy(y)):
        agree(other.features, y.features)


def test_a_grid_that_became_too_small_is_refused_by_its_layer(made: list[Any]) -> None:
    net = Net().double()
    cpu = torch.device("cpu")
    for _ in range(2):
        net(tensor(1, cpu))
    cells = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 1]], dtype=torch.int32)
    x = spconv.SparseConvTensor(torch.randn(2, CHANNELS, dtype=torch.float64), cells, [2, 2, 2], 1)
    made.clear()
    with pytest.raises(pumice.UserError, match="the window spans 2"):
        net(x)
    assert net(tensor(2, cpu)).features.isfinite().all()


def test_no_rows_lead_to_no_rows(device: torch.device) -> None:
    net = Net().to(device, working_type(device)).eval()
    for _ in range(2):
        net(tensor(1, device))
    none = torch.zeros(0, 4, dtype=torch.int32, device=device)
    rows = torch.zeros(0, CHANNELS, dtype=working_type(device), device=device)
    x = spconv.SparseConvTensor(rows, none, [EXTENT] * 3, 2)
    assert net(x).features.shape == (0, CHANNELS)
