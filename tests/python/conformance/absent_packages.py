"""Packages that a network imports and that are not here: registries that return what they are given,
and names that fail when they are used, except for the few functions a network computes with.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

import torch


class Registry:
    """Of OpenMMLab's kind: it keeps nothing."""

    def register_module(self, *given: object, **__: object) -> Any:
        return given[0] if given and isinstance(given[0], type) else lambda kind: kind


class BaseModule(torch.nn.Module):
    """mmengine's, which only initialises weights."""

    def __init__(self, init_cfg: object = None) -> None:
        super().__init__()


def scatter_mean(values: torch.Tensor, index: torch.Tensor, dim: int = 0) -> torch.Tensor:
    index = index.reshape(-1)  # [N], or [N, 1]
    rows = int(index.max()) + 1
    out = values.new_zeros(rows, *values.shape[1:]).index_add(dim, index, values)
    return out / torch.bincount(index, minlength=rows).clamp(min=1)[:, None]


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


CONTENT: dict[str, dict[str, object]] = {
    "timm.layers": {"trunc_normal_": torch.nn.init.trunc_normal_},
    "mmdet3d.registry": {"MODELS": Registry()},
    "pointcept.models.builder": {"MODELS": Registry()},
    "mmengine.model": {"BaseModule": BaseModule},
    "torch_geometric.utils": {"scatter": scatter},
    "torch_geometric.nn.pool": {"voxel_grid": voxel_grid},
    "det3d.models.registry": {"BACKBONES": Registry()},
    "det3d.models.utils": {"build_norm_layer": lambda config, channels: ("bn", torch.nn.BatchNorm1d(channels))},
    "torch_scatter": {"scatter_mean": scatter_mean},
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
