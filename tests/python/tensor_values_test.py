"""What people expect of a tensor: arithmetic, types, masks, files, notebooks."""

from __future__ import annotations

import io
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import random_tensor

import pumice
from pumice import models


@pytest.fixture
def x(device: torch.device) -> pumice.SparseTensor:
    return random_tensor(dtype=torch.float32, device=device)


def test_shape_and_types(x: pumice.SparseTensor) -> None:
    assert x.shape == x.features.shape and isinstance(x.shape, torch.Size)
    assert x.requires_grad and not x.detach().requires_grad
    assert x.detach().requires_grad_().features.is_leaf
    for name, dtype in (
        ("half", torch.float16), ("bfloat16", torch.bfloat16), ("float", torch.float32), ("double", torch.float64)
    ):  # fmt: skip
        y = getattr(x, name)()
        assert y.dtype == dtype and y.coords is x.coords
    assert x.float() is x


def test_arithmetic(x: pumice.SparseTensor) -> None:
    y = x.replace(features=x.features.detach().exp())
    a, b = x.features, y.features
    gate = torch.rand(len(x), 1, device=x.device)
    for result, expected in (
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (-x, -a), (x * 2, a * 2), (2 * x, a * 2),
        (x / 4, a / 4), (np.float32(2) * x, a * 2), (x * gate, a * gate), (gate * x, a * gate),
        (x * torch.arange(4.0, device=x.device), a * torch.arange(4.0, device=x.device)),
    ):  # fmt: skip
        assert result.coords is x.coords and torch.equal(result.features, expected)
    (x * y - x / 2).features.sum().backward()
    torch.testing.assert_close(x.features.grad, b - 0.5)


def test_what_has_no_meaning_is_refused(x: pumice.SparseTensor) -> None:
    other = random_tensor(seed=1, dtype=torch.float32, device=x.device)
    for call in (
        lambda: x - other, lambda: x * other, lambda: x - 1, lambda: x + x.features, lambda: x[0], lambda: x[:2],
        lambda: x[torch.ones(3, dtype=torch.bool)], lambda: x * torch.ones(2, len(x), 4, device=x.device),
    ):  # fmt: skip
        with pytest.raises(pumice.UserError):
            call()


def test_masks(x: pumice.SparseTensor) -> None:
    keep = x.features[:, 0] > 0
    y = x[keep]
    assert torch.equal(y.indices, x.indices[keep]) and torch.equal(y.features, x.features[keep])


def test_arrays(x: pumice.SparseTensor) -> None:
    indices, features = x.numpy()
    assert indices.dtype == np.int32 and np.array_equal(indices, x.indices.cpu())
    assert np.array_equal(features, x.features.detach().cpu())
    assert x.bfloat16().numpy()[1].dtype == np.float32


def test_in_a_notebook(x: pumice.SparseTensor) -> None:
    shown = x._repr_html_()
    assert "<table>" in shown and f"{len(x)}" in shown and "float32" in shown


def test_files_of_torch_save(x: pumice.SparseTensor) -> None:
    x = x.detach()
    file = io.BytesIO()
    torch.save({"x": x, "y": [x * 2], "sites": x.coords}, file)
    file.seek(0)
    back = torch.load(file)  # weights only, by default
    assert torch.equal(back["x"].features, x.features) and torch.equal(back["x"].indices, x.indices)
    assert back["y"][0].coords is back["x"].coords is back["sites"]
    assert back["x"].spatial_shape == x.spatial_shape and back["x"].batch_size == x.batch_size


def test_more_types_in_files() -> None:
    voxels = pumice.voxelize(torch.rand(20, 4), size=0.3)
    points = models.PointTensor(torch.rand(5, 4), torch.rand(5, 3))
    window = pumice.nn.Conv3d(1, 1, 2, 2).window
    file = io.BytesIO()
    torch.save([voxels, points, window], file)
    file.seek(0)
    voxels_back, points_back, window_back = torch.load(file)
    assert torch.equal(voxels_back.point_to_voxel, voxels.point_to_voxel)
    assert torch.equal(points_back.positions, points.positions) and window_back == window


def test_files_in_a_process_that_makes_no_tensor(tmp_path: pathlib.Path) -> None:
    torch.save(random_tensor().detach(), tmp_path / "x.pt")
    script = f"import torch, pumice.tensor; print(torch.load({str(tmp_path / 'x.pt')!r}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout.startswith("SparseTensor("), run.stderr


def test_pickles_of_every_protocol() -> None:
    x = random_tensor().detach()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(x, protocol))
        assert torch.equal(back.features, x.features) and type(back) is pumice.SparseTensor


def test_a_trained_network_prints_in_a_line() -> None:
    assert len(repr(models.pretrained("streets"))) < 200
