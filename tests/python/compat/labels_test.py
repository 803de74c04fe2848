"""The task that tells whether rows stay: features are the one-hot labels of their rows, and a network of two
layers of one offset learns them, as the training loops of each library are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import random_sites

import pumice.compat.minkowski as ME
import pumice.compat.spconv.pytorch as spconv
import pumice.compat.torchsparse as torchsparse
from pumice.compat.torchsparse import nn as spnn

Run = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def minkowski() -> tuple[torch.nn.Module, Run]:
    net = torch.nn.Sequential(
        ME.MinkowskiConvolution(2, 8, kernel_size=1, dimension=3), ME.MinkowskiReLU(),
        ME.MinkowskiConvolution(8, 2, kernel_size=1, bias=True, dimension=3),
    )
    return net, lambda rows, cells: net(ME.SparseTensor(rows, cells)).F


def minkowski_field() -> tuple[torch.nn.Module, Run]:
    net, _ = minkowski()
    return net, lambda rows, cells: net(ME.TensorField(rows, cells.float()).sparse()).F


def spconv_pytorch() -> tuple[torch.nn.Module, Run]:
    net = spconv.SparseSequential(
        spconv.SubMConv3d(2, 8, 1), torch.nn.ReLU(), spconv.SubMConv3d(8, 2, 1)
    )
    return net, lambda rows, cells: net(spconv.SparseConvTensor(rows, cells, [9] * 3, 2)).features


def torchsparse_nn() -> tuple[torch.nn.Module, Run]:
    net = torch.nn.Sequential(spnn.Conv3d(2, 8, 1), spnn.ReLU(True), spnn.Conv3d(8, 2, 1, bias=True))
    return net, lambda rows, cells: net(torchsparse.SparseTensor(rows, cells)).feats


@pytest.mark.parametrize("make", [minkowski, minkowski_field, spconv_pytorch, torchsparse_nn])
def test_labels_are_learnt_to_the_last_row(device: torch.device, make: Any) -> None:
    net, run = make()
    net.to(device)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for step in range(300):
        cells = random_sites(3, 9, 120, seed=step).to(device)
        labels = torch.randint(0, 2, (len(cells),), generator=torch.Generator().manual_seed(step)).to(device)
        scores = run(torch.nn.functional.one_hot(labels, 2).float(), cells)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert bool((scores.argmax(1) == labels).all()) and loss.item() < 0.05
