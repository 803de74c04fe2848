"""Builders of OpenPCDet's and CenterPoint's networks, and of those that are written as theirs are."""

from __future__ import annotations

import importlib
import itertools
from types import ModuleType
from typing import Any

import numpy as np
import torch
from made import made_boxes, OnRows, Row, Settings
from torch import nn


def backbone_of_openpcdet(module: ModuleType, row: Row) -> nn.Module:
    grid = np.array([64, 64, 40])
    return getattr(module, row["class"])(Settings(), input_channels=5, grid_size=grid)


def unet_of_openpcdet(module: ModuleType, row: Row) -> nn.Module:
    settings = Settings(RETURN_ENCODED_TENSOR=False)
    return module.UNetV2(settings, 5, np.array([64, 64, 40]), [0.1, 0.1, 0.1], np.array([0.0, 0, 0, 6.4, 6.4, 4]))


# The configuration of a CenterPoint-like head for two classes.
HEAD = {
    "CLASS_NAMES_EACH_HEAD": [["a", "b"]], "SHARED_CONV_CHANNEL": 128, "KERNEL_SIZE_HEAD": 1,
    "USE_BIAS_BEFORE_NORM": True, "NUM_HM_CONV": 2,
    "SEPARATE_HEAD_CFG": Settings(
        HEAD_ORDER=["center", "center_z", "dim", "rot"],
        HEAD_DICT={
            name: {"out_channels": channels, "num_conv": 2}
            for name, channels in (("center", 2), ("center_z", 1), ("dim", 3), ("rot", 2))
        },
    ),
    "TARGET_ASSIGNER_CONFIG": Settings(
        FEATURE_MAP_STRIDE=8, NUM_MAX_OBJS=50, GAUSSIAN_OVERLAP=0.1, MIN_RADIUS=1
    ),
    "LOSS_CONFIG": Settings(LOSS_WEIGHTS={"cls_weight": 1.0, "loc_weight": 0.25, "code_weights": [1.0] * 8}),
    "POST_PROCESSING": Settings(POST_CENTER_LIMIT_RANGE=[0, 0, 0, 6.4, 6.4, 4]),
}  # fmt: skip


def boxes_of_openpcdet(cells: torch.Tensor) -> torch.Tensor:
    """[2, M, 8]: centres and sizes in metres, no angle, and classes from 1 on."""
    boxes = made_boxes(cells) * 0.1
    angle, kind = torch.zeros_like(boxes[:, :, :1]), torch.ones_like(boxes[:, :, :1])
    kind[:, 1::2] = 2
    return torch.cat([boxes, angle, kind], 2)


def detector_of_openpcdet(module: ModuleType, row: Row) -> nn.Module:
    """A backbone, what makes a dense map of it where the head is dense, and a head with targets and losses."""
    names = {"num_class": 2, "class_names": ["a", "b"], "grid_size": np.array([64, 64, 40])}
    region = {"point_cloud_range": np.array([0, 0, 0, 6.4, 6.4, 4.0]), "voxel_size": [0.1, 0.1, 0.1]}
    parts: list[nn.Module] = [backbone_of_openpcdet(module, row)]
    if row["head"] == "CenterHead":
        dense = "pcdet.models.backbones_2d"
        compression = importlib.import_module(f"{dense}.map_to_bev.height_compression").HeightCompression
        parts.append(compression(Settings(NUM_BEV_FEATURES=256)))
        bev = importlib.import_module(f"{dense}.base_bev_backbone").BaseBEVBackbone
        layers = Settings(
            LAYER_NUMS=[1], LAYER_STRIDES=[1], NUM_FILTERS=[64], UPSAMPLE_STRIDES=[1], NUM_UPSAMPLE_FILTERS=[128]
        )
        parts.append(bev(layers, 256))
    file = {"CenterHead": "center_head", "VoxelNeXtHead": "voxelnext_head"}[row["head"]]
    head = getattr(importlib.import_module(f"pcdet.models.dense_heads.{file}"), row["head"])
    parts.append(head(Settings(HEAD), 128, **names, **region, predict_boxes_when_training=False))

    def call(parts: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        given = {"voxel_features": features, "voxel_coords": cells, "batch_size": 2}
        given["gt_boxes"] = boxes_of_openpcdet(cells)
        for part in parts if training else parts[:-1]:
            given = part(given)
        if training:
            return parts[-1].get_loss()[0]
        if row["head"] == "CenterHead":
            return given["spatial_features_2d"]
        return given["encoded_spconv_tensor"].features

    return OnRows(nn.ModuleList(parts), call)


def focal_of_openpcdet(module: ModuleType, row: Row) -> nn.Module:
    """The backbone of focal convolutions, and the loss of which cells are in boxes."""
    net = module.VoxelBackBone8xFocal(Settings(), 5, np.array([64, 64, 40]), voxel_size=[0.1, 0.1, 0.1],
                                      point_cloud_range=[0, 0, 0, 6.4, 6.4, 4.0])  # fmt: skip

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        given = {"voxel_features": features, "voxel_coords": cells, "batch_size": 2}
        given["gt_boxes"] = boxes_of_openpcdet(cells)
        out = net(given)
        dense = out["encoded_spconv_tensor"].dense()
        return net.forward_ret_dict["loss_box_of_pts"] + dense.float().square().mean() if training else dense

    return OnRows(net, call)


def scn_of_centerpoint(module: ModuleType, row: Row) -> nn.Module:
    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        return net(features, cells, 2, [64, 64, 40])[0]

    return OnRows(getattr(module, row["class"])(num_input_features=5), call)


def centerpoint(module: ModuleType, row: Row) -> nn.Module:
    """The backbone with the project's head, and targets as its data pipeline makes them."""
    draw = importlib.import_module("det3d.core.utils.center_utils").draw_umich_gaussian
    heads = {"reg": (2, 2), "height": (1, 2), "dim": (3, 2), "rot": (2, 2)}
    head = importlib.import_module("det3d.models.bbox_heads.center_head").CenterHead(
        in_channels=256, tasks=[{"class_names": ["a", "b"]}], code_weights=[1.0] * 8, common_heads=heads
    )

    def call(parts: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        dense = parts[0](features, cells, 2, [64, 64, 40])[0]
        if not training:
            return dense
        boxes = boxes_of_openpcdet(cells).cpu()
        maps = np.zeros((2, 2, *dense.shape[2:]), np.float32)
        at = boxes[:, :, :2] / 0.8
        kinds = boxes[:, :, 7].long() - 1
        for item, number in itertools.product(range(2), range(boxes.shape[1])):
            draw(maps[item, kinds[item, number]], at[item, number].long().numpy(), 2)
        still = torch.zeros(*boxes.shape[:2], 2)
        turned = torch.tensor([0.0, 1.0]).expand_as(still)  # sine and cosine
        targets = [at - at.floor(), boxes[:, :, 2:3], boxes[:, :, 3:6].log(), still, turned]
        place = at.long()[:, :, 1] * dense.shape[3] + at.long()[:, :, 0]
        example = {
            "hm": torch.from_numpy(maps), "ind": place, "mask": torch.ones_like(kinds), "cat": kinds,
            "anno_box": torch.cat(targets, 2),
        }  # fmt: skip
        predicted = parts[1](dense)[0]
        example = {name: [value.to(cells.device)] for name, value in example.items()}
        return parts[1].loss(example, predicted, None)["loss"][0]

    return OnRows(nn.ModuleList([getattr(module, row["class"])(num_input_features=5), head]), call)


def largekernel_of_det3d(module: ModuleType, row: Row) -> nn.Module:
    named = {"num_input_features": 5, "kernel_sizes": [7, 5, 5, 3]}

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        return net(features, {}, cells, 2, [64, 64, 40])[0]

    return OnRows(getattr(module, row["class"])(**named), call)
