"""What builders of networks share: made labels and boxes, networks behind a function, those of several libraries.

A builder gets the module of a network and its row of networks.json. Networks with a loss of their own return it in
training; the others return what they compute.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

Row = dict[str, Any]


class Settings(dict[str, Any]):
    """A configuration with its entries as attributes, which are entries too when they are set."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class OnRows(nn.Module):
    """A network behind a function of the cells [N, 4] and features [N, C] that it is run on."""

    def __init__(self, parts: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.parts = parts
        self.call = call

    def forward(self, given: dict[str, Any]) -> Any:
        return self.call(self.parts, given["cells"], given["features"], self.training)


def batch_last(cells: torch.Tensor) -> torch.Tensor:
    return cells[:, [1, 2, 3, 0]].contiguous()


def heights(cells: torch.Tensor, classes: int = 3, extent: int = 40) -> torch.Tensor:
    """A label for each cell that its position says: which layer of the scene it lies in."""
    return (cells[:, 3].long() * classes // extent).clamp(0, classes - 1)


def segmentation(parts: nn.Module, call: Callable[..., Any], channels: int) -> nn.Module:
    """A network of points or cells with a linear layer and a cross-entropy behind it."""

    def whole(parts: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        backbone, head = parts
        out = head(call(backbone, cells, features))
        return functional.cross_entropy(out.float(), heights(cells)) if training else out

    return OnRows(nn.ModuleList([parts, nn.Linear(channels, 3)]), whole)


def made_boxes(cells: torch.Tensor, count: int = 3, extent: float = 40.0) -> torch.Tensor:
    """[items, count, 6]: centres and sizes that the number of cells decides, so that each scene has its own."""
    generator = torch.Generator().manual_seed(len(cells))
    centres = torch.rand(2, count, 3, generator=generator) * extent * 0.6 + extent * 0.2
    sizes = torch.rand(2, count, 3, generator=generator) * extent * 0.2 + extent * 0.15
    return torch.cat([centres, sizes], 2).to(cells.device)


def map_of_cells(cells: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """[2, 1, H, W]: how many cells lie above each square of a map, less their mean, in standard deviations."""
    counts = torch.zeros(2, *shape, device=cells.device)
    at = (cells[:, 0].long(), cells[:, 2].long() // 8, cells[:, 3].long() // 8)
    counts.index_put_(at, torch.ones(len(cells), device=cells.device), accumulate=True)
    return ((counts - counts.mean()) / counts.std())[:, None]


def class_on_cells(module: ModuleType, row: Row) -> nn.Module:
    """A network that is called with features, cells and the number of items."""

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        return net(features, cells, 2)

    return OnRows(getattr(module, row["class"])(*row.get("arguments", []), **row.get("named", {})), call)


def backbone_with_settings(module: ModuleType, row: Row) -> nn.Module:
    """OpenPCDet's kind of network, with the entries of its configuration that the row has."""
    return getattr(module, row["class"])(Settings(row["settings"]), 5, np.array([64, 64, 40]), **row.get("named", {}))


def encoder_of_maps(module: ModuleType, row: Row) -> nn.Module:
    """An encoder whose output is a dense map, trained to say how many cells lie above each square of it."""

    def call(parts: nn.Module, cells: torch.Tensor, features: torch.Tensor, training: bool) -> Any:
        dense = parts[0](features, cells, 2)
        if not training:
            return dense
        return functional.mse_loss(parts[1](dense).float(), map_of_cells(cells, dense.shape[2:]))

    net = getattr(module, row["class"])(**row["named"])
    return OnRows(nn.ModuleList([net, nn.Conv2d(row["head"], 1, 1)]), call)


def minkunet_of_mmdetection3d(module: ModuleType, row: Row) -> nn.Module:
    sizes = {"base_channels": 16, "encoder_channels": [16, 16, 32, 32], "decoder_channels": [32, 32, 16, 16]}
    net = getattr(module, row["class"])(in_channels=4, **sizes, **row["named"])
    ends_with_batch = row["library"] == "torchsparse"

    def call(net: nn.Module, cells: torch.Tensor, features: torch.Tensor) -> Any:
        return net(features, batch_last(cells) if ends_with_batch else cells)

    return segmentation(net, call, row["head"])
