"""SAGEConv takes its product before or after the sum over edges, whichever is cheaper: the numbers are PyG's either way, what a hook or
a class of a user's does is not passed by."""

import warnings

import pytest
import torch

import pumice
from pumice import nn, ops

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its imports
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed: pip install torch_geometric")

NODES, CHANNELS = 33, 6


def edges():
    return torch.randint(0, NODES, (2, 200), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("root_weight", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("aggr", ["mean", "add", "max"])
@pytest.mark.parametrize("wide", [4, CHANNELS, 9])
def test_numbers_and_gradients_are_those_of_pyg(wide, aggr, bias, root_weight):
    options = {"aggr": aggr, "bias": bias, "root_weight": root_weight}
    theirs = pyg.SAGEConv(CHANNELS, wide, **options).double()
    ours = nn.graph.SAGEConv(CHANNELS, wide, **options).double()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(NODES, CHANNELS, dtype=torch.float64)
    made = []
    for layer in (theirs, ours):
        given = x.clone().requires_grad_()
        output = layer(given, edges())
        made.append([output, *torch.autograd.grad(output.square().sum(), [given, *layer.parameters()])])
    for theirs_value, ours_value in zip(*made, strict=True):
        torch.testing.assert_close(ours_value, theirs_value, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["lin_l", "lin_r"])
@pytest.mark.parametrize("wide", [4, CHANNELS, 9])
def test_hooks_of_its_layers_are_called(wide, name):
    layer = nn.graph.SAGEConv(CHANNELS, wide)
    seen = []
    getattr(layer, name).register_forward_hook(lambda module, inputs, output: seen.append(name))
    layer(torch.randn(NODES, CHANNELS), edges())
    assert seen == [name]


@pytest.mark.parametrize("name", ["lin_l", "lin_r"])
def test_a_layer_in_its_place_is_called(name):
    class Doubled(torch.nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    plain, changed = nn.graph.SAGEConv(CHANNELS, CHANNELS), nn.graph.SAGEConv(CHANNELS, CHANNELS)
    setattr(changed, name, Doubled(CHANNELS, CHANNELS, bias=name == "lin_l"))
    changed.load_state_dict(plain.state_dict())
    with torch.no_grad():
        getattr(plain, name).weight.mul_(2)
        if name == "lin_l":
            plain.lin_l.bias.mul_(2)
    x = torch.randn(NODES, CHANNELS)
    torch.testing.assert_close(changed(x, edges()), plain(x, edges()))


def as_called(layer, x, edge_index):
    """What PyG's formula gives where both layers are called."""
    return layer.lin_l(ops.spmm(pumice.Graph(edge_index, NODES), x, reduce="mean")) + layer.lin_r(x)


@pytest.mark.parametrize("wide", [4, CHANNELS, 9])
def test_a_bias_of_lin_r_is_added(wide):
    layer = nn.graph.SAGEConv(CHANNELS, wide)
    layer.lin_r = torch.nn.Linear(CHANNELS, wide)
    x = torch.randn(NODES, CHANNELS)
    torch.testing.assert_close(layer(x, edges()), as_called(layer, x, edges()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["lin_l", "lin_r"])
def test_a_forward_that_was_replaced_is_called(name):
    layer = nn.graph.SAGEConv(CHANNELS, CHANNELS)
    inner = getattr(layer, name)
    plain = inner.forward
    inner.forward = lambda x: 2 * plain(x)
    x = torch.randn(NODES, CHANNELS)
    torch.testing.assert_close(layer(x, edges()), as_called(layer, x, edges()), rtol=1e-4, atol=1e-5)


def test_hooks_of_gradients_and_of_all_modules_are_called():
    layer, seen = nn.graph.SAGEConv(CHANNELS, CHANNELS), []
    layer.lin_r.register_full_backward_pre_hook(lambda module, grad: seen.append("backward"))
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, inputs, output: seen.append(type(module).__name__))
    try:
        layer(torch.randn(NODES, CHANNELS), edges()).sum().backward()
    finally:
        handle.remove()
    assert sorted(seen) == ["Linear", "Linear", "SAGEConv", "backward"]
