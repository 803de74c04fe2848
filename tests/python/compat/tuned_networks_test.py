"""`pumice.tune` and `pumice.candidates` of networks written for other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import pumice
from pumice.compat import minkowski, torchsparse
from pumice.compat.spconv import pytorch as spconv
from pumice.compat.torchsparse import nn as spnn


def voxels(items: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    cells = [
        torch.cat([torch.full((300, 1), item), torch.randint(0, 12, (300, 3), generator=generator)], 1).unique(dim=0)
        for item in range(items)
    ]
    indices = torch.cat(cells).int()
    return indices, torch.randn(len(indices), 4, generator=generator)


def of_spconv() -> tuple[torch.nn.Module, Any]:
    indices, features = voxels(2)
    net = spconv.SparseSequential(
        spconv.SubMConv3d(4, 8, 3, indice_key="a"), torch.nn.BatchNorm1d(8), torch.nn.ReLU(),
        spconv.SubMConv3d(8, 8, 3, indice_key="a"),
    )  # fmt: skip
    return net, spconv.SparseConvTensor(features, indices, [12, 12, 12], 2)


def of_minkowski() -> tuple[torch.nn.Module, Any]:
    indices, features = voxels(2)
    net = torch.nn.Sequential(
        minkowski.MinkowskiConvolution(4, 8, kernel_size=3, dimension=3), minkowski.MinkowskiBatchNorm(8),
        minkowski.MinkowskiReLU(), minkowski.MinkowskiConvolution(8, 8, kernel_size=3, dimension=3),
    )  # fmt: skip
    return net, minkowski.SparseTensor(features, coordinates=indices)


def of_torchsparse() -> tuple[torch.nn.Module, Any]:
    indices, features = voxels(2)
    net = torch.nn.Sequential(spnn.Conv3d(4, 8, 3), spnn.BatchNorm(8), spnn.ReLU(), spnn.Conv3d(8, 8, 3))
    return net, torchsparse.SparseTensor(features, indices)  # without a spatial range, which batches need elsewhere


def features_of(x: Any) -> torch.Tensor:
    return x.F if hasattr(x, "F") else x.features


@pytest.mark.parametrize("made", [of_spconv, of_minkowski, of_torchsparse])
def test_networks_of_other_interfaces_are_tuned(made: Callable[[], tuple[torch.nn.Module, Any]]) -> None:
    torch.manual_seed(0)
    net, x = made()
    net.eval()
    with torch.no_grad():
        before = features_of(net(x)).clone()
    problems = ["forward f32 4>8 offsets 27", "forward f32 8>8 offsets 27"]
    assert [layer["problem"] for layer in pumice.candidates(net, x)] == problems
    tuning = pumice.tune(net, [x], budget_s=0.5, store=False)
    assert [layer.problem for layer in tuning.layers] == problems
    assert all(layer.rows == len(before) for layer in tuning.layers)
    with torch.no_grad():
        assert torch.equal(features_of(net(x)), before)
    net.train()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    loss = lambda output, item: features_of(output).square().mean()  # noqa: E731
    training = pumice.tune(net, [(x, "labels")], loss=loss, budget_s=0.5, store=False)
    directions = {layer.problem.split()[0] for layer in training.layers}
    assert directions == {"forward", "input_gradient", "weight_gradient"}
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())


@pytest.mark.parametrize("made", [of_spconv, of_minkowski, of_torchsparse])
def test_explain_says_what_shows_their_plans(made: Callable[[], tuple[torch.nn.Module, Any]]) -> None:
    net, x = made()
    with pytest.raises(pumice.UserError, match=r"candidates\(model, x, measure=True\) shows"):
        pumice.explain(net.eval(), x)
