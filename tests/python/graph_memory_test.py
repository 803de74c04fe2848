"""What operators and layers over graphs keep for the way back: no rows of features that no gradient is made of."""

import pytest
import torch

import pumice
from pumice import nn, ops

NODES, ENTRIES, CHANNELS = 33, 200, 8


def graph():
    return pumice.Graph(torch.randint(0, NODES, (2, ENTRIES), generator=torch.Generator().manual_seed(1)), NODES)


def kept_rows(call, *given):
    """How many tensors of features' size `call` keeps beside those that are given."""
    kept = []

    def keep(tensor):
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        call()
    known = {tensor.data_ptr() for tensor in given}
    return len({t.data_ptr() for t in kept if t.numel() >= NODES * CHANNELS} - known)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("values", [None, "constant", "learned"])
def test_a_product_keeps_features_only_for_the_gradient_of_values(values, reduce):
    x = torch.randn(NODES, CHANNELS, requires_grad=True)
    weights = None if values is None else torch.rand(ENTRIES, requires_grad=values == "learned")
    assert kept_rows(lambda: ops.spmm(graph(), x, weights, reduce)) == (1 if values == "learned" else 0)


@pytest.mark.parametrize("learned", ["left", "right"])
def test_dot_products_keep_the_factor_of_the_other_one(learned):
    left, right = torch.randn(NODES, CHANNELS), torch.randn(NODES, CHANNELS)
    {"left": left, "right": right}[learned].requires_grad_()
    constant = right if learned == "left" else left
    assert kept_rows(lambda: ops.sddmm(graph(), left, right)) == 1
    assert kept_rows(lambda: ops.sddmm(graph(), left, right), constant) == 0


@pytest.mark.parametrize("name", ["GCNConv", "SAGEConv"])
def test_layers_keep_their_features_alone(name):
    layer = getattr(nn.graph, name)(CHANNELS, CHANNELS)
    x, edges = torch.randn(NODES, CHANNELS, requires_grad=True), graph()
    assert kept_rows(lambda: layer(x, edges), x) == 0
