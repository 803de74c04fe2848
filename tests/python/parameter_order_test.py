"""Parameters of layers of graphs have PyG's names, shapes and order, so that what an optimizer knows of them by number carries over."""

import warnings

import pytest
import torch

from graph_layers_test import LAYERS
from pumice import nn
from typed_graph_layers_test import HETERO, TYPED

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its imports
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed: pip install torch_geometric")


ORDERED = {
    **{name: make for name, (make, _) in LAYERS.items()},
    **TYPED,
    "HGTConv": lambda l: l.HGTConv(6, 6, HETERO, 2),
    "HGTConv of other channels": lambda l: l.HGTConv({"place": 3, "author": 4, "paper": 6}, 6, HETERO, 2),
    "HeteroLinear": lambda l: l.HeteroLinear(6, 5, 4),
    "SAGEConv of pairs": lambda l: l.SAGEConv((6, 4), 5, project=True),
    "GATConv of pairs": lambda l: l.GATConv((6, 4), 5, edge_dim=2, residual=True),
    "GATv2Conv of pairs": lambda l: l.GATv2Conv((6, 4), 5, edge_dim=2, residual=True),
    "RGCNConv of pairs": lambda l: l.RGCNConv((6, 4), 5, 3, num_bases=2),
}


def test_the_order_of_parameters_is_looked_at_for_every_layer():
    assert {type(make(nn.graph)).__name__ for make in ORDERED.values()} == set(nn.graph.__all__) - {"RGCN"}


@pytest.mark.parametrize("name", ORDERED)
def test_what_an_optimizer_knows_of_pygs_parameters_is_that_of_ours(name):
    theirs, ours = ORDERED[name](pyg), ORDERED[name](nn.graph)
    assert [(n, p.shape) for n, p in ours.named_parameters()] == [(n, p.shape) for n, p in theirs.named_parameters()]
    optimizers = [torch.optim.Adam(layer.parameters()) for layer in (theirs, ours)]
    for number, parameter in enumerate(theirs.parameters()):
        parameter.grad = torch.full_like(parameter, float(number + 1))
    optimizers[0].step()
    optimizers[1].load_state_dict(optimizers[0].state_dict())
    known = {n: optimizers[0].state[p]["exp_avg"] for n, p in theirs.named_parameters()}
    for n, parameter in ours.named_parameters():
        assert torch.equal(optimizers[1].state[parameter]["exp_avg"], known[n]), n
