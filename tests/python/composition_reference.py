"""A network layer by layer: each by its plain operator, nothing fused and no chain. Norms, activations and
linear layers are PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from composition_networks import Around, Branches, Network, Stages, joined

import pumice
from pumice import nn, ops
from pumice.nn.convolution import Convolution

# What is done to the output of a module, by the hook that it has.
Hooks = dict[torch.nn.Module, Callable[[Any], Any]]


def plain(module: torch.nn.Module, x: pumice.SparseTensor, hooks: Hooks, like: Any = None) -> Any:
    """The output of `module`, a sparse tensor."""
    made = _plain(module, x, hooks, like)
    if module in hooks:
        made = made.replace(features=hooks[module](made.features))
    return made


def _plain(module: torch.nn.Module, x: pumice.SparseTensor, hooks: Hooks, like: Any) -> Any:
    if isinstance(module, Convolution):
        map, coords = module.find(x, like)
        features = ops.convolution(x.features, module.weight, map, module.bias, module.groups)
        return pumice.SparseTensor(coords, features)
    if isinstance(module, (nn.MaxPool, nn.AvgPool, nn.SumPool)):
        return module(x)
    if isinstance(module, (nn.Sequential, Stages)):
        for index, child in enumerate(module.children()):
            x = plain(child, x, hooks, like if index == 0 else None)
        return x
    if isinstance(module, nn.Residual):
        other = x if module.shortcut is None else plain(module.shortcut, x, hooks)
        total = plain(module.body, x, hooks) + other
        return total.replace(features=torch.relu(total.features))
    if isinstance(module, Branches):
        return joined(plain(module.left, x, hooks), plain(module.right, x, hooks), module.adds)
    if isinstance(module, Around):
        below = plain(module.down, x, hooks)
        return joined(plain(module.up, below, hooks, x), x, module.adds)
    if isinstance(module, Network):
        return plain(module.head, plain(module.body, x, hooks), hooks)
    return x.replace(features=_on_features(module, x, hooks))


def _on_features(module: torch.nn.Module, x: pumice.SparseTensor, hooks: Hooks) -> torch.Tensor:
    features = x.features
    if isinstance(module, nn.InstanceNorm):
        return _instance_norm(module, x)
    kind = type(module)
    # With a hook PyTorch's own runs by itself, and counts a batch without rows.
    if isinstance(module, torch.nn.BatchNorm1d) and not (
        kind is torch.nn.BatchNorm1d and module in hooks
    ):
        return _batch_norm(module, features)
    if kind.__module__.startswith("pumice."):
        kind = kind.__bases__[0]
    if getattr(module, "inplace", False):
        features = features.clone()
    return kind.forward(module, features)


def _batch_norm(norm: torch.nn.BatchNorm1d, features: torch.Tensor) -> torch.Tensor:
    """A batch without rows stays as it is, and leaves the running statistics alone."""
    if features.shape[0] > 0:
        return torch.nn.BatchNorm1d.forward(norm, features)
    wide = features
    for parameter in (norm.weight, norm.bias):
        wide = wide if parameter is None else wide + parameter
    return wide.to(features.dtype)


def _instance_norm(norm: nn.InstanceNorm, x: pumice.SparseTensor) -> torch.Tensor:
    features = x.features.double() if x.features.dtype == torch.float64 else x.features.float()
    items = x.indices[:, 0]
    result = 0 * features
    for item in range(x.batch_size):
        mine = (items == item).nonzero()[:, 0]
        rows = features[mine]
        if len(rows) == 0:
            continue
        scale = torch.rsqrt(rows.var(0, unbiased=False) + norm.eps)
        result = result.index_put((mine,), (rows - rows.mean(0)) * scale)
    if norm.weight is not None:
        result = result * norm.weight + norm.bias
    return result.to(x.features.dtype)
