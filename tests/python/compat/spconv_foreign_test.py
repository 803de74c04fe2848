"""Networks of other projects, unmodified, from checkouts in the folder PUMICE_FOREIGN (OpenPCDet,
Pointcept). Of what those files import besides spconv, only what the networks need is stood in for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from conftest import random_sites
from standing_in import bare_package, by_name, checkout, stand_in


class Settings(dict):
    """A configuration whose entries are attributes too."""

    __getattr__ = dict.__getitem__


def voxels(device: torch.device, shape: list[int], count: int) -> torch.Tensor:
    cells = random_sites(3, max(shape), count).to(device)
    return cells[(cells[:, 1:] < torch.tensor(shape, device=device)).all(1)]


@pytest.fixture
def pcdet() -> Iterator[None]:
    folder = checkout("OpenPCDet")
    with by_name("spconv"):
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

    with by_name("spconv"):
        stand_in("torch_geometric")
        stand_in("torch_geometric.utils", scatter=None)
        stand_in("timm")
        stand_in("timm.layers", trunc_normal_=torch.nn.init.trunc_normal_)
        for name in ("pointcept", "pointcept.models", "pointcept.models.sparse_unet"):
            bare_package(name, folder)
        stand_in("pointcept.models.builder", MODELS=Registry())
        bare_package("pointcept.models.utils", folder)
        misc = importlib.import_module("pointcept.models.utils.misc")
        stand_in("pointcept.models.utils", offset2batch=misc.offset2batch)
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
