"""The operators of torch.library: checked by PyTorch's own tests, traced, compiled."""

from __future__ import annotations

import pytest
import torch
from conftest import close, random_tensor, working_type

import pumice
from pumice import _C, nn

pytestmark = pytest.mark.filterwarnings("ignore")


def token_and_map(x: pumice.SparseTensor, layer: torch.nn.Module):
    map, _ = layer.find(x, None)
    return _C.map_token(map), map


@pytest.mark.parametrize("name", ["SubMConv3d", "Conv3d"])
def test_opcheck(device: torch.device, name: str) -> None:
    type_ = working_type(device)
    x = random_tensor(extent=5, count=40, dtype=type_, device=device)
    layer = getattr(nn, name)(4, 6, 3).to(device, type_)
    token, map = token_and_map(x, layer)
    sizes = (map.in_rows, map.out_rows)
    grad = torch.randn(map.out_rows, 6, dtype=type_, device=device, requires_grad=True)
    weight, bias = layer.weight, layer.bias
    torch.library.opcheck(
        torch.ops.pumice.convolution.default, (x.features, weight, bias, token, *sizes, 1)
    )
    torch.library.opcheck(
        torch.ops.pumice.convolution_input_gradient.default, (grad, weight, token, *sizes, 1)
    )
    torch.library.opcheck(
        torch.ops.pumice.convolution_weight_gradient.default,
        (x.features, grad, token, *sizes, 27, 1),
    )
    numbers = layer.window.numbers
    torch.library.opcheck(
        torch.ops.pumice.strided_map.default,
        (x.coords.token, x.indices, numbers, False),
        test_utils=("test_schema", "test_faketensor"),
    )


def test_operators_and_eager_calls_agree(device: torch.device) -> None:
    type_ = working_type(device)
    x = random_tensor(dtype=type_, device=device)
    layer = nn.Conv3d(4, 6, 3, 2, 1).to(device, type_)
    token, map = token_and_map(x, layer)
    mine = torch.ops.pumice.convolution(
        x.features, layer.weight, layer.bias, token, map.in_rows, map.out_rows, 1
    )
    eager = layer(x).features
    assert torch.equal(mine, eager)
    inputs = (x.features, layer.weight, layer.bias)
    weights = torch.randn_like(mine)
    for a, b in zip(
        torch.autograd.grad((mine * weights).sum(), inputs),
        torch.autograd.grad((eager * weights).sum(), inputs),
    ):
        close(a, b, 1000)


def test_operators_pass_gradcheck() -> None:
    x = random_tensor(2, 4, 9, channels=2, batch=1)
    layer = nn.SubMConv2d(2, 2, 3).double()
    token, map = token_and_map(x, layer)
    sizes = (map.in_rows, map.out_rows)

    def run(features, weight, bias):
        return torch.ops.pumice.convolution(features, weight, bias, token, *sizes, 1)

    inputs = (x.features, layer.weight, layer.bias)
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


def test_tokens_own_what_they_stand_for() -> None:
    x = random_tensor()
    token = _C.sites_token(x.coords.sites)
    copy = token.clone()
    assert _C.sites_of(token).rows == len(x)
    assert _C.sites_of(copy).is_same(x.coords.sites)
    view = token.detach()
    del token
    assert _C.sites_of(view).rows == len(x)
    del view
    with pytest.raises(ValueError, match="no coordinates and no map"):
        _C.sites_of(copy)
    with pytest.raises(ValueError, match="of a map"):
        _C.map_of(x.coords.token)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("strided", [False, True])
def test_compiles_without_a_graph_break(
    device: torch.device, backend: str, strided: bool
) -> None:
    type_ = working_type(device)
    layers = [nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8), nn.ReLU()]
    if strided:
        layers.append(nn.Conv3d(8, 8, 2, 2))
    layers.append(nn.SubMConv3d(8, 3, 3))
    net = nn.Sequential(*layers).to(device, type_)
    net.eval()
    torch._dynamo.reset()

    def run(x: pumice.SparseTensor) -> torch.Tensor:
        return net(x).features

    compiled = torch.compile(run, backend=backend, fullgraph=True, dynamic=True)
    for seed in (1, 2, 3):
        x = random_tensor(count=100 + 50 * seed, dtype=type_, device=device, seed=seed)
        expected = run(x)
        found = compiled(x)
        close(found, expected, 1000)
        wanted = (x.features, *net.parameters())
        weights = torch.randn_like(expected)
        for a, b in zip(
            torch.autograd.grad((found * weights).sum(), wanted),
            torch.autograd.grad((expected * weights).sum(), wanted),
        ):
            close(a, b, 10000)
