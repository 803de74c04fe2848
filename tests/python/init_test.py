"""Initialisers, beside those of PyTorch on the weight of a dense layer that does the same."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable

import pytest
import torch

import pumice
from pumice import nn


@pytest.mark.parametrize("groups", [1, 2])
def test_fans_are_those_of_the_dense_layer(groups: int) -> None:
    layer = nn.SubMConv3d(4, 8, 3, groups=groups)
    dense = torch.nn.Conv3d(4, 8, 3, groups=groups)
    assert layer.dense_weight().shape == dense.weight.shape
    assert nn.init.fans(layer.weight) == torch.nn.init._calculate_fan_in_and_fan_out(dense.weight)
    assert nn.init.fans(torch.empty(7, 5)) == torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(7, 5))


@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
@pytest.mark.parametrize("name", ["kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"])
def test_numbers_are_spread_as_those_of_the_dense_layer(name: str, mode: str) -> None:
    layer, dense = nn.Conv3d(16, 64, 3), torch.nn.Conv3d(16, 64, 3)
    options = {"mode": mode, "nonlinearity": "relu"} if name.startswith("kaiming") else {"gain": 1.5}
    mine = getattr(nn.init, name)(layer.weight, **options)
    theirs = getattr(torch.nn.init, name)(dense.weight, **options)
    assert mine is layer.weight and mine.requires_grad
    # 27,648 numbers: the deviation is known to 1 / sqrt(2 · 27,648) = 0.4 %.
    assert math.isclose(mine.std().item(), theirs.std().item(), rel_tol=0.03)
    if "uniform" in name:
        assert math.isclose(mine.abs().max().item(), theirs.abs().max().item(), rel_tol=0.01)


def _replaced(layer: nn.Convolution) -> nn.Convolution:
    layer.weight = torch.nn.Parameter(torch.empty_like(layer.weight))
    return layer


KINDS: dict[str, Callable[[nn.Convolution], nn.Convolution]] = {
    "made": lambda layer: layer,
    "copied": copy.deepcopy,
    "loaded": lambda layer: pickle.loads(pickle.dumps(layer)),
    "replaced": _replaced,
    "half": lambda layer: layer.half(),
    "parametrised": torch.nn.utils.parametrizations.spectral_norm,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [nn.SubMConv3d, nn.Conv3d, nn.GenerativeConvTranspose3d])
def test_initialisers_of_pytorch_know_the_axes(make: type[nn.Convolution], kind: str) -> None:
    layer = KINDS[kind](make(4, 8, 3))
    weight = layer.parametrizations.weight.original if kind == "parametrised" else layer.weight
    for tensor in (weight, weight.data):
        torch.nn.init.kaiming_uniform_(tensor, nonlinearity="relu")
        assert 0.9 * (6 / 108) ** 0.5 < weight.abs().max() <= 1.001 * (6 / 108) ** 0.5
        torch.nn.init.xavier_uniform_(tensor)
        assert 0.9 * (6 / 324) ** 0.5 < weight.abs().max() <= 1.001 * (6 / 324) ** 0.5


def test_initialisers_of_pytorch_are_its_own_for_other_tensors() -> None:
    layer = nn.SubMConv3d(4, 8, 3)
    for other in (torch.empty(27, 4, 8), torch.nn.Conv1d(4, 27, 8).weight, layer.weight.detach().clone()):
        assert torch.nn.init._calculate_fan_in_and_fan_out(other) == (32, 216)


def test_the_generator_decides() -> None:
    def made() -> torch.Tensor:
        generator = torch.Generator().manual_seed(3)
        return nn.init.kaiming_normal_(torch.empty(27, 4, 8), generator=generator)

    assert torch.equal(made(), made())


def test_what_is_refused() -> None:
    with pytest.raises(pumice.UserError, match="torch.nn.init is for others"):
        nn.init.xavier_normal_(torch.empty(8, 4, 3, 3, 3))
    with pytest.raises(pumice.UserError, match="'fan_in' and 'fan_out'"):
        nn.init.kaiming_normal_(torch.empty(27, 4, 8), mode="fan_avg")
