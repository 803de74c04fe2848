"""Calls of MinkowskiEngine's layers and functions by the places and names that their arguments have there."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import torch
from conftest import random_sites, working_type

import pumice
from pumice import _checks
from pumice.compat import minkowski as ME
from pumice.compat.foreign import PeerAssertionError
from pumice.compat.minkowski.utils import SparseCollation, batch_sparse_collate

POOLS = [ME.MinkowskiSumPooling, ME.MinkowskiAvgPooling, ME.MinkowskiMaxPooling]


def tensor(device: torch.device, dimension: int = 3) -> ME.SparseTensor:
    cells = random_sites(dimension, 8, 60).to(device)
    return ME.SparseTensor(torch.randn(len(cells), 4, dtype=working_type(device), device=device), cells)


@pytest.mark.parametrize("pool", POOLS)
def test_the_fifth_argument_of_a_pool_is_its_dimension(device: torch.device, pool: type) -> None:
    x = tensor(device)
    for layer in (pool(2, 2, 1, None, 3), pool(kernel_size=2, stride=2, dimension=3)):
        assert layer.dimension == 3 and not layer.is_transpose
        y = layer(x)
        assert y.tensor_stride == [2, 2, 2]
        assert torch.equal(y.C, pool(2, 2, dimension=3)(x).C)
    kernel = ME.KernelGenerator(2, 2, dimension=3)
    assert pool(2, 2, 1, kernel, 3).kernel_generator is kernel
    with pytest.raises(TypeError, match="expand_coordinates"):
        pool(2, 2, expand_coordinates=True, dimension=3)


def test_the_base_of_pools_takes_direction_and_mode(device: torch.device) -> None:
    base = ME.MinkowskiPooling.MinkowskiPoolingBase
    x, mode = tensor(device), ME.PoolingMode.LOCAL_MAX_POOLING
    layer = base(2, 2, 1, None, False, mode, 3)
    assert isinstance(ME.MinkowskiMaxPooling(2, dimension=3), base)
    torch.testing.assert_close(layer(x).F, ME.MinkowskiMaxPooling(2, 2, dimension=3)(x).F)
    assert base(2, dimension=2).pooling_mode is ME.PoolingMode.LOCAL_AVG_POOLING
    with pytest.raises(PeerAssertionError, match="pooling mode = 3: give a PoolingMode"):
        base(2, pooling_mode=3, dimension=3)


def test_only_the_way_back_expands_coordinates(device: torch.device) -> None:
    """A kernel_generator's `expand_coordinates` is for convolutions and the transposed pool."""
    x = tensor(device)
    wide = ME.KernelGenerator(3, 1, expand_coordinates=True, dimension=3)
    for pool in POOLS:
        layer = pool(3, kernel_generator=wide, dimension=3)
        assert torch.equal(layer(x).C, x.C)
    features = ME.MinkowskiPooling.MinkowskiLocalPoolingFunction.apply(
        x.F, ME.PoolingMode.LOCAL_SUM_POOLING, wide, x.coordinate_map_key, None, x.coordinate_manager
    )
    assert features.shape == x.F.shape
    y = ME.MinkowskiSumPooling(2, 2, dimension=3)(x)
    back = ME.MinkowskiPoolingTranspose(2, 2, 1, None, True, 3)(y)
    assert len(back) == 8 * len(y)
    assert torch.equal(ME.MinkowskiPoolingTranspose(2, 2, dimension=3)(y).C, x.C)


LAYERS = {
    "pool": lambda **given: ME.MinkowskiMaxPooling(2, **given),
    "transposed pool": lambda **given: ME.MinkowskiPoolingTranspose(2, 2, **given),
    "convolution": lambda **given: ME.MinkowskiConvolution(4, 4, 2, **given),
    "transposed convolution": lambda **given: ME.MinkowskiConvolutionTranspose(4, 4, 2, **given),
    "generative convolution": lambda **given: ME.MinkowskiGenerativeConvolutionTranspose(4, 4, 2, **given),
    "channelwise": lambda **given: ME.MinkowskiChannelwiseConvolution(4, 2, **given),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_dimension_that_is_missing_or_another_one_is_said(layer: str) -> None:
    for given in ({}, {"dimension": None}, {"dimension": 0}, {"dimension": 5}):
        with pytest.raises(PeerAssertionError, match="dimension = .*: give 1 to 4, the number of axes"):
            LAYERS[layer](**given)
    kernel = ME.KernelGenerator(2, dimension=3)
    with pytest.raises(PeerAssertionError, match="dimension = (None|-1): give 1 to 4"):
        LAYERS[layer](kernel_generator=kernel)
    with pytest.raises(pumice.UserError, match="has dimension 2, and its input 3: give dimension=3"):
        LAYERS[layer](dimension=2)(tensor(torch.device("cpu")))


def test_a_pool_shows_its_kernel() -> None:
    text = "MinkowskiMaxPooling(kernel_size=[3, 3], stride=[2, 2], dilation=[1, 1])"
    assert repr(ME.MinkowskiMaxPooling(3, 2, dimension=2)) == text


def test_the_sites_of_a_channelwise_convolution_are_called_coords(device: torch.device) -> None:
    x = tensor(device)
    layer = ME.MinkowskiChannelwiseConvolution(4, 3, 1, dimension=3).to(device, x.dtype)
    y = layer(x, coords=x.coordinate_map_key)
    assert torch.equal(y.C, x.C)
    torch.testing.assert_close(y.F, layer(x).F)


def cells() -> torch.Tensor:
    return torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]], dtype=torch.int32)


ROWS = torch.ones(2, 4)
WRONG = {
    "coordinate_manager = 5: give a CoordinateManager": [
        lambda: ME.SparseTensor(ROWS, cells(), coordinate_manager=5),
        lambda: ME.TensorField(ROWS, cells().float(), coordinate_manager=5),
        lambda: ME.set_global_coordinate_manager(5),
    ],
    "coordinate_map_key = 5: give a CoordinateMapKey": [
        lambda: ME.SparseTensor(ROWS, cells(), coordinate_map_key=5),
        lambda: ME.CoordinateManager(D=3).size(5),
        lambda: ME.CoordinateManager(D=3).stride(5, 2),
    ],
    "coordinate_field_map_key = 5: give a CoordinateMapKey": [
        lambda: ME.TensorField(ROWS, coordinate_field_map_key=5, coordinate_manager=ME.CoordinateManager(D=3)),
    ],
    "kernel_generator = 5: give a KernelGenerator": [
        lambda: ME.MinkowskiPoolingTranspose(2, 2, kernel_generator=5, dimension=3),
        *(lambda name=name: LAYERS[name](kernel_generator=5, dimension=3) for name in LAYERS if "pool" not in name),
        *(lambda pool=pool: pool(2, kernel_generator=5, dimension=3) for pool in POOLS),
    ],
    "quantization_mode = 'average': give ME.SparseTensorQuantizationMode.RANDOM_SUBSAMPLE, UNWEIGHTED_AVERAGE,": [
        lambda: ME.SparseTensor(ROWS, cells(), quantization_mode="average"),
        lambda: ME.TensorField(ROWS, cells().float(), quantization_mode="average"),
        lambda: ME.TensorField(ROWS, cells().float()).sparse(quantization_mode="average"),
    ],
    "minkowski_algorithm = 2: give ME.MinkowskiAlgorithm.DEFAULT, MEMORY_EFFICIENT or SPEED_OPTIMIZED": [
        lambda: ME.SparseTensor(ROWS, cells(), minkowski_algorithm=2),
        lambda: ME.TensorField(ROWS, cells().float(), minkowski_algorithm=2),
        lambda: ME.CoordinateManager(D=3, minkowski_algorithm=2),
    ],
    "pooling mode = 'max': give a PoolingMode": [
        lambda: ME.MinkowskiGlobalPooling("max"),
        lambda: ME.MinkowskiPooling.MinkowskiPoolingBase(2, pooling_mode="max", dimension=3),
    ],
    "operation_mode = 1: give ME.SparseTensorOperationMode.SEPARATE_COORDINATE_MANAGER or SHARE": [
        lambda: ME.set_sparse_tensor_operation_mode(1),
    ],
    "convolution_mode = 1: give ME.ConvolutionMode": [
        lambda: ME.MinkowskiConvolution(4, 4, 3, convolution_mode=1, dimension=3),
    ],
    "coordinate_map_type = 'cpu': give ME.CoordinateMapType.CPU": [
        lambda: ME.CoordinateManager(3, coordinate_map_type="cpu"),
    ],
    "backend = 0: give ME.GPUMemoryAllocatorType.PYTORCH or CUDA": [lambda: ME.set_gpu_allocator(0)],
    "tensor_stride = 2.5: give one whole number, or one for each of 3 axes": [
        lambda: ME.SparseTensor(ROWS, cells(), tensor_stride=2.5),
        lambda: ME.TensorField(ROWS, cells().float(), tensor_stride=2.5),
    ],
    "tensor_stride = '222': give": [
        lambda: ME.SparseTensor(ROWS, cells(), tensor_stride="222"), lambda: ME.CoordinateMapKey("222"),
    ],
    "tensor_stride = [2.5, 2, 2]: give one": [lambda: ME.SparseTensor(ROWS, cells(), tensor_stride=[2.5, 2, 2])],
    "stride = 'a': give one whole number": [lambda: ME.KernelGenerator(3, stride="a", dimension=3)],
    "kernel_size = [3, 3]: give one whole number": [lambda: ME.KernelGenerator([3, 3], dimension=3)],
    "coordinates = 5: give a SparseTensor, a CoordinateMapKey, or a tensor [N, 4]": [
        lambda: ME.MinkowskiConvolution(4, 4, 3, dimension=3)(ME.SparseTensor(ROWS, cells()), 5),
    ],
}  # fmt: skip


@pytest.mark.parametrize("said", WRONG)
def test_an_argument_of_a_wrong_kind_is_refused_where_it_is_given(said: str) -> None:
    for call in WRONG[said]:
        with pytest.raises(PeerAssertionError) as caught:
            call()
        assert said in str(caught.value) and "\n" not in str(caught.value)
    assert ME.sparse_tensor_operation_mode() is ME.SparseTensorOperationMode.SEPARATE_COORDINATE_MANAGER


def test_numbers_of_other_types_are_strides() -> None:
    for stride in (2, 2.0, np.int64(2), torch.tensor(2), [2, 2, 2], (2.0, 2, 2), torch.tensor([2, 2, 2])):
        assert ME.SparseTensor(ROWS, 2 * cells(), tensor_stride=stride).tensor_stride == [2, 2, 2]
    assert ME.CoordinateMapKey(np.int64(4)).get_coordinate_size() == 4
    assert ME.CoordinateMapKey(np.array([1, 1, 1])) == ME.CoordinateMapKey([1, 1, 1])


def test_functions_of_sparse_tensors_say_what_else_they_were_given() -> None:
    x = ME.SparseTensor(ROWS, cells())
    elsewhere = ME.MinkowskiConvolution(4, 4, 2, stride=2, dimension=3)(x)
    for name in ("cat", "sum", "mean", "var"):
        join = getattr(ME, name)
        for call, said in (
            (lambda: join(x, ROWS), r"tensors[1] is a torch.Tensor: give sparse tensors at the same coordinates"),
            (lambda: join(5), "tensors[0] is an int: give sparse tensors"),
            (lambda: join([]), "tensors is empty: give at least one SparseTensor"),
            (lambda: join(x, ME.SparseTensor(ROWS, cells())), "tensors[1] has another coordinate manager than"),
            (lambda: join(x, elsewhere), "tensors[1] is at coordinate map key:[2, 2, 2] and tensors[0] at"),
        ):
            with pytest.raises(pumice.UserError, match=re.escape(f"ME.{name}: {said}")):
                call()
    for call, said in (
        (lambda: ME.MinkowskiUnion()(x, 5), "MinkowskiUnion: inputs[1] is an int"),
        (lambda: ME.MinkowskiBroadcastAddition()(x, ROWS), "input_glob is a Tensor"),
        (lambda: ME.MinkowskiPruning()(ROWS, torch.ones(2) > 0), "input is a Tensor"),
        (lambda: ME.MinkowskiFunctional.relu(ROWS), "input is a Tensor"),
        (lambda: x.slice(5), "slice: X is an int"),
    ):
        with pytest.raises(TypeError, match=re.escape(said) + ": give a SparseTensor, as ME.SparseTensor"):
            call()


def test_type_and_device_of_a_batch_by_their_places(device: torch.device) -> None:
    clouds = [(torch.tensor([[0.5, 1.5]]) + item, torch.ones(1, 3), torch.tensor([item])) for item in range(2)]
    coordinates, features, labels = batch_sparse_collate(clouds, torch.float32, device)
    assert coordinates.tolist() == [[0, 0.5, 1.5], [1, 1.5, 2.5]] and labels.tolist() == [0, 1]
    assert coordinates.device.type == features.device.type == device.type
    assert batch_sparse_collate(clouds)[0].tolist() == [[0, 0, 1], [1, 1, 2]]
    whole = SparseCollation(-1, torch.float32, device)
    assert (whole.limit_numpoints, whole.dtype, whole.device) == (-1, torch.float32, device)
    assert torch.equal(whole(clouds)[0], coordinates)


def test_names_of_a_managers_arguments(device: torch.device) -> None:
    x = tensor(device)
    manager, key = x.coordinate_manager, x.coordinate_map_key
    assert manager.size(coordinate_map_key=key) == len(x)
    for named in (key, 1, [1, 1, 1]):
        assert torch.equal(manager.get_coordinates(coords_key_or_tensor_strides=named), x.C)
    field = ME.TensorField(x.F, x.C.float() + 0.25)
    sites = field.sparse()
    rows = field.inverse_mapping(sparse_tensor_map_key=sites.coordinate_map_key)
    assert torch.equal(sites.F[rows], field.F)
    ME.set_global_coordinate_manager(coordinate_manager=manager)
    assert ME.global_coordinate_manager() is manager
    ME.clear_global_coordinate_manager()


def test_the_input_of_the_stable_norm_is_called_x(device: torch.device) -> None:
    x = tensor(device)
    layer = ME.MinkowskiStableInstanceNorm(4).to(device, x.dtype)
    torch.testing.assert_close(layer(x=x).F, layer(x).F)


def test_coordinates_between_the_steps_of_a_stride_give_a_warning(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_checks, "_warned", set())
    cells = torch.tensor([[0, 4, -2], [0, 0, 2]], dtype=torch.int32, device=device)
    rows = torch.ones(2, 1, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(ME.SparseTensor(rows, cells, tensor_stride=2).C, cells)
        ME.SparseTensor(rows, cells + 1)
        ME.TensorField(rows, cells.float() + 1).sparse(tensor_stride=2)
    with pytest.warns(UserWarning, match=r"no multiples of tensor_stride = \[2, 2\].*coordinates // stride \* stride"):
        x = ME.SparseTensor(rows, cells + 1, tensor_stride=2)
    assert x.C[:, 1:].tolist() == [[4, -2], [0, 2]]
