"""Small networks in the style of users of spconv, and what tests of layers that wait do with them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from deferred_programs import CHANNELS, EXTENT, scene

import pumice
import pumice.compat.spconv as spconv

nn = torch.nn


def sparse(cells: torch.Tensor, features: torch.Tensor) -> spconv.SparseConvTensor:
    return spconv.SparseConvTensor(features, cells, [EXTENT] * 3, 2)


def at_once(call: Any) -> Any:
    """What it gives where every layer computes when it is called."""
    pumice.compat.defer_layers(False)
    try:
        return call()
    finally:
        pumice.compat.defer_layers(True)


def on_threads(run: Callable[[], None]) -> None:
    """Runs it on four threads at once, and raises what went wrong on one of them."""
    with ThreadPoolExecutor(4) as pool:
        for made in [pool.submit(run) for _ in range(4)]:
            made.result()


def agree(one: Any, two: Any) -> None:
    assert (one is None) == (two is None)
    if one is not None:
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-10)


class Block(nn.Module):
    """A residual block in OpenPCDet's style."""

    def __init__(self, channels: int, key: str) -> None:
        super().__init__()
        self.conv1 = spconv.SubMConv3d(channels, channels, 3, bias=False, indice_key=key)
        self.bn1 = nn.BatchNorm1d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = spconv.SubMConv3d(channels, channels, 3, bias=False, indice_key=key)
        self.bn2 = nn.BatchNorm1d(channels)

    def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
        identity = x
        out = self.conv1(x)
        out = out.replace_feature(self.bn1(out.features))
        out = out.replace_feature(self.relu(out.features))
        out = self.conv2(out)
        out = out.replace_feature(self.bn2(out.features))
        out = out.replace_feature(out.features + identity.features)
        return out.replace_feature(self.relu(out.features))


class Pair(nn.Module):
    """A convolution and its norm; `watch` sees what is between them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = spconv.SubMConv3d(CHANNELS, CHANNELS, 3, bias=False)
        self.norm = nn.BatchNorm1d(CHANNELS)
        self.watch: Any = None

    def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
        y = self.conv(x)
        if self.watch is not None:
            self.watch(y)
        y = y.replace_feature(self.norm(y.features))
        return y.replace_feature(torch.relu(y.features))


def pair(passes: int = 3) -> tuple[Pair, torch.Tensor, torch.Tensor]:
    """One whose outputs are deferred by now."""
    net = Pair().double()
    cells, features = scene(4)
    for _ in range(passes):
        net(sparse(cells, features)).features.sum().backward()
        net.zero_grad()
    return net, cells, features
