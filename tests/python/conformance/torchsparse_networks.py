"""Builders of TorchSparse's networks that need more than a class and its arguments."""

from __future__ import annotations

import ast
import importlib
import itertools
import pathlib
import random
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from made import batch_last, encoder_of_maps, heights, OnRows, Row, Settings
from torch import nn
from torch.nn import functional


def spvnas_sampled(module: ModuleType, row: Row) -> nn.Module:
    random.seed(0)
    net = module.SPVNAS(19, macro_depth_constraint=1, pres=0.05, vres=0.05)
    net.random_sample()
    return net.determinize()


def segmentor_of_spvnas(module: ModuleType, row: Row) -> nn.Module:
    """A network of SemanticKITTI's classes, trained on labels that it can see."""
    sparse = importlib.import_module("torchsparse").SparseTensor

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        out = net(sparse(features, cells))
        return functional.cross_entropy(out.float(), heights(cells)) if training else out

    return OnRows(getattr(module, row["class"])(**row["named"]), call)


def neuralrecon(module: ModuleType, row: Row) -> nn.Module:
    """The coarse-to-fine network with GRU fusion and its own loss: nine views of a ball, as image features."""
    settings = SimpleNamespace(
        THRESHOLDS=[0, 0, 0], VOXEL_SIZE=0.1, N_VOX=[24, 24, 24], N_LAYER=3, POS_WEIGHT=1.5,
        BACKBONE2D=SimpleNamespace(ARC="fpn-mnas-1"), FUSION=SimpleNamespace(FUSION_ON=True, FULL=True),
        SPARSEREG=SimpleNamespace(DROPOUT=False), TRAIN_NUM_SAMPLE=[4096, 16384, 65536],
    )  # fmt: skip
    scenes = itertools.count()

    def volume(scale: int, device: torch.device, radius: float) -> torch.Tensor:
        size, voxel = 24 >> scale, 0.1 * (1 << scale)
        axis = (torch.arange(size, device=device) + 0.5) * voxel - 1.2
        distance = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij")).norm(dim=0) - radius
        return (distance / (3 * voxel)).clamp(-1, 1)[None]

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        device, radius = cells.device, 0.5 + len(cells) % 7 * 0.05
        generator = torch.Generator().manual_seed(0)
        seen, projections = [], torch.zeros(1, 9, 3, 4, 4)
        for view in range(9):
            levels = []
            for scale, channels in enumerate((24, 40, 80)):
                size = 32 >> scale
                levels.append(torch.randn(1, channels, size, size, generator=generator).to(device))
                into = torch.eye(4)
                into[0, 0] = into[1, 1] = size * 0.8
                into[:2, 2] = size / 2
                pose = torch.eye(4)
                pose[:3, 3] = torch.tensor([-1.2 + 0.02 * view, -1.2, 1.5])
                projections[0, view, scale] = into @ pose
            seen.append(levels)
        fields = [volume(scale, device, radius) for scale in range(3)]
        scene = f"scene {next(scenes)}"  # a new one each time: a known one is fused with what was seen before
        given = {
            "proj_matrices": projections.to(device), "vol_origin": torch.zeros(1, 3, device=device),
            "vol_origin_partial": torch.zeros(1, 3, device=device), "fragment": [scene], "scene": [scene],
            "world_to_aligned_camera": torch.eye(4, device=device)[None], "tsdf_list": fields,
            "occ_list": [field.abs() < 1 for field in fields],
        }  # fmt: skip
        return sum(net(seen, given, {})[1].values())

    net = module.NeuConNet(settings)
    for level in net.occ_preds:  # so that finer levels have cells from the first step on
        nn.init.constant_(level.bias, 1.0)
    return OnRows(net, call)


def volume_network(module: ModuleType, row: Row) -> nn.Module:
    """A network of SparseNeuS or VisFusion on cells whose batch index is last, or on points."""
    torchsparse = importlib.import_module("torchsparse")
    kind = torchsparse.PointTensor if row["points"] else torchsparse.SparseTensor

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        rows = batch_last(cells)
        return net(kind(features, rows.float() if row["points"] else rows), *row.get("call", []))

    return OnRows(getattr(module, row["class"])(*row.get("arguments", []), **row.get("named", {})), call)


def segmentor_of_openpcseg(module: ModuleType, row: Row) -> nn.Module:
    """A network with its own loss, of cross-entropy and Lovasz."""
    torchsparse = importlib.import_module("torchsparse")
    settings = Settings(IN_FEATURE_DIM=4, IF_DIST=False, IGNORE_LABEL=9, INIT_SIZE=8, cr=0.5, BLOCK="ResBlock")
    settings.update(NUM_LAYER=[1] * 8, DROPOUT_P=0.0, MULTI_SCALE="concat")

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        rows, labels = batch_last(cells), heights(cells)
        numbers = torch.arange(len(rows), device=rows.device)
        ends = torch.bincount(rows[:, 3]).cumsum(0)
        inverse = torch.cat([numbers[rows[:, 3] == item] - int(numbers[rows[:, 3] == item][0]) for item in (0, 1)])
        given = {
            "lidar": torchsparse.SparseTensor(features, rows), "targets": torchsparse.SparseTensor(labels, rows),
            "targets_mapped": torchsparse.SparseTensor(labels, rows), "offset": ends, "name": ["a", "b"],
            "inverse_map": torchsparse.SparseTensor(inverse, rows), "num_points": torch.bincount(rows[:, 3]).tolist(),
            "point_feature": features, "point_coord": rows, "voxel_coord": rows, "point_label": labels,
            "voxel_label": labels,
        }  # fmt: skip
        if training:
            return net(given)[0]["loss"]
        logits = net(given)["point_predict_logits"]  # of NumPy, since the network writes files of them
        return [torch.from_numpy(np.asarray(each, dtype=np.float32)) for each in logits]

    return OnRows(getattr(module, row["class"])(settings, 3), call)


def minkunet_of_2dpass(module: ModuleType, row: Row) -> nn.Module:
    sizes = Settings(cr=0.5, layer_num=[32, 32, 64, 128, 256, 256, 128, 96, 96])
    sizes.update(voxel_size=1.0, num_class=3, input_dims=4)
    settings = Settings(model_params=sizes, dataset_params=Settings(ignore_label=9), train_params=Settings())
    sparse = importlib.import_module("torchsparse").SparseTensor

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        out = net({"lidar": sparse(features, batch_last(cells)), "sparse_label": heights(cells)})
        return out["loss"] if training else out["sparse_logits"]

    return OnRows(module.get_model(settings), call)


def encoder_of_plugin(module: ModuleType, row: Row) -> nn.Module:
    """TorchSparse's replacement of mmdetection3d's encoder; its layers are registered as the plugin registers them."""
    layers = importlib.import_module("torchsparse.nn")
    registry = importlib.import_module("mmdet3d.registry").MODELS
    registry.kinds.update(TorchSparseConv3d=layers.Conv3d, TorchSparseBatchNorm=layers.BatchNorm)
    return encoder_of_maps(module, row)


def example_of_torchsparse(module: ModuleType, row: Row) -> nn.Module:
    """The model that examples/example.py writes in its main program, trained on labels that it can see."""
    source = pathlib.Path(module.__file__ or "").read_text(encoding="utf-8")
    written = [
        node.value.func.value  # without its .to(args.device)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "model"
        and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)
    ]  # fmt: skip
    model = eval(compile(ast.Expression(written[0]), "example.py", "eval"), vars(module))
    torchsparse = importlib.import_module("torchsparse")
    collate = importlib.import_module("torchsparse.utils.collate").sparse_collate_fn

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        items = []
        for item in (0, 1):
            mine = cells[:, 0] == item
            given = torchsparse.SparseTensor(features[mine], cells[mine][:, 1:])
            label = torchsparse.SparseTensor(heights(cells[mine]), cells[mine][:, 1:])
            items.append({"input": given, "label": label})
        batch = collate(items)
        out = net(batch["input"].to(cells.device)).feats
        return functional.cross_entropy(out.float(), batch["label"].feats.to(cells.device)) if training else out

    return OnRows(model, call)
