"""Builders of MinkowskiEngine's networks that need more than a class and its arguments."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from made import OnRows, Row
from torch import nn


def res16unet_of_mask3d(module: ModuleType, row: Row) -> nn.Module:
    config = SimpleNamespace(bn_momentum=0.02, conv1_kernel_size=5, dilations=[1, 1, 1, 1])
    return getattr(module, row["class"])(3, 20, config)


def mos4d(module: ModuleType, row: Row) -> nn.Module:
    """4DMOS on two scans: cells are points of the first or second one, and times are a fifth coordinate."""

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        times = (torch.arange(len(cells), device=cells.device) % 2).float()[:, None]
        return net(torch.cat([cells.float(), times], 1))[:, 1:]  # its first column is -infinity on purpose

    return OnRows(module.MOS4DNet(1.0), call)


def mapmos(module: ModuleType, row: Row) -> nn.Module:
    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        times = -(torch.arange(len(cells), device=cells.device) % 2).float()[:, None]
        return net(torch.cat([cells.float(), times], 1), times.abs() * 5)

    return OnRows(module.MapMOSNet(1.0), call)


def minkloc3dv2(module: ModuleType, row: Row) -> nn.Module:
    settings = SimpleNamespace(
        model="MinkLoc", block="ECABasicBlock", feature_size=64, output_dim=64, num_top_down=2, conv0_kernel_size=5,
        layers=[1, 1, 1, 1], planes=[32, 32, 64, 64], pooling=row["pooling"], normalize_embeddings=True,
    )  # fmt: skip

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        return net({"coords": cells, "features": features})["global"]

    return OnRows(module.model_factory(settings), call)


def egonn(module: ModuleType, row: Row) -> nn.Module:
    quantizer = importlib.import_module("datasets.quantization").CartesianQuantizer(0.1)

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        out = net({"coords": cells, "features": features})
        return [out["global"], *out["descriptors"], *out["keypoints"], *out["sigma"]]

    return OnRows(module.model_factory(SimpleNamespace(model="egonn", quantizer=quantizer)), call)


def openscene(module: ModuleType, row: Row) -> nn.Module:
    return module.DisNet(SimpleNamespace(feature_2d_extractor="lseg", arch_3d="MinkUNet14A"))


def rise(module: ModuleType, row: Row) -> nn.Module:
    engine = importlib.import_module("MinkowskiEngine")

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        return net(engine.SparseTensor(features, cells), max_num_token=20, batch_size=2)[0]

    return OnRows(module.Sparse3DEncoder(6, 96), call)


def res16unet_of_slidr(module: ModuleType, row: Row) -> nn.Module:
    settings = {"normalize_features": True, "bn_momentum": 0.02, "kernel_size": 3}
    return getattr(module, row["class"])(3, 32, settings)


def fcaf3d_of_samsunglabs(module: ModuleType, row: Row) -> nn.Module:
    neck = importlib.import_module("mmdet3d.models.necks.me_fpn").MEFPN3D([64, 128, 256], 32, 1.0, n_outs=3)
    return nn.Sequential(module.MEResNet3D(3, 14, n_outs=3), neck)
