"""Sites of strided layers are made before these are called, as the last pass asked for them: the same results, and the
same errors. (How often a pass waits: emulated_passes.py.)"""

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

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for at in range(self.levels):
            x = self.down[at](x)
        for at in reversed(range(self.levels)):
            x = self.up[at](x)
        return self.again(x)


def tensor(seed: int, device: torch.device) -> spconv.SparseConvTensor:
    cells, features = scene(seed)
    cells[:, 1:] %= EXTENT
    cells = torch.unique(cells, dim=0)
    rows = features[: len(cells)].to(device, working_type(device))
    return spconv.SparseConvTensor(rows, cells.to(device), [EXTENT] * 3, 2)


@pytest.mark.parametrize("training", [False, True])
def test_later_passes_give_what_a_first_pass_gives(device: torch.device, training: bool) -> None:
    net = Net().to(device, working_type(device)).train(training)
    fresh = copy.deepcopy(net)
    for seed, levels in ((1, 2), (2, 2), (3, 0), (4, 2), (5, 1)):  # on other paths too
        net.levels = levels
        y = net(tensor(seed, device))
        first = copy.deepcopy(fresh)
        first.levels = levels
        z = first(tensor(seed, device))
        assert torch.equal(y.indices, z.indices)
        if device.type == "cuda":
            torch.testing.assert_close(y.features, z.features, rtol=1e-4, atol=1e-5)
        else:
            agree(y.features, z.features)


def test_copies_and_files_of_networks_and_tensors_work() -> None:
    device = torch.device("cpu")
    net = Net().double().eval()
    for _ in range(2):
        net(tensor(1, device))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        agree(other(tensor(2, device)).features, net(tensor(2, device)).features)
    y = net(tensor(3, device))
    for same in (pickle.loads(pickle.dumps(y)), copy.copy(y)):
        agree(same.features, y.features)


def test_a_grid_that_became_too_small_is_refused_by_its_layer(device: torch.device) -> None:
    net = Net().to(device, working_type(device))
    for _ in range(2):
        net(tensor(1, device))
    cells = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 1]], dtype=torch.int32, device=device)
    x = spconv.SparseConvTensor(torch.randn(2, CHANNELS, dtype=working_type(device), device=device), cells, [2, 2, 2], 1)
    with pytest.raises(pumice.UserError, match="the window spans 2"):
        net(x)
    assert net(tensor(2, device)).features.isfinite().all()


def test_no_rows_lead_to_no_rows(device: torch.device) -> None:
    net = Net().to(device, working_type(device)).eval()
    for _ in range(2):
        net(tensor(1, device))
    none = torch.zeros(0, 4, dtype=torch.int32, device=device)
    rows = torch.zeros(0, CHANNELS, dtype=working_type(device), device=device)
    x = spconv.SparseConvTensor(rows, none, [EXTENT] * 3, 2)
    assert net(x).features.shape == (0, CHANNELS)
