"""Pooling over active inputs, and spconv's own way of it."""

from __future__ import annotations

import os
import pathlib

import pytest
import torch
from conftest import close, random_sites, working_type

import pumice.compat.spconv as spconv
from pumice.compat.spconv.pytorch.pool import SparseAvgPool, SparseMaxPool


def tensor(device: torch.device, batch_size: int = 2) -> spconv.SparseConvTensor:
    cells = random_sites(3, 9, 300, batch_size).to(device)
    features = torch.randn(len(cells), 4, dtype=working_type(device)).to(device)
    return spconv.SparseConvTensor(features.requires_grad_(), cells, [9] * 3, batch_size)


@pytest.mark.parametrize("kind", ["Max", "Avg"])
def test_only_active_inputs_count(device: torch.device, kind: str) -> None:
    x = tensor(device)
    x = x.replace_feature(x.features - 10)  # a maximum over empty cells too would be 0
    pool = getattr(spconv, f"Sparse{kind}Pool3d")(3, 2, 1, indice_key="p")
    y = pool(x)
    assert y.spatial_shape == [5, 5, 5]
    data = y.find_indice_pair("p")
    pairs, numbers = data.indice_pairs.long().cpu(), data.indice_pair_num
    features = x.features.cpu()
    for row in range(0, len(y.indices), 17):
        met = [
            int(pairs[0, k, at])
            for k in range(27)
            for at in (pairs[1, k, : int(numbers[k])] == row).nonzero()[:, 0]
        ]
        rows = features[met]
        close(y.features[row].cpu(), rows.amax(0) if kind == "Max" else rows.mean(0), 27)


def test_the_switch_brings_spconvs_maximum(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tensor(device)
    pool = spconv.SparseMaxPool3d(2, 2)
    own = pool(x).features
    assert own.min() < 0
    pool.from_zero = True
    assert torch.equal(pool(x).features, own.clamp_min(0))
    pool.from_zero = None
    monkeypatch.setattr(spconv.constants, "MAX_POOL_FROM_ZERO", True)
    assert torch.equal(pool(x).features, own.clamp_min(0))
    pool.from_zero = False
    assert torch.equal(pool(x).features, own)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_every_dimension(device: torch.device, dimension: int) -> None:
    cells = random_sites(dimension, 6, 100).to(device)
    features = torch.randn(len(cells), 3, device=device)
    x = spconv.SparseConvTensor(features, cells, [6] * dimension, 2)
    for kind in ("Max", "Avg"):
        pool = getattr(spconv, f"Sparse{kind}Pool{dimension}d")(2)
        assert pool.stride == [2] * dimension
        assert pool(x).spatial_shape == [3] * dimension


def test_submanifold_pooling_stays_on_its_sites(device: torch.device) -> None:
    x = tensor(device)
    for kind in (SparseMaxPool, SparseAvgPool):
        assert kind(3, 3, subm=True)(x).indices is x.indices


def test_global_pooling_keeps_all_channels(device: torch.device) -> None:
    x = tensor(device, 3)
    items = [x.features[x.indices[:, 0] == item] for item in range(3)]
    close(spconv.SparseGlobalMaxPool()(x), torch.stack([f.amax(0) for f in items]))
    close(spconv.SparseGlobalAvgPool()(x), torch.stack([f.mean(0) for f in items]), 100)


def test_recorded_results_of_spconv(device: torch.device) -> None:
    path = pathlib.Path(os.environ.get("PUMICE_DATA", "")) / "maps/spconv_pooling_reference.pt"
    if not path.is_file():
        pytest.skip("PUMICE_DATA names no folder with maps/spconv_pooling_reference.pt")
    for case in torch.load(path, weights_only=True)["cases"]:
        (recorded,) = case["layers"]
        layer = getattr(spconv.pool, recorded["cls"])(**recorded["ctor"])
        layer.from_zero = True
        given, expected = case["input"], case["expect"]
        features = given["features"].to(device).requires_grad_()
        x = spconv.SparseConvTensor(
            features, given["indices"].to(device), given["spatial_shape"], given["batch_size"]
        )
        y = layer(x)
        assert y.spatial_shape == list(expected["out_spatial_shape"])
        mine, theirs = in_order(y.indices), in_order(expected["out_indices"].to(device))
        assert torch.equal(y.indices[mine], expected["out_indices"].to(device)[theirs])
        gradient = torch.empty_like(y.features)
        gradient[mine] = expected["grad_out"].to(device)[theirs]
        if recorded["cls"] == "SparseAvgPool":
            # spconv multiplies by the number of inputs where the derivative divides by it.
            gradient *= inputs_of(layer, x)[:, None] ** 2
        y.features.backward(gradient)
        torch.testing.assert_close(
            y.features[mine], expected["out_features"].to(device)[theirs],
            rtol=0, atol=expected["atol_out"], msg=case["id"],
        )  # fmt: skip
        torch.testing.assert_close(
            features.grad, expected["grad_input"].to(device),
            rtol=0, atol=expected["atol_grad_input"], msg=case["id"],
        )  # fmt: skip


def inputs_of(layer: torch.nn.Module, x: spconv.SparseConvTensor) -> torch.Tensor:
    """[rows] how many inputs each output has."""
    layer.indice_key = "counted"
    y = layer(x)
    rows = y.find_indice_pair("counted").indice_pairs[1]
    return torch.bincount(rows[rows >= 0], minlength=len(y.indices))


def in_order(indices: torch.Tensor) -> torch.Tensor:
    return torch.unique(indices, dim=0, return_inverse=True)[1].argsort()
