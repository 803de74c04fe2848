"""What is handed to Rerun, by a module in its place that remembers it; and Rerun itself where it is."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import numpy as np
import pytest
import torch
from conftest import random_tensor

import pumice


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, dict[str, Any]]]:
    """(path, what, options) of every call of rerun.log."""
    calls: list[tuple[str, Any, dict[str, Any]]] = []
    fake = types.ModuleType("rerun")
    fake.Points3D = lambda positions, **options: ("points", positions, options)
    fake.AnnotationContext = lambda classes: ("classes", classes)
    fake.log = lambda path, what, **options: calls.append((path, what, options))
    monkeypatch.setitem(sys.modules, "rerun", fake)
    return calls


def test_a_cloud_with_its_labels(logged: list) -> None:
    cloud = pumice.simulate(seed=1, beams=32)
    pumice.view.log_rerun("scan", cloud, names={1: "road", 4: "car"})
    (path, classes, options), (second, (kind, positions, shown), _) = logged
    assert path == second == "scan" and options["static"] is True and kind == "points"
    assert classes == ("classes", [(1, "road"), (4, "car")])
    assert np.array_equal(positions, cloud.positions)
    assert np.array_equal(shown["class_ids"], cloud.labels) and shown["class_ids"].dtype == np.uint16
    assert shown["colors"] is None and shown["radii"] is None


def test_positions_and_colours(logged: list, device: torch.device) -> None:
    points, colors = torch.randn(5, 4, device=device), torch.rand(5, 3, device=device)
    pumice.view.log_rerun("a", points.requires_grad_(), colors=colors, radius=0.2, recording="mine")
    [(path, (_, positions, shown), options)] = logged
    assert path == "a" and options == {"recording": "mine"} and shown["radii"] == 0.2
    assert np.array_equal(positions, points.detach().cpu().numpy()[:, :3])
    assert np.array_equal(shown["colors"], colors.cpu().numpy()) and shown["class_ids"] is None


def test_cells_of_each_item_where_they_are(logged: list, device: torch.device) -> None:
    x = random_tensor(device=device, dtype=torch.float32)
    coarse = pumice.nn.Conv3d(4, 2, 2, stride=2).to(device)(x)
    labels = torch.arange(len(coarse), device=device)
    pumice.view.log_rerun("v", coarse, labels=labels, size=0.5, origin=[1, 0, -2])
    assert [path for path, *_ in logged] == ["v/0", "v/1"]
    cells = coarse.indices.cpu()
    for item, (_, (_, positions, shown), _) in enumerate(logged):
        mine = cells[:, 0] == item
        expected = (cells[mine, 1:] + 0.5) * 1.0 + torch.tensor([1.0, 0.0, -2.0])
        torch.testing.assert_close(torch.from_numpy(positions), expected)
        assert np.array_equal(shown["class_ids"], labels.cpu()[mine].numpy())
        assert shown["radii"] == 0.5


@pytest.mark.parametrize("tensors", [False, True])
def test_voxels(logged: list, tensors: bool) -> None:
    points = np.array([[0.1, 0.2, 0.3], [0.4, 0.2, 0.3], [2.6, 0.2, 0.3]], np.float32)
    voxels = pumice.voxelize(torch.from_numpy(points) if tensors else points, size=0.5)
    pumice.view.log_rerun("v", voxels, size=0.5, labels=np.arange(2))
    [(path, (_, positions, shown), _)] = logged
    assert path == "v" and shown["radii"] == 0.25 and shown["class_ids"].tolist() == [0, 1]
    np.testing.assert_allclose(positions, [[0.25, 0.25, 0.25], [2.75, 0.25, 0.25]])


def test_no_rows(logged: list) -> None:
    pumice.view.log_rerun("v", random_tensor(count=0))
    assert len(logged) == 1 and logged[0][1][1].shape == (0, 3)


@pytest.mark.parametrize(
    ("what", "options", "said"),
    [
        (np.zeros((3, 2)), {}, "3 or more"),
        (np.zeros((3, 3)), {"labels": np.zeros(2, int)}, "one for each of 3"),
        (np.zeros((3, 3)), {"labels": np.full(3, -1)}, "at least 0"),
        (np.zeros((3, 3)), {"labels": np.zeros(3)}, "integers"),
        (np.zeros((3, 3)), {"colors": np.zeros(3)}, "colors have shape"),
    ],
)
def test_what_is_refused(logged: list, what: Any, options: dict, said: str) -> None:
    with pytest.raises(pumice.UserError, match=said):
        pumice.view.log_rerun("a", what, **options)
    with pytest.raises(pumice.UserError, match="2 axes"):
        pumice.view.log_rerun("a", random_tensor(2))
    assert not logged


def test_without_it_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(ImportError, match="pip install rerun-sdk"):
        pumice.view.log_rerun("a", np.zeros((1, 3)))


def test_rerun_itself_takes_it(tmp_path: Any) -> None:
    if importlib.util.find_spec("rerun") is None:
        pytest.skip("rerun-sdk is not installed here")
    import rerun

    rerun.init("pumice_test", strict=True)
    rerun.save(str(tmp_path / "log.rrd"))
    cloud = pumice.simulate(seed=1, beams=32)
    pumice.view.log_rerun("scan", cloud, names=["none", "road"])
    pumice.view.log_rerun("voxels", random_tensor(), colors=np.zeros((len(random_tensor()), 3)))
    rerun.disconnect()
    assert (tmp_path / "log.rrd").stat().st_size > 100_000
