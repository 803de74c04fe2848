"""Usual mistakes of users of the three interfaces get a sentence that names the argument and the remedy."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import torch

import pumice
import pumice.compat.minkowski as ME
import pumice.compat.spconv as spconv
import pumice.compat.torchsparse as torchsparse
from pumice.compat.spconv.pytorch.utils import PointToVoxel
from pumice.compat.torchsparse import nn as spnn

CELLS = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]], dtype=torch.int32)
FEATURES = torch.ones(2, 4)
FRACTIONS = FEATURES * 0.3
POINTS = np.arange(15.0).reshape(5, 3)


def spconv_tensor() -> spconv.SparseConvTensor:
    return spconv.SparseConvTensor(FEATURES, CELLS, [9] * 3, 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: spconv.SparseConvTensor(FEATURES.numpy(), CELLS, [9] * 3, 1), "features are a numpy.ndarray: give a tensor"),
        (lambda: spconv.SparseConvTensor(FEATURES, CELLS.numpy(), [9] * 3, 1), "indices are a numpy.ndarray: give a tensor"),
        (lambda: spconv.SparseConvTensor(FEATURES[:1], CELLS, [9] * 3, 1), "features have 1 rows and indices 2"),
        (lambda: spconv.SparseConvTensor(FEATURES, CELLS, [9] * 3, "1"), "batch_size = '1'"),
        (lambda: ME.SparseTensor(np.ones((2, 4)), CELLS), "features are a numpy.ndarray: give a tensor"),
        (lambda: ME.SparseTensor(FEATURES, CELLS.numpy()), "coordinates are a numpy.ndarray: give a tensor"),
        (lambda: ME.TensorField(FEATURES, CELLS.numpy().astype("f")), "coordinates are a numpy.ndarray: give a tensor"),
        (lambda: ME.TensorField(FEATURES.numpy(), CELLS.float()), "features are a numpy.ndarray: give a tensor"),
        (lambda: ME.MinkowskiConvolution(4, 4, kernel_size=3, dimension=3)(ME.TensorField(FEATURES, CELLS.float())), r"call \.sparse\(\)"),
        (lambda: ME.utils.batched_coordinates(CELLS[:, 1:]), r"give a list with one array for each cloud"),
        (lambda: ME.utils.sparse_quantize(CELLS[:, 1:], quantization_size=[0.5, 0.5]), "one for each of 3 axes"),
        (lambda: ME.utils.sparse_quantize(CELLS[:, 1:], quantization_size=0), "quantization_size = 0: give a positive number"),
        (lambda: torchsparse.utils.quantize.sparse_quantize(np.ones((3, 3)), 0), "voxel_size = 0: give a positive number"),
        (lambda: spnn.Conv3d(4, 8, 3)(torchsparse.SparseTensor(FEATURES.numpy(), CELLS.numpy())), "sparse_collate_fn makes tensors"),
        (lambda: spnn.Conv3d(4, 8, 3)(torchsparse.SparseTensor(FEATURES, CELLS.numpy())), "coords are an array of NumPy"),
        (lambda: ME.MinkowskiConvolution(0, 8, 3, dimension=3), "in_channels = 0: give a whole number"),
        (lambda: spnn.Conv3d(0, 8, 3), "in_channels = 0: give a whole number"),
        (lambda: pumice.data.Flip(0.5), r"axes = 0.5: give the axes"),
        (lambda: ME.MinkowskiConvolution(4, 4, kernel_size=3, dimension=3)(FEATURES), "takes a SparseTensor, and got a Tensor"),
        (lambda: ME.MinkowskiConvolution(4, 4, kernel_size=3, dimension=3)(ME.SparseTensor(FEATURES, CELLS[:, 1:].contiguous())), "pad"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_to_give(call: Any, words: str) -> None:
    with pytest.raises(pumice.UserError, match=words):
        call()


def test_a_misspelt_entry_of_metadata_is_asked_about(tmp_path: pathlib.Path) -> None:
    with pytest.warns(UserWarning, match="is 'voxel_size' meant"):
        pumice.save_weights(
            {"a": FEATURES}, tmp_path / "w.safetensors", metadata={"voxelsize": "0.4", "run": "3"}
        )


def test_a_name_of_another_module_says_where_it_is() -> None:
    with pytest.raises(AttributeError, match="it is in spconv.pytorch.utils"):
        spconv.PointToVoxel


def test_layers_and_promises_take_what_they_are_for() -> None:
    with pytest.raises(pumice.UserError, match=r"in_channels = 4.0: give a whole number"):
        pumice.nn.SubMConv3d(4.0, 8, 3)  # type: ignore[arg-type]
    with pytest.raises(pumice.UserError, match="model is a dict: give a module"):
        pumice.nn.freeze({})  # type: ignore[type-var,arg-type]


def me() -> ME.SparseTensor:
    return ME.SparseTensor(FEATURES, CELLS)


def ts() -> torchsparse.SparseTensor:
    return torchsparse.SparseTensor(FEATURES, CELLS)


def sp() -> spconv.SparseConvTensor:
    return spconv.SparseConvTensor(FEATURES, CELLS, [9] * 3, 1)


def said(layer: torch.nn.Module, x: Any, kind: type[Exception] = pumice.UserError) -> str:
    """By a network that has it in its second stage."""
    with pytest.raises(kind) as raised:
        torch.nn.Sequential(torch.nn.Identity(), torch.nn.Sequential(layer))(x)
    return str(raised.value)


COARSER = {"kernel_size": 2, "stride": 2, "dimension": 3}


@pytest.mark.parametrize(
    ("layer", "make"),
    [
        (ME.MinkowskiConvolution(5, 4, kernel_size=3, dimension=3), me),
        (ME.MinkowskiConvolution(5, 4, kernel_size=1, dimension=3), me),
        (ME.MinkowskiConvolution(5, 4, **COARSER), me),
        (ME.MinkowskiConvolutionTranspose(5, 4, **COARSER), me),
        (ME.MinkowskiGenerativeConvolutionTranspose(5, 4, **COARSER), me),
        (ME.MinkowskiChannelwiseConvolution(5, kernel_size=3, dimension=3), me),
        (ME.MinkowskiBatchNorm(5), me),
        (ME.MinkowskiInstanceNorm(5), me),
        (ME.MinkowskiLinear(5, 4), me),
        (ME.MinkowskiSinusoidal(5, 4), me),
        (spnn.Conv3d(5, 4, 3), ts),
        (spnn.Conv3d(5, 4, 1), ts),
        (spnn.Conv3d(5, 4, 2, 2), ts),
        (spnn.BatchNorm(5), ts),
        (spnn.GroupNorm(5, 5), ts),
        (spnn.InstanceNorm(5, affine=True), ts),
        (spnn.ToBEVConvolution(5, 4, 9), ts),
        (spnn.ToDenseBEVConvolution(5, 4, (9, 9, 9)), ts),
        (spconv.SubMConv3d(5, 4, 3), sp),
        (spconv.SparseConv3d(5, 4, 2, 2), sp),
        (spconv.SparseSequential(torch.nn.BatchNorm1d(5)), sp),
        (spconv.SparseSequential(torch.nn.Linear(5, 4)), sp),
    ],
)
def test_wrong_channels_with_the_path_of_the_layer(layer: torch.nn.Module, make: Any) -> None:
    for training in (True, False):
        text = said(layer.train(training), make())
        assert text.startswith("1.0"), text
        assert text.endswith("): features have 4 channels, the layer takes 5"), text


@pytest.mark.parametrize(
    ("layer", "make"),
    [
        (ME.MinkowskiReLU(), "ME.SparseTensor(features, coordinates)"),
        (ME.MinkowskiBatchNorm(4), "ME.SparseTensor(features, coordinates)"),
        (spnn.Conv3d(4, 4, 3), "torchsparse.SparseTensor(feats, coords)"),
        (spnn.BatchNorm(4), "torchsparse.SparseTensor(feats, coords)"),
        (spconv.SparseMaxPool3d(2), ""),
    ],
)
def test_a_layer_that_is_given_a_tensor(layer: torch.nn.Module, make: str) -> None:
    text = said(layer, FEATURES)
    assert text.startswith(f"1.0 ({type(layer).__name__}) takes a Sparse") and "got a Tensor" in text
    assert text.endswith(make)


@pytest.mark.parametrize(
    ("layer", "make", "remedy"),
    [
        (torch.nn.ReLU(), me, "ME.MinkowskiReLU takes it"),
        (torch.nn.Linear(4, 4), me, "ME.MinkowskiLinear takes it"),
        (torch.nn.LayerNorm(4), me, "give it x.F [N, C] in a module of your own"),
        (torch.nn.ReLU(), ts, "torchsparse.nn.ReLU takes it"),
        (torch.nn.Linear(4, 4), ts, "give it x.feats [N, C] in a module of your own"),
        (torch.nn.ReLU(), sp, "build the network with spconv.SparseSequential in place of torch.nn.Sequential"),
        (torch.nn.Dropout(), sp, "x.replace_feature"),
    ],
)
def test_a_layer_of_torch_in_a_sequential_of_torch(layer: torch.nn.Module, make: Any, remedy: str) -> None:
    place = f"1.0 (torch.nn.{type(layer).__name__}) takes a tensor, and got a {type(make()).__name__}: "
    for kind in (pumice.UserError, TypeError):
        text = said(layer, make(), kind)
        assert text.startswith(place) and remedy in text


def test_a_norm_of_torch_asks_for_dim_first() -> None:
    for make, remedy in ((me, "MinkowskiBatchNorm"), (ts, "torchsparse.nn.BatchNorm"), (sp, "SparseSequential")):
        text = said(torch.nn.BatchNorm1d(4), make(), AttributeError)
        assert text.startswith("1.0 (torch.nn.BatchNorm1d) takes a tensor") and remedy in text
        assert not hasattr(make(), "dim")


def test_the_layers_of_an_interface_in_a_sequential_of_torch() -> None:
    """What they take each from the other needs no container of their own."""
    convolution = ME.MinkowskiConvolution(4, 8, kernel_size=3, dimension=3)
    x = torch.nn.Sequential(convolution, ME.MinkowskiBatchNorm(8), ME.MinkowskiReLU())(me())
    y = torch.nn.Sequential(spnn.Conv3d(4, 8, 3), spnn.BatchNorm(8), spnn.ReLU())(ts())
    z = torch.nn.Sequential(spconv.SubMConv3d(4, 8, 3), spconv.SparseReLU(), spconv.ToDense())(sp())
    assert x.F.shape == y.feats.shape == (2, 8) and z.shape == (1, 8, 9, 9, 9)


def test_functions_of_torch() -> None:
    for make, remedy in ((me, "ME.cat"), (ts, "torchsparse.cat"), (sp, "x.replace_feature")):
        x = make()
        with pytest.raises(pumice.UserError, match=f"torch's cat takes tensors, and got a {type(x).__name__}: ") as raised:
            torch.cat([x, x])
        assert remedy in str(raised.value)
        with pytest.raises(TypeError, match="unsupported operand"):
            FEATURES * x


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ME.utils.sparse_quantize(POINTS, np.ones((6, 2))), r"features have shape \(6, 2\): give one row for each of 5"),
        (lambda: ME.utils.sparse_quantize(POINTS, np.ones((4, 2))), r"features have shape \(4, 2\): give one row for each of 5"),
        (lambda: ME.utils.sparse_quantize(torch.tensor(POINTS), np.ones((5, 2))), "features are an ndarray: give a tensor"),
        (lambda: ME.utils.sparse_quantize(POINTS, "abc"), "features are a str: give a NumPy array"),
        (lambda: ME.utils.sparse_quantize("abc"), "coordinates = 'abc': give a NumPy array or a tensor"),
        (lambda: ME.utils.sparse_quantize(POINTS[0]), r"coordinates have shape \(3,\): give \[P, D\]"),
        (lambda: ME.utils.sparse_quantize(POINTS, quantization_size="a"), "quantization_size = 'a': give a positive number"),
        (lambda: ME.utils.sparse_quantize(POINTS, quantization_size=[1, None, 1]), "quantization_size = .*: give a positive number"),
        (lambda: ME.TensorField(CELLS, FRACTIONS), r"the other way round: give TensorField\(features, coordinates\)"),
        (lambda: ME.SparseTensor(CELLS, FRACTIONS), r"the other way round: give SparseTensor\(features, coordinates\)"),
        (lambda: ME.MinkowskiPruning()(ME.SparseTensor(FEATURES, CELLS), FEATURES[:, 0]), "mask is torch.float32: give bool"),
        (lambda: ME.MinkowskiLinear("4", 3), "in_features = '4': give a whole number of at least 1"),
        (lambda: ME.MinkowskiLinear(4, None), "out_features = None: give a whole number"),
        (lambda: spconv.ToDense()(FEATURES), "ToDense takes a SparseConvTensor, and got a Tensor"),
        (lambda: spconv.SparseSequential(spconv.ToDense(), spconv.ToDense())(spconv_tensor()), r"1 \(ToDense\) takes a SparseConvTensor"),
        (lambda: spconv.RemoveGrid()(FEATURES), "RemoveGrid takes a SparseConvTensor"),
        (lambda: spconv.SparseGlobalMaxPool()(FEATURES), "SparseGlobalMaxPool takes a SparseConvTensor"),
        (lambda: spconv.SparseGlobalAvgPool()(FEATURES), "SparseGlobalAvgPool takes a SparseConvTensor"),
        (lambda: spconv.AddTable()([FEATURES, FEATURES]), "AddTable: tensor 0 is a Tensor: give a SparseConvTensor"),
        (lambda: spconv.JoinTable()([spconv_tensor(), FEATURES]), "JoinTable: tensor 1 is a Tensor: give a SparseConvTensor"),
        (lambda: spconv_tensor().replace_feature(FEATURES.numpy()), "replace_feature: features are a numpy.ndarray: give a tensor"),
        (lambda: spconv.SubMConv3d(4, 8, 3, stride="2"), "stride = '2': give one number, or one for each of 3 axes"),
        (lambda: spconv.SparseConv3d(4, 8, "333"), "kernel_size = '333': give one number"),
        (lambda: spconv.SparseConvTensor(FEATURES, CELLS, "888", 1), "spatial_shape = '888': give a number for each axis"),
        (lambda: spnn.Conv3d(4, 8, "3"), "kernel_size = '3': give one number, or 3"),
        (lambda: spnn.Conv3d(4, 8, 3, stride="222"), "stride = '222': give one number, or 3"),
        (lambda: spnn.functional.conv3d(FEATURES, torch.ones(27, 4, 8), 3), "conv3d: input is a Tensor: give a SparseTensor"),
        (
            lambda: spnn.functional.spvoxelize(FEATURES, torch.tensor([0]), torch.tensor([1, 1])),
            r"coords have shape \(1,\): give the number of a voxel for each of 2 rows of feats",
        ),
        (lambda: spnn.functional.spvoxelize(FEATURES, [0, 1], torch.tensor([1, 1])), "coords are a builtins.list: give a tensor"),
    ],
)  # fmt: skip
def test_what_the_library_would_fail_on_inside(call: Any, words: str) -> None:
    with pytest.raises(pumice.UserError, match=words):
        call()


@pytest.mark.parametrize("device", ["gpu", 7.5])
def test_devices_that_there_are_not(device: Any) -> None:
    with pytest.raises(pumice.UserError, match=f"device = {device!r}: give a device, as 'cpu'"):
        PointToVoxel([1] * 3, [0, 0, 0, 8, 8, 8], 4, 10, 5, device=device)


def test_fields_of_integers_and_cells_without_a_size_are_taken() -> None:
    colours = torch.tensor([[255, 0, 7], [3, 4, 5]])
    field = ME.TensorField(colours, CELLS + torch.tensor([0, 0.5, 0.5, 0.5]))
    assert field.F is colours
    assert len(ME.utils.sparse_quantize(POINTS, POINTS, quantization_size=None)) == 2
