"""Builders of spconv's networks that need more than a class and its arguments."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

import torch
from made import heights, OnRows, Row, segmentation, Settings
from torch import nn
from torch.nn import functional


def ublock_of_softgroup(module: ModuleType, row: Row) -> nn.Module:
    norm = functools.partial(nn.BatchNorm1d, eps=1e-4, momentum=0.1)
    return module.UBlock([16, 32, 48], norm, 2, module.ResidualBlock)


def spunet_of_pointcept(module: ModuleType, row: Row) -> nn.Module:
    return module.SpUNetBase(6, 13, 16, (16, 32, 48, 64, 64, 48, 32, 16), (1,) * 8)


def segmentor_of_points(module: ModuleType, row: Row) -> nn.Module:
    """A Point Transformer V3 with a linear layer and a cross-entropy behind it."""

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor) -> Any:
        offset = torch.bincount(cells[:, 0]).cumsum(0)
        given = {"grid_coord": cells[:, 1:], "coord": cells[:, 1:].float(), "feat": features, "offset": offset}
        return net(given)["feat"]

    return segmentation(getattr(module, row["class"])(**row["named"]), call, row["head"])


def unet_of_pla(module: ModuleType, row: Row) -> nn.Module:
    settings = Settings(IN_CHANNEL=6, MID_CHANNEL=16, BLOCK_REPS=1, BLOCK_RESIDUAL=True, NUM_BLOCKS=4)

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        given = {"voxel_features": features, "voxel_coords": cells, "spatial_shape": [40, 40, 40], "batch_size": 2}
        return net(given)["backbone_3d_feats"]

    return OnRows(module.SparseUNetIndoor(settings), call)


def fsd_of_sst(module: ModuleType, row: Row) -> nn.Module:
    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        return net({"voxel_coors": cells, "voxel_feats": features})[0]["voxel_feats"]

    return OnRows(module.SimpleSparseUNet(5, [41, 64, 64]), call)


def spvcnn_of_2dpass(module: ModuleType, row: Row) -> nn.Module:
    """The network on points, with its own loss."""
    settings = {
        "model_params": {
            "input_dims": 4, "hiden_size": 16, "num_classes": 3, "scale_list": [2, 4, 8], "spatial_shape": [40, 40, 40],
        },
        "dataset_params": {"min_volume_space": [0] * 3, "max_volume_space": [40] * 3, "ignore_label": 9},
        "train_params": {},
    }  # fmt: skip

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        points = torch.cat([cells[:, 1:].float() + 0.5, features[:, :1]], 1)
        given = {"points": points, "batch_idx": cells[:, 0].long(), "labels": heights(cells), "batch_size": 2}
        out = net(given)
        return out["loss"] if training else out["logits"]

    return OnRows(module.get_model(settings), call)


def flow_of_trellis(module: ModuleType, row: Row) -> nn.Module:
    """The flow model of structured latents, trained to say the noise of a mixture, as the project trains it."""
    sparse = importlib.import_module("trellis.modules.sparse")
    net = module.SLatFlowModel(
        resolution=32, in_channels=8, model_channels=48, cond_channels=16, out_channels=8, num_blocks=2, num_heads=2,
        mlp_ratio=2, patch_size=2, num_io_res_blocks=2, io_block_channels=[32], use_fp16=False,
    )  # fmt: skip
    for parameter in net.parameters():  # zeros at the start would let no gradient through
        if not parameter.any():
            nn.init.normal_(parameter, std=0.02)

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        time = torch.tensor([0.3, 0.7], device=cells.device)
        at = time[cells[:, 0].long()][:, None]
        noise = torch.randn_like(features)
        latents = torch.sin(cells[:, 1:2].float() * torch.arange(1, 9, device=cells.device) / 8)
        mixed = sparse.SparseTensor(feats=(1 - at) * latents + at * noise, coords=cells)
        text = torch.linspace(-1, 1, 2 * 5 * 16, device=cells.device).reshape(2, 5, 16)
        out = net(mixed, time * 1000, text).feats
        return functional.mse_loss(out.float(), noise - latents) if training else out

    return OnRows(net, call)
