"""Layers of graph networks load PyG's state dicts by name and give PyG's numbers and gradients."""

import warnings

import pytest
import torch

import pumice
from pumice import nn, ops
from sparse_products_test import edges

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its imports
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed: pip install torch_geometric")


def with_awkward_edges(nodes, count, seed=0):
    """Edges that repeat, loops of which some repeat, and nodes without any."""
    edge_index = edges(nodes - 2, nodes - 2, count, seed)
    loops = torch.tensor([[0, 3, 3, 5], [0, 3, 3, 5]])
    return torch.cat([edge_index, edge_index[:, :5], loops], 1)[:, torch.randperm(count + 9)]


LAYERS = {
    "GCNConv": (lambda l: l.GCNConv(6, 5), False),
    "GCNConv improved": (lambda l: l.GCNConv(6, 5, improved=True), False),
    "GCNConv without loops": (lambda l: l.GCNConv(6, 5, add_self_loops=False, bias=False), False),
    "GCNConv plain": (lambda l: l.GCNConv(6, 5, normalize=False), False),
    "GCNConv weighted": (lambda l: l.GCNConv(6, 5), True),
    "GCNConv weighted without loops": (lambda l: l.GCNConv(6, 5, add_self_loops=False), True),
    "SAGEConv": (lambda l: l.SAGEConv(6, 5), False),
    "SAGEConv wider": (lambda l: l.SAGEConv(6, 9), False),
    "SAGEConv max": (lambda l: l.SAGEConv(6, 5, aggr="max"), False),
    "SAGEConv add": (lambda l: l.SAGEConv(6, 5, aggr="add", bias=False), False),
    "SAGEConv pool": (lambda l: l.SAGEConv(6, 5, aggr="max", project=True, normalize=True), False),
    "SAGEConv without roots": (lambda l: l.SAGEConv(6, 5, root_weight=False), False),
    "GINConv": (lambda l: l.GINConv(torch.nn.Linear(6, 5), eps=0.5, train_eps=True), False),
    "GATConv": (lambda l: l.GATConv(6, 5, heads=3), False),
    "GATConv mean": (lambda l: l.GATConv(6, 5, heads=3, concat=False, negative_slope=0.1), False),
    "GATConv without loops": (lambda l: l.GATConv(6, 5, heads=2, add_self_loops=False, bias=False), False),
    "GATConv residual": (lambda l: l.GATConv(6, 5, heads=2, residual=True), False),
    "GATConv of edges": (lambda l: l.GATConv(6, 5, heads=3, edge_dim=4), 4),
    "GATConv of edges without loops": (lambda l: l.GATConv(6, 5, heads=2, edge_dim=1, add_self_loops=False), 1),
    "GATConv of edges, filled": (lambda l: l.GATConv(6, 5, edge_dim=4, fill_value=0.5), 4),
    "GATConv of edges, filled by sums": (lambda l: l.GATConv(6, 5, edge_dim=4, fill_value="add", concat=False), 4),
    "GATConv of edges, filled by a tensor": (lambda l: l.GATConv(6, 5, edge_dim=4, fill_value=torch.arange(4.0)), 4),
    "GATv2Conv": (lambda l: l.GATv2Conv(6, 5, heads=3), False),
    "GATv2Conv mean": (lambda l: l.GATv2Conv(6, 5, heads=3, concat=False, negative_slope=0.1), False),
    "GATv2Conv without loops": (lambda l: l.GATv2Conv(6, 5, heads=2, add_self_loops=False, bias=False), False),
    "GATv2Conv residual": (lambda l: l.GATv2Conv(6, 5, heads=2, residual=True), False),
    "GATv2Conv shared": (lambda l: l.GATv2Conv(6, 5, heads=2, share_weights=True), False),
    "GATv2Conv wide": (lambda l: l.GATv2Conv(6, 33), False),
    "GATv2Conv of edges": (lambda l: l.GATv2Conv(6, 5, heads=3, edge_dim=4), 4),
    "GATv2Conv of edges, filled": (lambda l: l.GATv2Conv(6, 5, heads=2, edge_dim=1, fill_value="max"), 1),
    "GATv2Conv of edges without loops": (lambda l: l.GATv2Conv(6, 5, edge_dim=4, add_self_loops=False), 4),
}


def of_each_edge(kind, count, dtype=torch.float32, device="cpu"):
    """What a layer is given beside edges: nothing, weights (True), or features of so many channels."""
    if kind is False:
        return []
    shape = (count,) if kind is True else (count, kind)
    return [torch.rand(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(device, dtype)]


@pytest.fixture(autouse=True)
def _compiled_anew():
    """What one test compiles does not count for the limit of another."""
    torch._dynamo.reset()


def loops_but_the_last(edge_index):
    """Of edges from a node to itself those that another one follows."""
    found = {}
    for edge, (source, target) in enumerate(edge_index.t().tolist()):
        if source == target:
            found.setdefault(source, []).append(edge)
    return [edge for edges_of_node in found.values() for edge in edges_of_node[:-1]]


@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_the_numbers_and_gradients_of_pyg(name, device):
    make, weighted = LAYERS[name]
    nodes = 17
    edge_index = with_awkward_edges(nodes, 60).to(device)
    theirs = make(pyg).double()
    ours = make(nn.graph).double()
    ours.load_state_dict(theirs.state_dict())
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    tolerance = 1e-10 if device.type == "cpu" else 1e-4
    theirs, ours = theirs.to(device, dtype), ours.to(device, dtype)
    weight = of_each_edge(weighted, edge_index.shape[1], dtype, device)
    results = []
    # PyG on the CPU: on a GPU it takes the weight of any of several edges from a node to itself.
    for layer, place in ((theirs.cpu(), torch.device("cpu")), (ours, device)):
        x = torch.linspace(-1, 1, nodes * 6, dtype=dtype, device=place).view(nodes, 6).sin().requires_grad_()
        more = [given.to(place).clone().requires_grad_() for given in weight]
        output = layer(x, edge_index.to(place), *more)
        output.mul(torch.arange(output.numel(), device=place).view(output.shape).cos()).sum().backward()
        gradients = [x.grad, *[m.grad for m in more], *[p.grad for _, p in sorted(layer.named_parameters())]]
        results.append([tensor.to(device) for tensor in (output.detach(), *gradients)])
    if name == "GCNConv weighted":
        # Weights of which nothing depends have no gradient here; PyG gives them that of the weight that counts.
        without = loops_but_the_last(edge_index)
        assert results[1][2][without].tolist() == [0.0] * len(without) and len(without) > 0
        results[0][2][without] = 0.0
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["SAGEConv", "GINConv", "GATConv", "GATv2Conv", "GATv2Conv of edges"])
def test_layers_of_sources_and_targets_are_those_of_pyg(name):
    edge_index = edges(7, 9, 30)
    pair = (torch.randn(9, 6), torch.randn(7, 6))
    make = {
        "SAGEConv": lambda l: l.SAGEConv((6, 6), 5),
        "GINConv": lambda l: l.GINConv(torch.nn.Linear(6, 5)),
        "GATConv": lambda l: l.GATConv((6, 6), 5, heads=2, add_self_loops=False),
        "GATv2Conv": lambda l: l.GATv2Conv((6, 6), 5, heads=2),
        "GATv2Conv of edges": lambda l: l.GATv2Conv((6, 6), 5, heads=2, edge_dim=3, fill_value=0.0),
    }[name]
    theirs, ours = make(pyg), make(nn.graph)
    ours.load_state_dict(theirs.state_dict())
    more = of_each_edge(3 if "edges" in name else False, 30)
    expected = theirs(pair, edge_index, *more)
    torch.testing.assert_close(ours(pair, edge_index, *more), expected)
    graph = pumice.Graph(edge_index, (9, 7))
    torch.testing.assert_close(ours(pair, graph, *more), expected)


@pytest.mark.parametrize("add_self_loops", [True, False])
def test_attention_of_a_pair_adds_the_loops_that_pyg_adds(add_self_loops):
    edge_index = edges(7, 9, 30)
    theirs = pyg.GATConv((6, 4), 5, heads=2, add_self_loops=add_self_loops)
    ours = nn.graph.GATConv((6, 4), 5, heads=2, add_self_loops=add_self_loops)
    ours.load_state_dict(theirs.state_dict())
    pair = (torch.randn(9, 6), torch.randn(7, 4))
    torch.testing.assert_close(ours(pair, edge_index, size=(9, 7)), theirs(pair, edge_index, size=(9, 7)))
    torch.testing.assert_close(ours(pair, edge_index), theirs(pair, edge_index))


@pytest.mark.parametrize("name", ["SAGEConv", "GATConv"])
def test_pairs_without_features_of_targets_are_those_of_pyg(name):
    edge_index = edges(7, 9, 30)
    make = {
        "SAGEConv": lambda l: l.SAGEConv((6, 6), 5),
        "GATConv": lambda l: l.GATConv((6, 6), 5, heads=2, add_self_loops=False),
    }[name]
    theirs, ours = make(pyg), make(nn.graph)
    ours.load_state_dict(theirs.state_dict())
    x = (torch.randn(9, 6), None)
    expected = theirs(x, edge_index, size=(9, 7))
    torch.testing.assert_close(ours(x, edge_index, size=(9, 7)), expected)
    torch.testing.assert_close(ours(x, pumice.Graph(edge_index, (9, 7))), expected)
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))


def test_a_compiled_layer_takes_edges_that_it_was_not_traced_with():
    layer = torch.compile(nn.graph.GCNConv(6, 5), fullgraph=True, backend="aot_eager", dynamic=True)
    for nodes, count in ((7, 20), (9, 33), (31, 5)):
        edge_index, x = edges(nodes, nodes, count), torch.randn(nodes, 6)
        eager = layer._orig_mod(x, edge_index)
        torch.testing.assert_close(layer(x, edge_index), eager)


@pytest.mark.parametrize("name", LAYERS)
def test_autocast_computes_in_half_precision(name):
    make, weighted = LAYERS[name]
    layer = make(nn.graph)
    edge_index = with_awkward_edges(17, 60)
    weight = of_each_edge(weighted, edge_index.shape[1])
    x = torch.randn(17, 6)
    expected = layer(x, edge_index, *weight)
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(x, edge_index, *weight)
    torch.testing.assert_close(output.float(), expected, rtol=0.1, atol=0.1)


def test_products_of_edges_are_there_for_layers_of_ones_own():
    graph = pumice.Graph(edges(7, 7, 20), 7)
    x = torch.randn(7, 8)
    scores = ops.sddmm(graph, x, x) / 8**0.5
    output = ops.spmm(graph, x, ops.edge_softmax(graph, scores))
    assert output.shape == (7, 8)
