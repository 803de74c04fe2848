"""Every layer of the interfaces: pickles, copies and states of it give the same, and no rows give none."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from types import ModuleType
from typing import Any

import pytest
import torch
from conftest import random_sites

import pumice.compat.minkowski as ME
import pumice.compat.spconv as spconv
import pumice.compat.torchsparse as torchsparse
from pumice.compat.torchsparse import nn as spnn

EXTENT = {1: 40, 2: 12, 3: 8, 4: 5}
# Bases, a container that is nothing by itself, and what takes a target and gives a loss.
NOT_MADE = {
    "SparseModule", "MinkowskiModuleBase", "MinkowskiNetwork", "ConcatTable",
    "MinkowskiAdaptiveLogSoftmaxWithLoss",
}  # fmt: skip


def layers_of(module: ModuleType) -> dict[str, type]:
    found = {name: value for name, value in vars(module).items() if inspect.isclass(value)}
    return {
        f"{module.__name__.removeprefix('pumice.compat.')}.{name}": value
        for name, value in sorted(found.items())
        if issubclass(value, torch.nn.Module) and name not in NOT_MADE
    }


LAYERS = {**layers_of(spconv), **layers_of(spnn), **layers_of(ME)}
# By the beginnings of names, the first that fits.
ARGUMENTS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("spconv.SparseConvolution", (3, 4, 6, 3), {}),
    ("spconv.SparseInverseConv", (4, 6, 2, "down"), {}),
    ("spconv.SparseConv", (4, 6, 2, 2), {}),
    ("spconv.SubMConv", (4, 6, 3), {}),
    ("spconv.SparseMaxPool", (2,), {}),
    ("spconv.SparseAvgPool", (2,), {}),
    ("spconv.SparseBatchNorm", (4,), {}),
    ("spconv.SparseSyncBatchNorm", (4,), {}),
    ("torchsparse.nn.Conv3d", (4, 6, 2, 2), {}),
    ("torchsparse.nn.BatchNorm", (4,), {}),
    ("torchsparse.nn.SyncBatchNorm", (4,), {}),
    ("torchsparse.nn.InstanceNorm", (4,), {}),
    ("torchsparse.nn.GroupNorm", (2, 4), {}),
    ("torchsparse.nn.SparseCrop", ((1, 1, 1), (6, 6, 6)), {}),
    ("torchsparse.nn.ToBEVConvolution", (4, 6, 9), {"bias": True}),
    ("torchsparse.nn.ToBEVHeightCompression", (4, (9, 9, 9)), {}),
    ("torchsparse.nn.ToDenseBEVConvolution", (4, 6, (9, 9, 9)), {"bias": True}),
    ("minkowski.MinkowskiConvolution", (4, 6), {"kernel_size": 2, "stride": 2, "bias": True, "dimension": 3}),
    ("minkowski.MinkowskiGenerative", (4, 6), {"kernel_size": 2, "stride": 2, "dimension": 3}),
    ("minkowski.MinkowskiChannelwise", (4,), {"kernel_size": 3, "bias": True, "dimension": 3}),
    *(
        (f"minkowski.Minkowski{kind}Pooling", (), {"kernel_size": 2, "stride": 2, "dimension": 3})
        for kind in ("Avg", "Sum", "Max")
    ),
    ("minkowski.MinkowskiPoolingTranspose", (), {"kernel_size": 2, "stride": 2, "dimension": 3}),
    ("minkowski.MinkowskiLinear", (4, 6), {}),
    ("minkowski.MinkowskiThreshold", (0.1, 20), {}),
    ("minkowski.MinkowskiSinusoidal", (4, 6), {}),
    ("minkowski.MinkowskiStackVar", (torch.nn.Identity(), ME.MinkowskiReLU()), {}),
    ("minkowski.MinkowskiStack", (torch.nn.Identity(), torch.nn.Identity()), {}),
    *(
        (f"minkowski.Minkowski{kind}", (), {"dim": 1})
        for kind in ("Softmax", "Softmin", "LogSoftmax")
    ),
    *(
        (f"minkowski.Minkowski{kind}Norm", (4,), {})
        for kind in ("Batch", "SyncBatch", "Instance", "StableInstance")
    ),
]


def make(name: str, device: torch.device) -> torch.nn.Module:
    for prefix, arguments, options in ARGUMENTS:
        if name.startswith(prefix):
            return LAYERS[name](*arguments, **options).to(device)
    return LAYERS[name]().to(device)


def run(name: str, layer: torch.nn.Module, rows: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    """[…, C] of what the layer makes of rows [N, 4] at cells [N, 1 + D]."""
    library, _, kind = name.rpartition(".")
    dimension = cells.shape[1] - 1
    if library == "spconv":
        x = spconv.SparseConvTensor(rows, cells, [EXTENT[dimension]] * dimension, 2)
        if "Inverse" in kind:
            x = getattr(spconv, f"SparseMaxPool{dimension}d")(2, indice_key="down")(x)
        result = layer([x, x] if kind in ("AddTable", "AddTableMisaligned", "JoinTable") else x)
    elif library == "torchsparse.nn":
        result = layer(torchsparse.SparseTensor(rows, cells))
    else:
        x = ME.SparseTensor(rows, cells)
        if "Broadcast" in kind:
            result = layer(x, ME.MinkowskiGlobalAvgPooling()(x))
        elif kind == "MinkowskiPruning":
            result = layer(x, torch.arange(len(rows), device=rows.device) % 2 == 0)
        elif kind == "MinkowskiInterpolation":
            result = layer(x, cells.float())
        elif kind == "MinkowskiToSparseTensor":
            result = layer(ME.MinkowskiToDenseTensor()(x))
        else:
            result = layer(x, x) if kind == "MinkowskiUnion" else layer(x)
    for values in ("features", "feats", "F"):
        result = getattr(result, values, result)
    return result


def made(name: str, device: torch.device, count: int = 80) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    dimension = int(name[-2]) if name[-2].isdigit() else 3
    cells = random_sites(dimension, EXTENT[dimension], count).to(device)
    return make(name, device), torch.randn(len(cells), 4, device=device), cells


@pytest.mark.parametrize("name", LAYERS)
def test_pickles_copies_and_states(device: torch.device, name: str) -> None:
    layer, rows, cells = made(name, device)
    run(name, layer, rows, cells)
    layer.eval()
    expected = run(name, layer, rows, cells)
    saved = io.BytesIO()
    torch.save(layer.state_dict(), saved)
    saved.seek(0)
    loaded = make(name, device).eval()
    loaded.load_state_dict(torch.load(saved))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded):
        assert type(other) is type(layer) and repr(other) == repr(layer)
        assert torch.equal(run(name, other, rows, cells), expected)
        for mine, theirs in zip(layer.parameters(), other.parameters(), strict=True):
            assert mine.data_ptr() != theirs.data_ptr()


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_reach_features_and_parameters(device: torch.device, name: str) -> None:
    layer, rows, cells = made(name, device)
    rows.requires_grad_()
    result = run(name, layer, rows, cells)
    (result * torch.linspace(1, 2, result.numel(), device=device).reshape(result.shape)).sum().backward()
    assert rows.grad.isfinite().all() and rows.grad.any()
    for key, parameter in layer.named_parameters():
        assert parameter.grad.shape == parameter.shape and parameter.grad.isfinite().all(), key


@pytest.mark.parametrize("name", LAYERS)
def test_no_rows_in(device: torch.device, name: str) -> None:
    layer, rows, cells = made(name, device)
    layer.eval()
    expected = run(name, layer, rows, cells)
    none = rows[:0].clone().requires_grad_()
    result = run(name, layer, none, cells[:0])
    axis = 2 if result.dim() > 2 else 1  # the first that is not a matter of rows
    assert result.dim() == expected.dim()
    if name != "minkowski.MinkowskiToDenseTensor":  # whose box is as large as what is in it
        assert result.shape[axis:] == expected.shape[axis:]
    assert not result.any()
    result.sum().backward()
    assert none.grad is None or none.grad.shape == (0, 4)
