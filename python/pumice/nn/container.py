"""Ordinary PyTorch modules on the features of sparse tensors."""

from __future__ import annotations

from typing import Any

import torch

from ..tensor import SparseTensor


class OnFeatures(torch.nn.Module):
    """Applies `module` to the features, row for row."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: SparseTensor) -> SparseTensor:
        return x.replace(features=self.module(x.features))


class Sequential(torch.nn.Sequential):
    """Layers one after the other. Modules of torch.nn (and containers of them alone) see the
    features; all others see the sparse tensor. Names of parameters are those of
    torch.nn.Sequential."""

    def forward(self, x: Any) -> Any:
        for module in self:
            if isinstance(x, SparseTensor) and takes_features(module):
                x = x.replace(features=module(x.features))
            else:
                x = module(x)
        return x


class Identity(torch.nn.Module):
    def forward(self, x: SparseTensor) -> SparseTensor:
        return x


def takes_features(module: torch.nn.Module) -> bool:
    """Whether a module is PyTorch's own: the classes of this package, and a user's own modules, are
    given the sparse tensor."""
    if isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList)):
        return type(module) is torch.nn.Sequential and all(takes_features(m) for m in module)
    return type(module).__module__.startswith("torch.nn.")
