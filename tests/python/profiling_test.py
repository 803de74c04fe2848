"""What a network did, layer by layer."""

from __future__ import annotations

import pytest
import torch
from conftest import random_tensor, working_type

import pumice
from pumice import explain, models, nn


def test_minkunet(device: torch.device) -> None:
    x = random_tensor(extent=32, count=900, dtype=working_type(device), device=device)
    model = models.MinkUNet42(4, 7, (4, 4, 4, 5, 6, 6, 5, 4, 4)).to(device, x.dtype)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = model.explain(x)
    assert model.training
    assert all(torch.equal(v, before[n]) for n, v in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    convolutions = [layer for layer in found if "Conv" in layer.kind]
    assert sum(not layer.name.endswith("downsample.0") for layer in convolutions) == 42
    assert all(layer.ms > 0 for layer in found) and found.ms > 0
    assert found[0].name == "stem.0" and found[-1].name == "classifier.0"
    assert found[0].rows == len(x) and (found[0].channels_in, found[0].channels) == (4, 4)
    by_name = {layer.name: layer for layer in found}
    # A cell convolution joins every input once, and its inverse goes the same ways back.
    for level in range(1, 5):
        down, up = by_name[f"stage{level}.0.net.0"], by_name[f"up{5 - level}.0.net.0"]
        assert down.pairs == down.rows_in == up.pairs == up.rows
        # The way down makes the map, and the way up finds it.
        assert down.map_ms > 0 and up.map_ms == 0
    assert by_name["stem.0"].map_ms > 0 and by_name["stem.3"].map_ms == 0
    assert found.map_ms >= by_name["stem.0"].map_ms
    cells = {tuple(cell) for cell in x.indices.tolist()}
    pairs = sum(
        (b, i + di, j + dj, k + dk) in cells
        for b, i, j, k in cells
        for di in (-1, 0, 1) for dj in (-1, 0, 1) for dk in (-1, 0, 1)
    )  # fmt: skip
    assert by_name["stem.0"].pairs == pairs
    assert abs(by_name["stem.0"].gflop - 2e-9 * pairs * 16) < 1e-15
    assert all(bool(layer.plan) == bool(layer.reason) == ("Conv" in layer.kind) for layer in found)
    dataflow = "implicit_gemm/" if device.type == "cuda" else "fetch_on_demand/"
    assert by_name["stem.0"].plan.startswith(dataflow)
    lines = str(found).splitlines()
    assert by_name["stem.0"].plan in lines[1]
    assert len(lines) == len(found) + 2 + len(found.by_kind()) and "stage4.2.net.3" in str(found)


def test_sums_and_order() -> None:
    x = random_tensor(extent=32, count=900, dtype=torch.float32)
    found = models.MinkUNet42(4, 7, (4, 4, 4, 4, 4, 4, 4, 4, 4)).explain(x)
    kinds = found.by_kind()
    assert sum(kind.calls for kind in kinds.values()) == len(found)
    assert abs(sum(kind.ms for kind in kinds.values()) - found.ms) < 1e-9
    of_convolutions = [layer.gflop for layer in found if layer.kind == "SubMConv3d"]
    assert kinds["SubMConv3d"].calls == len(of_convolutions)
    assert abs(kinds["SubMConv3d"].gflop - sum(of_convolutions)) < 1e-12
    assert [kind.ms for kind in kinds.values()] == sorted((k.ms for k in kinds.values()), reverse=True)
    slowest = found.sorted_by("ms")
    assert len(slowest) == len(found) and slowest[0].ms == max(layer.ms for layer in found)
    with pytest.raises(pumice.UserError, match="column = 'name'"):
        found.sorted_by("name")


def test_ordinary_modules_and_no_rows(device: torch.device) -> None:
    x = random_tensor(count=0, dtype=torch.float32, device=device)
    model = nn.Sequential(nn.SubMConv3d(4, 2, 3), torch.nn.ReLU(), nn.Linear(2, 3)).to(device)
    found = explain(model, x)
    assert [layer.kind for layer in found] == ["SubMConv3d", "ReLU", "Linear"]
    assert found[0].pairs == 0 and found[-1].channels == 3


def test_the_plan_is_the_one_that_ran(device: torch.device) -> None:
    x = random_tensor(dtype=torch.float32, device=device)
    model = nn.Sequential(
        nn.SubMConv3d(4, 8, 3, dataflow="gather_gemm_scatter"), nn.SubMConv3d(8, 8, 1), nn.ReLU()
    ).to(device)
    forced, chosen, activation = explain(model, x)
    assert forced.plan.startswith("gather_gemm_scatter") and "asked for" in forced.reason
    assert not chosen.plan.startswith("gather_gemm_scatter") and chosen.plan
    assert (activation.plan, activation.reason) == ("", "")
    # Nothing is recorded outside of explain.
    model(x)
    assert pumice._C.recorded_plans() == []


def test_plans_of_all_convolutions_forget_products_of_sparse_matrices() -> None:
    graph = pumice.Graph(torch.tensor([[0, 1], [1, 0]]))
    pumice._C.record_plans(True)
    try:
        pumice.ops.spmm(graph, torch.ones(2, 3))
        assert pumice._C.recorded_plans_of_all() == []
        assert pumice._C.recorded_plans() == []
    finally:
        pumice._C.record_plans(False)


def test_a_network_of_points_and_voxels(device: torch.device) -> None:
    x = random_tensor(extent=48, count=300, dtype=torch.float32, device=device)
    model = models.SPVCNN(4, 5, cr=0.1).to(device)
    found = model.explain(x)
    points = model.explain(models.PointTensor(x.indices.float(), x.features))
    assert [layer.name for layer in points] == [layer.name for layer in found]
    assert [layer.pairs for layer in points] == [layer.pairs for layer in found]
    kinds = {layer.name: layer.kind for layer in found}
    assert kinds["point_transforms.2.0"] == "Linear" and kinds["classifier.0"] == "Linear"
    assert sum(bool(layer.plan) for layer in found) == sum("Conv" in kind for kind in kinds.values())
