"""Convolution layers against dense convolution of PyTorch, forward and both gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from conftest import agree, at_sites, close, dense_of, random_tensor, working_type

import pumice
from pumice import nn

DENSE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
DENSE_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
EXTENT = 9


def layer(name: str, dimension: int, *arguments: object, **options: object) -> torch.nn.Module:
    return getattr(nn, f"{name}{dimension}d")(*arguments, **options)


def compare(module: torch.nn.Module, x: pumice.SparseTensor, y: torch.Tensor, expected: torch.Tensor):
    sums = module.weight.shape[0] * module.weight.shape[1]
    agree(y, expected, (x.features, *module.parameters()), sums)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize(
    "kernel, dilation, groups", [(3, 1, 1), (1, 1, 1), (5, 1, 1), (3, 2, 1), (3, 1, 2), (3, 1, 4)]
)
def test_submanifold_is_dense_convolution_at_the_sites(
    device: torch.device, dimension: int, kernel: int, dilation: int, groups: int
) -> None:
    type_ = working_type(device)
    x = random_tensor(dimension, EXTENT, channels=4, dtype=type_, device=device)
    module = layer("SubMConv", dimension, 4, 8, kernel, dilation=dilation, groups=groups)
    module = module.to(device, type_)
    y = module(x)
    assert y.coords is x.coords
    dense = DENSE[dimension](
        dense_of(x, EXTENT),
        module.dense_weight(),
        module.bias,
        padding=(kernel - 1) // 2 * dilation,
        dilation=dilation,
        groups=groups,
    )
    compare(module, x, y.features, at_sites(dense, x.indices))


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize(
    "kernel, stride, padding, dilation", [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (3, 3, 0, 1), (3, 2, 2, 2)]
)
@pytest.mark.parametrize("outputs", ["dilating", "cell"])
def test_strided_is_dense_convolution_at_its_outputs(
    device: torch.device,
    dimension: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    outputs: str,
) -> None:
    type_ = working_type(device)
    x = random_tensor(dimension, EXTENT, channels=3, dtype=type_, device=device)
    module = layer(
        "Conv", dimension, 3, 5, kernel, stride, padding, dilation, outputs=outputs
    ).to(device, type_)
    y = module(x)
    dense = DENSE[dimension](
        dense_of(x, EXTENT),
        module.dense_weight(),
        module.bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    cells = y.indices.long()
    inside = (cells[:, 1:] < torch.tensor(dense.shape[2:], device=device)).all(1)
    assert y.stride == (stride,) * dimension
    if outputs == "dilating":
        assert inside.all()
        # Every output that an input reaches is a site, and no other.
        reached = DENSE[dimension](
            dense_of(x.replace(features=torch.ones_like(x.features[:, :1])), EXTENT),
            torch.ones((1, 1, *[kernel] * dimension), dtype=type_, device=device),
            stride=stride,
            padding=padding,
            dilation=dilation,
        )
        assert int((reached > 0).sum()) == len(y)
    if inside.all():
        compare(module, x, y.features, at_sites(dense, y.indices))


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_transposed_is_dense_transposed_convolution(
    device: torch.device, dimension: int
) -> None:
    type_ = working_type(device)
    fine = random_tensor(dimension, 8, channels=2, dtype=type_, device=device)
    down = layer("Conv", dimension, 2, 4, 2, 2, bias=False).to(device, type_)
    x = down(fine)
    x = x.replace(features=x.features.detach().requires_grad_())
    module = layer("ConvTranspose", dimension, 4, 3, 2, 2).to(device, type_)
    y = module(x, fine)
    assert y.coords is fine.coords
    weight = module.dense_weight().transpose(0, 1)
    dense = DENSE_TRANSPOSED[dimension](dense_of(x, 4), weight, module.bias, stride=2)
    compare(module, x, y.features, at_sites(dense, fine.indices))

    inverse = layer("InverseConv", dimension, 4, 3, 2, 2).to(device, type_)
    inverse.load_state_dict(module.state_dict())
    back = inverse(x)
    assert back.coords.is_same(fine.coords)
    close(back.features, y.features, 4)
    generative = layer("GenerativeConvTranspose", dimension, 4, 3, 2, 2).to(device, type_)
    generative.load_state_dict(module.state_dict())
    grown = generative(x)
    assert len(grown) == len(x) * 2**dimension
    close(grown.features, at_sites(dense, grown.indices), 4)


def test_four_dimensions_are_a_sum_of_three(device: torch.device) -> None:
    type_ = working_type(device)
    x = random_tensor(4, 6, 800, channels=3, dtype=type_, device=device)
    module = nn.SubMConv4d(3, 5, 3).to(device, type_)
    y = module(x)
    dense = F.pad(dense_of(x, 6), (0, 0, 0, 0, 0, 0, 1, 1))
    weight = module.dense_weight()
    planes = [
        sum(F.conv3d(dense[:, :, t + k], weight[:, :, k], padding=1) for k in range(3))
        for t in range(6)
    ]
    expected = torch.stack(planes, 2) + module.bias.reshape(1, -1, 1, 1, 1, 1)
    compare(module, x, y.features, at_sites(expected, x.indices))


@pytest.mark.parametrize("groups", [1, 2])
def test_gradcheck_twice(groups: int) -> None:
    x = random_tensor(2, 4, 9, channels=2, batch=1)
    map = pumice.ops.submanifold_map(x.coords, nn.SubMConv2d(1, 1, 3).window)
    weight = torch.randn(9, 2 // groups, 2, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, dtype=torch.float64, requires_grad=True)

    def run(features: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return pumice.ops.convolution(features, weight, map, bias, groups)

    assert torch.autograd.gradcheck(run, (x.features, weight, bias))
    assert torch.autograd.gradgradcheck(run, (x.features, weight, bias))


@pytest.mark.parametrize("name", ["SubMConv3d", "Conv3d", "GenerativeConvTranspose3d"])
def test_no_rows_in_none_out(device: torch.device, name: str) -> None:
    cells = torch.zeros((0, 4), dtype=torch.int32, device=device)
    features = torch.zeros((0, 4), device=device, requires_grad=True)
    x = pumice.SparseTensor(cells, features, batch_size=1)
    module = getattr(nn, name)(4, 8, 3).to(device)
    y = module(x)
    assert y.features.shape == (0, 8)
    y.features.sum().backward()
    assert features.grad.shape == (0, 4)
    assert module.weight.grad.abs().max() == 0


def test_evaluation_keeps_up_with_changed_weights(device: torch.device) -> None:
    x = random_tensor(dtype=torch.float32, channels=16, device=device)
    module = nn.SubMConv3d(16, 16, 3).to(device).eval()
    with torch.no_grad():
        before = module(x).features
        assert torch.equal(before, module(x).features)
        module.weight.mul_(2)
        module.bias.mul_(2)
        close(module(x).features, before * 2, 432)
        # What PyTorch's version counters do not see.
        module.weight.data.mul_(2)
        module.bias.data.mul_(2)
        close(module(x).features, before * 4, 864)


def test_frozen_layers_give_the_same_until_they_are_frozen_again(device: torch.device) -> None:
    x = random_tensor(dtype=torch.float32, channels=16, device=device)
    module = nn.SubMConv3d(16, 16, 3).to(device).eval()
    with torch.no_grad():
        before = module(x).features
        assert nn.freeze(module) is module
        assert torch.equal(before, module(x).features)
        assert torch.equal(before, module(x).features)
        module.weight.data.mul_(2)
        module.bias.data.mul_(2)
        nn.freeze(module)
        close(module(x).features, before * 2, 432)


def test_layers_made_in_inference_mode(device: torch.device) -> None:
    x = random_tensor(dtype=torch.float32, channels=4, device=device)
    with torch.inference_mode():
        layer = nn.SubMConv3d(4, 4, 3).to(device).eval()
        fused = nn.Sequential(layer, nn.BatchNorm(4), nn.ReLU()).to(device).eval()
        before, after = layer(x).features, fused(x).features
        nn.freeze(fused)
        for _ in range(2):
            assert torch.equal(layer(x).features, before)
            assert torch.equal(fused(x).features, after)
        close(after, torch.relu(fused[1](layer(x)).features), 108)


@pytest.mark.parametrize("dataflow", ["implicit_gemm", "fetch_on_demand", "gather_gemm_scatter"])
def test_dataflows_agree(device: torch.device, dataflow: str) -> None:
    x = random_tensor(dtype=torch.float32, channels=16, device=device)
    module = nn.SubMConv3d(16, 32, 3).to(device)
    expected = module(x).features
    module.dataflow = dataflow
    close(module(x).features, expected, 432)
