"""Builders of MinkowskiEngine's networks with the losses that their projects train them with."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from made import made_boxes, OnRows, Row
from torch import nn


def detector_of_mmdetection3d(module: ModuleType, row: Row) -> nn.Module:
    """A Minkowski backbone, the neck of the row if it has one, and a head with its losses."""
    registry = importlib.import_module("mmdet3d.registry").MODELS
    boxes_of = importlib.import_module("mmdet3d.structures.bbox_3d.depth_box3d").DepthInstance3DBoxes
    engine = importlib.import_module("MinkowskiEngine")
    parts = nn.ModuleList(registry.build(config) for config in row["parts"])
    for part in parts:
        part.init_weights()

    def call(parts: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        out: Any = engine.SparseTensor(features, cells)
        for part in parts:
            out = part(out)
        if not training:
            return list(out[:-1])  # without the points
        truth = [
            SimpleNamespace(
                bboxes_3d=boxes_of(boxes, box_dim=6, with_yaw=False, origin=(0.5, 0.5, 0.5)),
                labels_3d=torch.arange(len(boxes), device=boxes.device) % 2,
            )
            for boxes in made_boxes(cells)
        ]
        return sum(parts[-1].loss_by_feat(*out, truth, [{}, {}]).values())

    return OnRows(parts, call)


def generative_of_minkowski(module: ModuleType, row: Row) -> nn.Module:
    """CompletionNet, GenerativeNet and VAE of the examples, with the losses of their training loops."""
    engine = importlib.import_module("MinkowskiEngine")
    kind = getattr(module, row["class"])
    for name, value in row.get("smaller", {}).items():
        setattr(getattr(module, name.split(".")[0]), name.split(".")[1], value)
    entropy = nn.BCEWithLogitsLoss()

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        divergence: Any = 0.0
        ones = torch.ones(len(cells), 1, device=cells.device)
        if row["class"] == "VAE":
            given = engine.SparseTensor(ones, cells)
            out, targets, _, means, variances, _ = net(given, given.coordinate_map_key)
            spread = 1 + variances.F - means.F.pow(2) - variances.F.exp()
            divergence = -0.5 * spread.mean(1).mean()
        else:
            if row["class"] == "CompletionNet":
                part = cells[:, 1] < 16
                given = engine.SparseTensor(ones[part], cells[part])
            else:
                starts = torch.tensor([[0, 0, 0, 0], [1, 0, 0, 0]], dtype=torch.int32, device=cells.device)
                given = engine.SparseTensor(torch.eye(2, 8, device=cells.device), starts, tensor_stride=128)
            key, _ = given.coordinate_manager.insert_and_map(cells, string_id="target")
            out, targets, _ = net(given, key)
        losses = [entropy(level.F.float().squeeze(), target.float()) for level, target in zip(out, targets)]
        return divergence + sum(losses) / len(losses) if training else out[0].F

    return OnRows(kind(*row.get("arguments", [])), call)


def codec_of_pcgcv2(module: ModuleType, row: Row) -> nn.Module:
    """The whole model with the loss of its trainer: bits of the latents, and whether sites are where they were."""
    engine, loss = importlib.import_module("MinkowskiEngine"), importlib.import_module("loss")

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        x = engine.SparseTensor(torch.ones(len(cells), 1, device=cells.device), cells)
        out = net(x, training)
        entropies = [
            loss.get_bce(level, truth) / len(level)
            for level, truth in zip(out["out_cls_list"], out["ground_truth_list"])
        ]
        total = 10 * sum(entropies) + loss.get_bits(out["likelihood"]) / len(x)
        return total if training else out["out_cls_list"][0].F

    return OnRows(module.PCCModel(), call)


def trained_fcgf(module: ModuleType, row: Row) -> nn.Module:
    """Two views of a scene, a shift apart, and the contrastive loss of the project's trainer."""
    engine = importlib.import_module("MinkowskiEngine")
    trainer = importlib.import_module("lib.trainer").HardestContrastiveLossTrainer
    settings = SimpleNamespace(pos_thresh=0.1, neg_thresh=1.4)

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        ones = torch.ones(len(cells), 1, device=cells.device)
        one = net(engine.SparseTensor(ones, cells)).F
        if not training:
            return one
        moved = cells + torch.tensor([0, 1, 2, 3], dtype=torch.int32, device=cells.device)
        two = net(engine.SparseTensor(ones, moved)).F
        pairs = torch.arange(len(cells))[:, None].expand(-1, 2)
        counts = {"num_pos": 512, "num_hn_samples": 256}
        near, far = trainer.contrastive_hardest_negative_loss(settings, one, two, pairs, **counts)
        return near + far

    return OnRows(getattr(module, row["class"])(1, 16, conv1_kernel_size=5, normalize_feature=True, D=3), call)


def trained_mask3d(module: ModuleType, row: Row) -> nn.Module:
    """The whole network on segments, with the project's matcher and criterion: masks are the halves of each item."""
    engine = importlib.import_module("MinkowskiEngine")
    res16unet = importlib.import_module("models.res16unet")
    config = SimpleNamespace(bn_momentum=0.02, conv1_kernel_size=5, dilations=[1, 1, 1, 1])
    backbone = functools.partial(res16unet.Res16UNet18A, 3, 20, config, out_fpn=True)
    net = module.Mask3D(
        SimpleNamespace(backbone=backbone), hidden_dim=64, num_queries=10, num_heads=4, dim_feedforward=64,
        sample_sizes=[50, 100, 200, 400, 800], shared_decoder=True, num_classes=3, num_decoders=1, dropout=0.0,
        pre_norm=False, positional_encoding_type="fourier", non_parametric_queries=True, train_on_segments=True,
        normalize_pos_enc=True, use_level_embed=False, scatter_type="mean", hlevels=[0, 1, 2, 3],
        use_np_features=False, voxel_size=0.02, max_sample_size=False, random_queries=False, gauss_scale=1.0,
        random_query_both=False, random_normal=False,
    )  # fmt: skip
    matcher = importlib.import_module("models.matcher").HungarianMatcher(2.0, 5.0, 2.0, -1)
    criterion = importlib.import_module("models.criterion").SetCriterion(
        3, matcher, {}, 0.1, ["labels", "masks"], -1, 3.0, 0.75, -1
    )
    weights = {"loss_ce": 2.0, "loss_mask": 5.0, "loss_dice": 2.0}

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        segments, targets = [], []
        for item in range(2):
            blocks = torch.div(cells[cells[:, 0] == item][:, 1:], 8, rounding_mode="floor")
            named, segment = torch.unique(blocks, dim=0, return_inverse=True)
            halves = named[:, 0] < 2
            segments.append(segment)
            labels = torch.tensor([0, 1], device=cells.device)
            targets.append({"labels": labels, "segment_mask": torch.stack([halves, ~halves])})
        out = net[0](engine.SparseTensor(features, cells), segments, cells[:, 1:].float() * 0.02)
        if not training:
            return out["pred_logits"]
        losses = net[1](out, targets, "segment_mask")
        return sum(weights[name.rstrip("_0123456789")] * each for name, each in losses.items())

    return OnRows(nn.ModuleList([net, criterion]), call)


def sparse_pcgc(module: ModuleType, row: Row) -> nn.Module:
    """The eight stages of the lossless model, with the bits of its own loss."""
    engine = importlib.import_module("MinkowskiEngine")
    loss = importlib.import_module("loss")

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        x = engine.SparseTensor(torch.ones(len(cells), 1, device=cells.device), cells)
        total: Any = 0.0
        for out in net(x, training):
            for level, truth in zip(out["out_cls_list"], out["ground_truth_list"]):
                total = total + loss.get_bce(level, truth) / len(x)
        return total

    return OnRows(module.PCCModel(channels=8, stage=8, block_layers=1), call)
