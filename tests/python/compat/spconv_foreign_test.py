"""Networks of other projects, unmodified, from checkouts in the folder PUMICE_FOREIGN (OpenPCDet,
Pointcept). Of what those files import besides spconv, only what the networks need is stood in for.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import pytest
import torch
from conftest import random_sites
from standing_in import spconv_by_name


class Settings(dict):
    """A configuration whose entries are attributes too."""

    __getattr__ = dict.__getitem__


def checkout(name: str) -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("PUMICE_FOREIGN", ""))
    if not os.environ.get("PUMICE_FOREIGN") or not (folder / name).is_dir():
        pytest.skip(f"PUMICE_FOREIGN names no folder with a checkout of {name}")
    return folder / name


def bare_package(name: str, folder: pathlib.Path) -> None:
    """The package without what its __init__.py would import."""
    module = ModuleType(name)
    module.__path__ = [str(folder / name.replace(".", "/"))]
    sys.modules[name] = module


@contextmanager
def stand_ins(**modules: dict) -> Iterator[None]:
    added = []
    for name, content in modules.items():
        name = name.replace("__", ".")
        if name not in sys.modules:
            sys.modules[name] = ModuleType(name)
            sys.modules[name].__dict__.update(content)
            added.append(name)
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]


def voxels(device: torch.device, shape: list[int], count: int) -> torch.Tensor:
    cells = random_sites(3, max(shape), count).to(device)
    return cells[(cells[:, 1:] < torch.tensor(shape, device=device)).all(1)]


@pytest.fixture
def pcdet() -> Iterator[None]:
    folder = checkout("OpenPCDet")
    with spconv_by_name():
        for name in ("pcdet", "pcdet.utils", "pcdet.models", "pcdet.models.backbones_3d"):
            bare_package(name, folder)
        yield


BACKBONES = {
    "spconv_backbone": ["VoxelBackBone8x", "VoxelResBackBone8x"],
    "spconv_backbone_voxelnext": ["VoxelResBackBone8xVoxelNeXt"],
}


@pytest.mark.parametrize("file, name", [(f, n) for f, names in BACKBONES.items() for n in names])
def test_backbones_of_openpcdet(device: torch.device, pcdet: None, file: str, name: str) -> None:
    backbone = getattr(importlib.import_module(f"pcdet.models.backbones_3d.{file}"), name)
    grid = np.array([64, 64, 40])
    net = backbone(Settings(), input_channels=5, grid_size=grid).to(device)
    cells = voxels(device, [40, 64, 64], 3000)
    batch = {
        "voxel_features": torch.randn(len(cells), 5, device=device),
        "voxel_coords": cells,
        "batch_size": 2,
    }
    out = net(dict(batch))
    encoded = out["encoded_spconv_tensor"]
    encoded.features.square().mean().backward()
    if "VoxelNeXt" not in name:
        assert encoded.dense().shape == (2, 128, 2, 8, 8)
    else:
        assert encoded.spatial_shape == [8, 8]
        assert len(torch.unique(encoded.indices, dim=0)) == len(encoded.indices)
    assert all(parameter.grad is not None for parameter in net.parameters())
    utils = importlib.import_module("pcdet.utils.spconv_utils")
    keys = utils.find_all_spconv_keys(net)
    state = net.state_dict()
    assert keys and all(state[key].shape[0] % 16 == 0 for key in keys)
    net.eval()
    with torch.no_grad():  # rows belong to sites, in whatever order they come
        order = torch.randperm(len(cells), device=device)
        shuffled = {**batch, "voxel_features": batch["voxel_features"][order],
                    "voxel_coords": cells[order]}  # fmt: skip
        first, second = (net(dict(b))["encoded_spconv_tensor"].dense() for b in (batch, shuffled))
    torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-4)


def test_spunet_of_pointcept(device: torch.device) -> None:
    folder = checkout("Pointcept")

    class Registry:
        def register_module(self, name: str | None = None):
            return lambda kind: kind

    timm = {"trunc_normal_": torch.nn.init.trunc_normal_}
    with spconv_by_name(), stand_ins(
        torch_geometric={}, torch_geometric__utils={"scatter": None}, timm={}, timm__layers=timm
    ):
        for name in ("pointcept", "pointcept.models", "pointcept.models.sparse_unet"):
            bare_package(name, folder)
        builder = ModuleType("pointcept.models.builder")
        builder.MODELS = Registry()
        sys.modules["pointcept.models.builder"] = builder
        bare_package("pointcept.models.utils", folder)
        misc = importlib.import_module("pointcept.models.utils.misc")
        sys.modules["pointcept.models.utils"].offset2batch = misc.offset2batch
        file = importlib.import_module("pointcept.models.sparse_unet.spconv_unet_v1m1_base")
        net = file.SpUNetBase(6, 13, 16, (16, 32, 48, 64, 64, 48, 32, 16), (1,) * 8).to(device)
        cells = voxels(device, [40, 40, 40], 3000)
        cells = cells[cells[:, 0].argsort(stable=True)]
        batch = {
            "grid_coord": cells[:, 1:],
            "feat": torch.randn(len(cells), 6, device=device),
            "offset": torch.bincount(cells[:, 0]).cumsum(0),
        }
        scores = net(batch)
        assert scores.shape == (len(cells), 13)
        scores.square().mean().backward()
        assert all(parameter.grad is not None for parameter in net.parameters())
