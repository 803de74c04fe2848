"""Packages that a network imports and that are not here: registries that return what they are given,
and names that fail when they are used, except for the few functions a network computes with.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import absent_openmmlab
import torch


def scatter_mean(values: torch.Tensor, index: torch.Tensor, dim: int = 0) -> torch.Tensor:
    index = index.reshape(-1)  # [N], or [N, 1]
    rows = int(index.max()) + 1
    out = values.new_zeros(rows, *values.shape[1:]).index_add(dim, index, values)
    return out / torch.bincount(index, minlength=rows).clamp(min=1)[:, None]


def scatter_max(values: torch.Tensor, index: torch.Tensor, dim: int = 0) -> tuple[torch.Tensor, None]:
    """torch_scatter's along axis 0, without the rows that the maxima come from."""
    rows = int(index.max()) + 1
    at = index.reshape(-1, 1).expand_as(values).long()
    return values.new_zeros(rows, values.shape[1]).scatter_reduce(0, at, values, "amax", include_self=False), None


def scatter(
    values: torch.Tensor, index: torch.Tensor, dim: int = 0, reduce: str = "sum"
) -> torch.Tensor:
    """torch_geometric.utils.scatter along axis 0."""
    if reduce == "mean":
        return scatter_mean(values, index)
    rows = int(index.max()) + 1
    return values.new_zeros(rows, *values.shape[1:]).index_add(0, index, values)


def voxel_grid(
    pos: torch.Tensor, size: Any, batch: torch.Tensor | None = None, start: Any = None, end: Any = None
) -> torch.Tensor:
    """torch_geometric's: a number of each point's voxel, in which items of a batch lie apart."""
    low = pos.amin(0) if start is None else torch.as_tensor(start, device=pos.device)
    cells = ((pos - low) / size).floor().long()
    if batch is not None:
        cells = torch.cat([batch.reshape(-1, 1).long(), cells], 1)
    extent = cells.amax(0) + 1
    number = torch.zeros_like(cells[:, 0])
    for axis in range(cells.shape[1]):
        number = number * extent[axis] + cells[:, axis]
    return number


class LightningBaseModel(torch.nn.Module):
    """2DPASS's base without Lightning's trainer, which nobody runs here: it keeps no settings for it."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def save_hyperparameters(self) -> None:
        return None


class GrowingSequential(torch.nn.Sequential):
    """det3d's, which layers are added to."""

    def add(self, module: torch.nn.Module) -> None:
        self.append(module)


def segment_csr(values: torch.Tensor, ends: torch.Tensor, reduce: str = "sum") -> torch.Tensor:
    """torch_scatter's, of rows: segment i lies from ends[i] to ends[i + 1]."""
    return torch.segment_reduce(values.float(), reduce, offsets=ends).to(values.dtype)


class DropPath(torch.nn.Module):
    """timm's: leaves out the whole branch of some rows in training."""

    def __init__(self, drop_prob: float = 0.0) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or not self.drop_prob:
            return x
        keep = torch.rand(len(x), *[1] * (x.dim() - 1), device=x.device) >= self.drop_prob
        return x * keep / (1 - self.drop_prob)


class Dict(dict[str, Any]):
    """addict's: entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]

    __setattr__ = dict.__setitem__


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """[..., L, heads, C] each."""
    q, k, v = (rows.transpose(-2, -3) for rows in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(-2, -3)


def attention_in_sequences(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_ends: torch.Tensor, kv_ends: torch.Tensor, *_: int
) -> torch.Tensor:
    """flash_attn's of [T, heads, C]: sequence i of `q`, before q_ends[i + 1], sees sequence i of `k` and `v` alone."""
    rows = ((q, q_ends), (k, kv_ends), (v, kv_ends))
    each = zip(*(torch.tensor_split(kept, ends[1:-1].long().cpu()) for kept, ends in rows))
    return torch.cat([attention(*parts) for parts in each])


def points_in_boxes(points: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """OpenPCDet's, for boxes [items, M, 7] that are not turned: the box of each of the points [items, N, 3], or -1."""
    inside = ((points[:, :, None] - boxes[:, None, :, :3]).abs() * 2 <= boxes[:, None, :, 3:6]).all(3)
    return torch.where(inside.any(2), inside.int().argmax(2), -1)


def furthest_point_sample(points: torch.Tensor, count: int) -> torch.Tensor:
    """pointnet2's, of [items, N, 3]: rows [items, count], each the furthest from those before it."""
    chosen = torch.zeros(len(points), count, dtype=torch.int32, device=points.device)
    items = torch.arange(len(points), device=points.device)
    distances = torch.full(points.shape[:2], torch.inf, device=points.device)
    for number in range(1, count):
        last = points[items, chosen[:, number - 1].long()]
        distances = torch.minimum(distances, (points - last[:, None]).square().sum(2))
        chosen[:, number] = distances.argmax(1).int()
    return chosen


CONTENT: dict[str, dict[str, object]] = {
    "network.base_model": {"LightningBaseModel": LightningBaseModel},
    "network.torchsparse_utils.base_model": {"LightningBaseModel": LightningBaseModel},
    "pytorch_lightning": {"LightningModule": torch.nn.Module},
    "hydra": {"utils": SimpleNamespace(instantiate=lambda make: make())},
    "detectron2.utils.comm": {"get_world_size": lambda: 1},
    "third_party.pointnet2.pointnet2_utils": {"furthest_point_sample": furthest_point_sample},
    "torchvision": {"__version__": "0.20.0"},
    "pcdet.models.backbones_3d.__init__": {"__all__": {}},
    "loguru": {"logger": logging.getLogger("loguru")},
    "numba": {"jit": lambda *_, **__: lambda function: function},
    "pcdet.ops.roiaware_pool3d.roiaware_pool3d_utils": {"points_in_boxes_gpu": points_in_boxes},
    "open3d": {"__version__": "0.18.0"},
    "timm.layers": {"trunc_normal_": torch.nn.init.trunc_normal_, "DropPath": DropPath},
    "timm.models.layers": {"trunc_normal_": torch.nn.init.trunc_normal_, "DropPath": DropPath},
    "addict": {"Dict": Dict},
    "easydict": {"EasyDict": Dict},
    "huggingface_hub": {"PyTorchModelHubMixin": object},
    "pointcept.engines.hooks": {"HookBase": object},
    "flash_attn": {
        "flash_attn_varlen_func": attention_in_sequences,
        "flash_attn_varlen_qkvpacked_func": lambda qkv, ends, *_: attention_in_sequences(*qkv.unbind(1), ends, ends),
        "flash_attn_varlen_kvpacked_func": lambda q, kv, *rest: attention_in_sequences(q, *kv.unbind(1), *rest),
        "flash_attn_qkvpacked_func": lambda qkv: attention(*qkv.unbind(-3)),
    },
    **absent_openmmlab.CONTENT,
    "pointcept.models.builder": {"MODELS": absent_openmmlab.REGISTRY},
    "torch_geometric.utils": {"scatter": scatter},
    "torch_geometric.nn.pool": {"voxel_grid": voxel_grid},
    "det3d.models.registry": dict.fromkeys(("BACKBONES", "HEADS"), absent_openmmlab.REGISTRY),
    "det3d.models.utils": {
        "build_norm_layer": lambda config, channels: ("bn", torch.nn.BatchNorm1d(channels)),
        "Sequential": GrowingSequential,
    },
    "det3d.torchie.cnn": {"kaiming_init": lambda layer: torch.nn.init.kaiming_normal_(layer.weight)},
    "torch_scatter": {"scatter_mean": scatter_mean, "scatter_max": scatter_max, "segment_csr": segment_csr},
}


class StandIn(ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def used(*_: object, **__: object) -> None:
            raise NotImplementedError(f"{self.__name__}.{name} is not here; stand in for it")

        return used


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: list[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: object, target: object = None) -> Any:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self.names):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(CONTENT.get(module.__name__, {}))


def stand_in_for(names: list[str]) -> None:
    sys.meta_path.insert(0, Finder(names))
