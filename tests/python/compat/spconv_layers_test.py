"""Layers with spconv's parameters against dense layers of PyTorch, forward and all gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from conftest import agree, at_sites, close, random_sites, working_type

import pumice.compat.spconv as spconv

EXTENT = 9
DENSE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
DENSE_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def random_input(
    dimension: int, channels: int, device: torch.device, count: int = 300, extent: int = EXTENT
) -> spconv.SparseConvTensor:
    cells = random_sites(dimension, extent, count).to(device)
    features = torch.randn(len(cells), channels, dtype=working_type(device)).to(device)
    return spconv.SparseConvTensor(features.requires_grad_(), cells, [extent] * dimension, 2)


def layer(name: str, dimension: int, device: torch.device, *arguments: object, **options: object):
    module = getattr(spconv, f"{name}{dimension}d")(*arguments, **options)
    return module.to(device, working_type(device))


def convolution(device: torch.device, *arguments: object, **options: object) -> spconv.SparseConvolution:
    return spconv.SparseConvolution(*arguments, **options).to(device, working_type(device))


def dense_of(x: spconv.SparseConvTensor) -> torch.Tensor:
    grid = x.features.new_zeros((x.batch_size, *x.spatial_shape, x.features.shape[1]))
    return grid.index_put(tuple(x.indices.long().unbind(1)), x.features).movedim(-1, 1)


def compare(y: torch.Tensor, expected: torch.Tensor, *wanted: torch.Tensor) -> None:
    agree(y, expected, wanted, 400)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("kernel, dilation, groups", [(3, 1, 1), (5, 1, 1), (3, 2, 1), (3, 1, 2)])
def test_submanifold(
    device: torch.device, dimension: int, kernel: int, dilation: int, groups: int
) -> None:
    x = random_input(dimension, 4, device)
    # Padding is ignored: it would otherwise move the window off its output.
    module = layer("SubMConv", dimension, device, 4, 6, kernel, 1, 7, dilation, groups)
    assert module.weight.shape == (6, *[kernel] * dimension, 4 // groups)
    y = module(x)
    assert y.indices is x.indices and y.spatial_shape == x.spatial_shape
    dense = DENSE[dimension](
        dense_of(x), module.weight.movedim(-1, 1), module.bias,
        padding=(kernel - 1) // 2 * dilation, dilation=dilation, groups=groups,
    )  # fmt: skip
    compare(y.features, at_sites(dense, x.indices), x.features, module.weight, module.bias)


@pytest.mark.parametrize("kernel", [(1, 3, 3), (3, 1, 3), (3, 3, 1), (5, 3, 1)])
def test_submanifold_of_unequal_axes(device: torch.device, kernel: tuple[int, ...]) -> None:
    x = random_input(3, 4, device)
    module = layer("SubMConv", 3, device, 4, 6, kernel, bias=False)
    y = module(x)
    padding = [size // 2 for size in kernel]
    dense = F.conv3d(dense_of(x), module.weight.movedim(-1, 1), padding=padding)
    compare(y.features, at_sites(dense, x.indices), x.features, module.weight)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize(
    "kernel, stride, padding, dilation",
    [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (1, 2, 0, 1), (3, 2, 2, 2)],
)
def test_strided(
    device: torch.device, dimension: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    x = random_input(dimension, 3, device)
    module = layer("SparseConv", dimension, device, 3, 5, kernel, stride, padding, dilation)
    y = module(x)
    dense = DENSE[dimension](
        dense_of(x), module.weight.movedim(-1, 1), module.bias, stride, padding, dilation
    )
    assert y.spatial_shape == list(dense.shape[2:])
    compare(y.features, at_sites(dense, y.indices), x.features, module.weight, module.bias)
    # Sites are those that an input reaches, each once.
    ones = dense_of(x.replace_feature(torch.ones_like(x.features[:, :1])))
    reached = DENSE[dimension](
        ones, torch.ones((1, 1, *[kernel] * dimension)).to(ones), None, stride, padding, dilation
    )
    assert len(torch.unique(y.indices, dim=0)) == len(y.indices) == int((reached > 0).sum())


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("kernel, stride, padding", [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
def test_transposed(
    device: torch.device, dimension: int, kernel: int, stride: int, padding: int
) -> None:
    x = random_input(dimension, 3, device)
    module = layer("SparseConvTranspose", dimension, device, 3, 5, kernel, stride, padding)
    y = module(x)
    dense = DENSE_TRANSPOSED[dimension](
        dense_of(x), module.weight.movedim(-1, 0), module.bias, stride, padding
    )
    assert y.spatial_shape == list(dense.shape[2:])
    compare(y.features, at_sites(dense, y.indices), x.features, module.weight, module.bias)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("kernel, stride, padding, more", [(3, 2, 1, 1), (2, 2, 0, 1), (5, 3, 2, 2)])
def test_output_padding_enlarges_the_grid_behind_its_end(
    device: torch.device, dimension: int, kernel: int, stride: int, padding: int, more: int
) -> None:
    x = random_input(dimension, 3, device)
    short, long = (
        convolution(
            device, dimension, 3, 5, kernel, stride, padding,
            output_padding=extra, transposed=True, indice_key=f"up{extra}",
        )
        for extra in (0, more)
    )  # fmt: skip
    long.load_state_dict(short.state_dict())
    y = long(x)
    dense = DENSE_TRANSPOSED[dimension](
        dense_of(x), long.weight.movedim(-1, 0), long.bias, stride, padding, more
    )
    assert y.spatial_shape == list(dense.shape[2:])
    compare(y.features, at_sites(dense, y.indices), x.features, long.weight, long.bias)
    ones = dense_of(x.replace_feature(torch.ones_like(x.features[:, :1])))
    reached = DENSE_TRANSPOSED[dimension](
        ones, torch.ones((1, 1, *[kernel] * dimension)).to(ones), None, stride, padding, more
    )
    assert len(y.indices) == int((reached > 0).sum()) >= len(short(x).indices)
    if padding > 0:  # sites behind the end that the shorter grid has
        assert (y.indices[:, 1:] >= y.spatial_shape[0] - more).any()
    # Back through its map, and onto nothing else that the shorter one left.
    back = layer("SparseInverseConv", dimension, device, 5, 3, kernel, f"up{more}")
    assert back(y).indices is x.indices
    assert short.window != long.window


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("kernel, stride, padding", [(2, 2, 0), (3, 2, 1)])
def test_inverse_goes_back_through_the_map_of_its_key(
    device: torch.device, dimension: int, kernel: int, stride: int, padding: int
) -> None:
    x = random_input(dimension, 3, device, extent=8)
    down = layer("SparseConv", dimension, device, 3, 4, kernel, stride, padding, indice_key="down")
    coarse = down(x)
    coarse = coarse.replace_feature(coarse.features.detach().requires_grad_())
    module = layer("SparseInverseConv", dimension, device, 4, 5, kernel, "down")
    y = module(coarse)
    assert y.indices is x.indices and y.spatial_shape == x.spatial_shape
    extra = 8 - ((coarse.spatial_shape[0] - 1) * stride - 2 * padding + kernel)
    dense = DENSE_TRANSPOSED[dimension](
        dense_of(coarse), module.weight.movedim(-1, 0), module.bias, stride, padding,
        extra,
    )  # fmt: skip
    wanted = coarse.features, module.weight, module.bias
    compare(y.features, at_sites(dense, x.indices), *wanted)


def test_four_dimensions_are_a_sum_of_three(device: torch.device) -> None:
    x = random_input(4, 3, device, 800, 6)
    module = layer("SubMConv", 4, device, 3, 5, 3, indice_key="a")
    dense = F.pad(dense_of(x), (0, 0, 0, 0, 0, 0, 1, 1))
    weight = module.weight.movedim(-1, 1)
    planes = [
        sum(F.conv3d(dense[:, :, t + k], weight[:, :, k], padding=1) for k in range(3))
        for t in range(6)
    ]
    expected = torch.stack(planes, 2) + module.bias.reshape(1, -1, 1, 1, 1, 1)
    y = module(x)
    compare(y.features, at_sites(expected, x.indices), x.features, module.weight)
    down = layer("SparseConv", 4, device, 5, 4, 2, 2, indice_key="d")
    up = layer("SparseInverseConv", 4, device, 4, 3, 2, "d")
    assert up(down(y)).indices is x.indices
    assert layer("SparseConvTranspose", 4, device, 3, 4, 2, 2)(x).spatial_shape == [12] * 4


@pytest.mark.parametrize("name", ["SubMConv", "SparseConv"])
def test_one_by_one_reads_its_memory_as_spconv_does(device: torch.device, name: str) -> None:
    x = random_input(3, 4, device)
    module = layer(name, 3, device, 4, 6, 1)
    assert module.weight.shape == (6, 1, 1, 1, 4)
    y = module(x)
    expected = x.features @ module.weight.reshape(4, 6) + module.bias
    compare(y.features, expected, x.features, module.weight, module.bias)


@pytest.mark.parametrize("name", ["SubMConv", "SparseConv", "SparseConvTranspose"])
@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(device: torch.device, name: str, rows: int) -> None:
    cells = torch.zeros((rows, 4), dtype=torch.int32, device=device)
    features = torch.ones((rows, 4), device=device, requires_grad=True)
    x = spconv.SparseConvTensor(features, cells, [5, 5, 5], 1)
    module = getattr(spconv, f"{name}3d")(4, 8, 3, padding=1).to(device)
    y = spconv.SparseSequential(module, torch.nn.BatchNorm1d(8).to(device).eval())(x)
    assert y.features.shape[1] == 8
    y.features.sum().backward()
    assert features.grad.shape == (rows, 4)
    assert y.dense().shape == (1, 8, *y.spatial_shape)


def test_activation_comes_after_what_is_added(device: torch.device) -> None:
    gemm = spconv.cumm.tensorview.gemm
    x = random_input(2, 4, device)
    module = spconv.SparseConvolution(
        2, 4, 4, 3, subm=True, act_type=gemm.Activation.LeakyReLU, act_alpha=0.1
    ).to(device, working_type(device))
    y = module(x, add_input=x)
    module.act_type = gemm.Activation.None_
    close(y.features, F.leaky_relu(module(x).features + x.features, 0.1), 9)


def test_evaluation_keeps_up_with_changed_weights(device: torch.device) -> None:
    x = random_input(3, 16, device)
    module = layer("SubMConv", 3, device, 16, 16, 3, bias=False).eval()
    with torch.no_grad():
        before = module(x).features
        module.weight.mul_(2)
        close(module(x).features, before * 2, 432)
    with torch.inference_mode():
        close(module(x).features, before * 2, 432)
        close(module(x).features, before * 2, 432)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_computes_in_its_type(device: torch.device, dtype: torch.dtype) -> None:
    cells = random_sites(3, EXTENT, 300).to(device)
    features = torch.randn(len(cells), 16, device=device)
    x = spconv.SparseConvTensor(features, cells, [EXTENT] * 3, 2)
    for module in (spconv.SubMConv3d(16, 16, 3), spconv.SubMConv3d(16, 16, 1)):
        module = module.to(device)
        exact = module(x).features
        for mode in (module.train(), module.eval()):
            with torch.autocast(device.type, dtype):
                y = mode(x).features
            assert y.dtype == dtype
            torch.testing.assert_close(y.float(), exact, rtol=0, atol=0.05)


def test_half_features_meet_whole_weights(device: torch.device) -> None:
    x = random_input(3, 16, device)
    x = x.replace_feature(x.features.half())
    for module in (spconv.SubMConv3d(16, 16, 3), spconv.SubMConv3d(16, 16, 1)):
        assert module.to(device)(x).features.dtype == torch.float32
