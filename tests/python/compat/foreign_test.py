"""What the interfaces share: weights in foreign layouts, kept where a model is frozen."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import random_sites

import pumice
import pumice.compat.minkowski as ME
import pumice.compat.spconv as spconv
import pumice.compat.torchsparse as torchsparse
from pumice import nn
from pumice.compat.foreign import PeerAssertionError


def spconv_run(layer: torch.nn.Module, rows: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    return layer(spconv.SparseConvTensor(rows, cells, [9] * 3, 2)).features


def torchsparse_run(layer: torch.nn.Module, rows: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    return layer(torchsparse.SparseTensor(rows, cells)).feats


def minkowski_run(layer: torch.nn.Module, rows: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    return layer(ME.SparseTensor(rows, cells)).F


def cross() -> torch.nn.Module:
    generator = ME.KernelGenerator(3, region_type=ME.RegionType.HYPER_CROSS, dimension=3)
    return ME.MinkowskiConvolution(4, 8, kernel_generator=generator, dimension=3)


LAYERS: dict[str, tuple[Callable[[], torch.nn.Module], Any]] = {
    "spconv": (lambda: spconv.SubMConv3d(4, 8, 3), spconv_run),
    "torchsparse": (lambda: torchsparse.nn.Conv3d(4, 8, 3), torchsparse_run),
    "minkowski": (lambda: ME.MinkowskiConvolution(4, 8, 3, dimension=3), minkowski_run),
    "cross": (cross, minkowski_run),
}


@pytest.mark.parametrize("name", LAYERS)
def test_weights_are_kept_in_frozen_models_in_evaluation_alone(device: torch.device, name: str) -> None:
    make, run = LAYERS[name]
    layer = make().to(device).eval()
    weight = next(p for p in layer.parameters() if p.dim() > 2)
    cells = random_sites(3, 9, 200).to(device)
    rows = torch.randn(len(cells), 4, device=device)

    def output() -> torch.Tensor:
        with torch.no_grad():
            return run(layer, rows, cells)

    def written() -> torch.Tensor:
        weight.data.add_(1)  # which no version tells
        return output()

    assert not torch.equal(output(), written()), "kept without a promise"
    nn.freeze(layer)
    kept = output()
    assert torch.equal(written(), kept), "packed again in spite of the promise"
    layer.train()
    assert not torch.equal(output(), kept), "kept in training"
    layer.eval()
    with_gradient = run(layer, rows, cells)
    assert with_gradient.requires_grad and not torch.equal(with_gradient, kept)
    assert torch.equal(nn.freeze(layer) and output(), with_gradient)
    with torch.no_grad():
        weight.add_(1)  # which the version tells
    assert not torch.equal(output(), with_gradient)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert not other._kept.frozen
        with torch.no_grad():
            assert torch.equal(run(other, rows, cells), output())


@pytest.mark.parametrize("name", LAYERS)
def test_what_is_kept_in_inference_mode_serves_gradients_of_features(
    device: torch.device, name: str
) -> None:
    make, run = LAYERS[name]
    layer = nn.freeze(make().to(device).eval().requires_grad_(False))
    cells = random_sites(3, 9, 200).to(device)
    rows = torch.randn(len(cells), 4, device=device)
    with torch.inference_mode():
        expected = run(layer, rows, cells)
    rows.requires_grad_()
    result = run(layer, rows, cells)
    torch.testing.assert_close(result, expected.clone(), rtol=1e-5, atol=1e-5)
    result.sum().backward()
    assert rows.grad.abs().sum() > 0


@pytest.mark.parametrize("name", LAYERS)
def test_frozen_layers_made_in_inference_mode(device: torch.device, name: str) -> None:
    make, run = LAYERS[name]
    cells = random_sites(3, 9, 200).to(device)
    rows = torch.randn(len(cells), 4, device=device)
    with torch.inference_mode():
        layer = nn.freeze(make().to(device).eval())
        assert torch.equal(run(layer, rows, cells), run(layer.train(), rows, cells))


@pytest.mark.parametrize("caught", (AssertionError, ValueError, pumice.UserError))
def test_what_a_peer_asserts_is_caught_by_either_name(caught: type[Exception]) -> None:
    with pytest.raises(caught, match="give equal strides"):
        raise PeerAssertionError("give equal strides")
