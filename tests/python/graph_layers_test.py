"""Layers of graph networks load PyG's state dicts by name and give PyG's numbers and gradients."""

import copy
import pickle
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


@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_the_numbers_and_gradients_of_pyg(name, device):
    make, weighted = LAYERS[name]
    nodes = 17
    edge_index = with_awkward_edges(nodes, 60).to(device)
    theirs = make(pyg).double()
    ours = make(nn.graph).double()
    ours.load_state_dict(theirs.state_dict())
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()] or {
        n for n, _ in ours.named_parameters()
    } == {n for n, _ in theirs.named_parameters()}
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    tolerance = 1e-10 if device.type == "cpu" else 1e-4
    theirs, ours = theirs.to(device, dtype), ours.to(device, dtype)
    weight = of_each_edge(weighted, edge_index.shape[1], dtype, device)
    results = []
    for layer in (theirs, ours):
        x = torch.linspace(-1, 1, nodes * 6, dtype=dtype, device=device).view(nodes, 6).sin().requires_grad_()
        more = [given.clone().requires_grad_() for given in weight]
        output = layer(x, edge_index, *more)
        output.mul(torch.arange(output.numel(), device=device).view(output.shape).cos()).sum().backward()
        results.append([output.detach(), x.grad, *[m.grad for m in more], *[p.grad for _, p in sorted(layer.named_parameters())]])
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


TYPED = {
    "RGCNConv": lambda l: l.RGCNConv(6, 4, 5),
    "RGCNConv of bases": lambda l: l.RGCNConv(6, 4, 5, num_bases=2),
    "RGCNConv of blocks": lambda l: l.RGCNConv(6, 4, 5, num_blocks=2, root_weight=False),
    "RGCNConv sum": lambda l: l.RGCNConv(6, 4, 5, aggr="add", bias=False),
    "RGCNConv max": lambda l: l.RGCNConv(6, 4, 5, aggr="max"),
    "RGCNConv of embeddings": lambda l: l.RGCNConv(17, 4, 5),
    "RGCNConv of embeddings and bases": lambda l: l.RGCNConv(17, 4, 5, num_bases=3),
    "RGATConv": lambda l: l.RGATConv(6, 4, 5),
    "RGATConv of heads": lambda l: l.RGATConv(6, 4, 5, heads=3, attention_mechanism="within-relation"),
    "RGATConv of bases": lambda l: l.RGATConv(6, 4, 5, num_bases=2, heads=2, concat=False),
    "RGATConv of blocks": lambda l: l.RGATConv(6, 4, 5, num_blocks=2, bias=False, negative_slope=0.5),
    "RGATConv of edges": lambda l: l.RGATConv(6, 4, 5, heads=2, edge_dim=3),
}


def typed_edges(device):
    edge_index = with_awkward_edges(17, 80).to(device)
    edge_type = torch.arange(89, device=device) % 4  # of 5 relations one has no edge
    edge_type[:5] = edge_type[5]
    return edge_index, edge_type


UNUSED = ("w", "l1", "b1", "l2", "b2")  # of modulations of RGATConv


def of_typed_edges(name, dtype=torch.float32, device="cpu"):
    return [torch.arange(89 * 3, dtype=dtype, device=device).view(89, 3)] if "of edges" in name else []


@pytest.mark.parametrize("name", TYPED)
def test_relational_layers_give_the_numbers_and_gradients_of_pyg(name, device):
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    tolerance = 1e-10 if device.type == "cpu" else 1e-4
    theirs, ours = TYPED[name](pyg), TYPED[name](nn.graph)
    ours.load_state_dict(theirs.state_dict())
    theirs, ours = theirs.to(device, dtype), ours.to(device, dtype)
    edge_index, edge_type = typed_edges(device)
    results = []
    for layer in (theirs, ours):
        x = torch.linspace(-1, 1, 17 * 6, dtype=dtype, device=device).view(17, 6).sin().requires_grad_()
        more = [m.sin().requires_grad_() for m in of_typed_edges(name, dtype, device)]
        output = layer(None if "embeddings" in name else x, edge_index, edge_type, *more)
        output.mul(torch.arange(output.numel(), device=device).view(output.shape).cos()).sum().backward()
        gradients = [p.grad for _, p in sorted(layer.named_parameters())]
        assert [g is None for g in gradients] == [n in UNUSED for n in sorted(dict(layer.named_parameters()))]
        given = [x.grad for x in (x, *more) if x.grad is not None]
        results.append([output.detach(), *given, *(g for g in gradients if g is not None)])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", TYPED)
def test_relational_layers_compile_without_a_break(name):
    layer = TYPED[name](nn.graph)
    edge_index, edge_type = typed_edges("cpu")
    x = None if "embeddings" in name else torch.randn(17, 6)
    more = of_typed_edges(name)
    expected = layer(x, edge_index, edge_type, *more)
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, edge_index, edge_type, *more), expected)
    graph = pumice.TypedGraph(edge_index, edge_type, 17, 5).traceable()
    torch.testing.assert_close(layer(x, graph, None, *more), expected)


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_for_each_type_is_that_of_pyg(bias, device):
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    tolerance = 1e-10 if device.type == "cpu" else 1e-4
    theirs, ours = (l.HeteroLinear(6, 5, 4, bias=bias).to(device, dtype) for l in (pyg, nn.graph))
    ours.load_state_dict(theirs.state_dict())
    types = torch.tensor([3, 0, 0, 3, 1, 0, 3], device=device)  # of 4 types one has no row
    results = []
    for layer in (theirs, ours):
        x = torch.linspace(-1, 1, 42, dtype=dtype, device=device).view(7, 6).sin().requires_grad_()
        output = layer(x, types)
        output.square().sum().backward()
        results.append([output.detach(), x.grad, *(p.grad for _, p in sorted(layer.named_parameters()))])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance)
    compiled = torch.compile(copy.deepcopy(ours), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, types), output)


@pytest.mark.parametrize("name", ["RGATConv", "RGATConv of edges", "HeteroLinear"])
def test_autocast_of_typed_layers_computes_in_half_precision(name):
    edge_index, edge_type = typed_edges("cpu")
    layer = nn.graph.HeteroLinear(6, 4, 5) if name == "HeteroLinear" else TYPED[name](nn.graph)
    more = [m.sin() for m in of_typed_edges(name)]
    call = (torch.randn(17, 6), *([edge_type[:17]] if name == "HeteroLinear" else [edge_index, edge_type, *more]))
    expected = layer(*call)
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(*call)
    torch.testing.assert_close(output.float(), expected, rtol=0.1, atol=0.1)


HETERO = (
    ["paper", "author", "place"],
    [("paper", "cites", "paper"), ("author", "writes", "paper"), ("paper", "written by", "author"), ("place", "of", "author")],
)


def of_types(dtype=torch.float32, device="cpu"):
    """Features and edges by type; one type of edges has none, and of one it is not said."""
    counts = {"paper": 9, "author": 5, "place": 3}
    x = {n: torch.linspace(-1, 1, c * 6, dtype=dtype, device=device).view(c, 6).sin().requires_grad_() for n, c in counts.items()}
    found = {kind: edges(counts[kind[2]], counts[kind[0]], 20).to(device) for kind in HETERO[1][:3]}
    found[HETERO[1][2]] = found[HETERO[1][2]][:, :0]
    return x, found


@pytest.mark.parametrize("out_channels, heads", [(6, 1), (6, 3), (8, 2)])
def test_transformers_of_types_give_the_numbers_and_gradients_of_pyg(out_channels, heads, device):
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    tolerance = 1e-10 if device.type == "cpu" else 1e-4
    theirs, ours = (l.HGTConv(6, out_channels, HETERO, heads).to(device, dtype) for l in (pyg, nn.graph))
    state = theirs.state_dict()
    for name in state:
        if name.startswith(("skip", "p_rel")):
            state[name] = torch.rand_like(state[name])
    theirs.load_state_dict(state), ours.load_state_dict(state)
    results = []
    for layer in (theirs, ours):
        x, found = of_types(dtype, device)
        output = layer(x, found)
        assert set(output) == {"paper", "author"}
        sum((part * torch.arange(part.numel(), device=device).view(part.shape).cos()).sum() for part in output.values()).backward()
        gradients = {name: p.grad for name, p in layer.named_parameters() if p.grad is not None and bool(p.grad.any())}
        results.append(({**{n: o.detach() for n, o in output.items()}, **{f"of {n}": t.grad for n, t in x.items() if n != "place"}, **gradients}))
    assert set(results[0]) == set(results[1])
    for name, expected in results[0].items():
        torch.testing.assert_close(results[1][name], expected, rtol=tolerance, atol=tolerance)
    compiled = torch.compile(copy.deepcopy(ours), fullgraph=True, backend="aot_eager")
    for name, part in compiled(*of_types(dtype, device)).items():
        torch.testing.assert_close(part, output[name])


def test_transformers_of_types_compute_in_half_precision_and_keep_their_graph(monkeypatch):
    layer = nn.graph.HGTConv(6, 6, HETERO, heads=2)
    made = []

    class Counted(pumice.Graph):
        def __init__(self, *arguments):
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(nn.graph.hgt, "Graph", Counted)
    x, found = of_types()
    expected = layer(x, found)
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(x, found)
    for name, part in output.items():
        torch.testing.assert_close(part.float(), expected[name], rtol=0.1, atol=0.1)
    assert len(made) == 1
    assert set(layer(x, {})) == {"paper", "author"}


def test_a_typed_graph_is_copied_kept_and_made_once(monkeypatch):
    edge_index, edge_type = typed_edges("cpu")
    graph = pumice.TypedGraph(edge_index, edge_type, 17, 5)
    assert copy.deepcopy(graph) is graph
    again = pickle.loads(pickle.dumps(graph))
    weight, x = torch.randn(5, 6, 4), torch.randn(17, 6)
    assert torch.equal(ops.rgms(again, x, weight), ops.rgms(graph, x, weight))
    made = []
    original = pumice.TypedGraph.__init__
    monkeypatch.setattr(pumice.TypedGraph, "__init__", lambda self, *a: made.append(a) or original(self, *a))
    layer = nn.graph.RGCNConv(6, 4, 5)
    for _ in range(3):
        layer(x, edge_index, edge_type)
    assert len(made) == 1
    layer(x, edge_index, edge_type.clone())
    edge_type[0] += 1
    layer(x, edge_index, edge_type)
    assert len(made) == 3


def test_relational_products_are_those_of_a_loop(device):
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    edge_index, edge_type = typed_edges(device)
    graph = pumice.TypedGraph(edge_index, edge_type, 17, 5)
    x = torch.randn(17, 6, dtype=dtype, device=device, requires_grad=True)
    weight = torch.randn(5, 6, 4, dtype=dtype, device=device, requires_grad=True)
    of_edge = torch.rand(89, dtype=dtype, device=device, requires_grad=True)
    messages = torch.einsum("ei,eio->eo", x[edge_index[0]] * of_edge[:, None], weight[edge_type])
    expected = torch.zeros(17, 4, dtype=dtype, device=device).index_add(0, edge_index[1], messages)
    got = ops.rgms(graph, x, weight, of_edge)
    tolerance = 1e-10 if device.type == "cpu" else 1e-4
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
    grad = torch.randn_like(expected)
    for a, b in zip(
        torch.autograd.grad(got, (x, weight, of_edge), grad), torch.autograd.grad(expected, (x, weight, of_edge), grad), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    if device.type == "cpu":
        assert torch.autograd.gradgradcheck(lambda x, w, e: ops.rgms(graph, x, w, e), (x, weight, of_edge))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_gradients_that_have_gradients_are_the_same_where_one_input_comes_from_another(reduce):
    edge_index, edge_type = typed_edges("cpu")
    graph = pumice.TypedGraph(edge_index, edge_type, 17, 5)
    x = torch.randn(17, 6, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, 6, 4, dtype=torch.float64, requires_grad=True)

    def loss():
        of_edge = (x[edge_index[0]] * x[edge_index[1]]).sum(-1)
        return ops.rgms(graph, x, weight * x.mean(), of_edge, reduce).square().sum()

    plain = torch.autograd.grad(loss(), (x, weight))
    with_graph = torch.autograd.grad(loss(), (x, weight), create_graph=True)
    for a, b in zip(with_graph, plain, strict=True):
        torch.testing.assert_close(a.detach(), b)


def test_graphs_of_several_layers_are_kept_beside_each_other(monkeypatch):
    made = []
    for kind in (pumice.Graph, pumice.TypedGraph):
        original = kind.__init__

        def counted(self, *arguments, original=original, kind=kind):
            made.append(kind.__name__)
            original(self, *arguments)

        monkeypatch.setattr(kind, "__init__", counted)
    edge_index, edge_type = typed_edges("cpu")
    layers = [nn.graph.SAGEConv(6, 4), nn.graph.RGCNConv(6, 4, 5), nn.graph.RGCNConv(17, 4, 5), nn.graph.GCNConv(6, 4)]
    counts = []
    for _ in range(3):
        for layer in layers:
            x = None if getattr(layer, "in_channels", 6) == 17 else torch.randn(17, 6)
            layer(x, edge_index, *([edge_type] if isinstance(layer, nn.graph.RGCNConv) else []))
        counts.append(len(made))
    assert made.count("TypedGraph") == 1 and counts[1:] == [counts[0]] * 2, made


@pytest.mark.parametrize("name", LAYERS)
def test_layers_compile_without_a_break(name):
    make, weighted = LAYERS[name]
    layer = make(nn.graph)
    edge_index = with_awkward_edges(17, 60)
    weight = of_each_edge(weighted, edge_index.shape[1])
    x = torch.randn(17, 6)
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, edge_index, *weight), layer(x, edge_index, *weight))


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


@pytest.mark.parametrize("write", ["numpy", "data"])
def test_edges_that_are_written_into_behind_pytorch_are_seen(write):
    array = edges(7, 7, 20).numpy()
    kinds = (torch.arange(20) % 3).numpy()
    edge_index, edge_type = torch.from_numpy(array), torch.from_numpy(kinds)
    plain, typed = nn.graph.SAGEConv(6, 5), nn.graph.RGCNConv(6, 5, 3)
    x = torch.randn(7, 6)
    plain(x, edge_index), typed(x, edge_index, edge_type)
    if write == "numpy":
        array[1, 5] = (array[1, 5] + 1) % 7
    else:
        edge_index.data[1, 5] = (edge_index[1, 5] + 1) % 7
    torch.testing.assert_close(plain(x, edge_index), plain(x, edge_index.clone()))
    kinds[3] = (kinds[3] + 1) % 3
    torch.testing.assert_close(typed(x, edge_index, edge_type), typed(x, edge_index.clone(), edge_type.clone()))


def test_a_graph_is_made_once_for_a_tensor_of_edges(monkeypatch):
    made = []

    class Counted(pumice.Graph):
        def __init__(self, *arguments):
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(nn.graph.edges, "Graph", Counted)
    edge_index = edges(7, 7, 20)
    x = torch.randn(7, 6)
    first = nn.graph.SAGEConv(6, 5)
    for layer in (first, nn.graph.SAGEConv(6, 5), first):
        layer(x, edge_index)
    assert len(made) == 1
    before = first(x, edge_index)
    edge_index[1] = edge_index[1].roll(1)
    after = first(x, edge_index)
    assert len(made) == 2 and not torch.allclose(before, after)
    monkeypatch.undo()
    torch.testing.assert_close(after, first(x, pumice.Graph(edge_index, 7)))


MISTAKES = {
    "x of one axis": (lambda: nn.graph.GCNConv(6, 5)(torch.randn(6), edges(7, 7, 5)), r"x has shape \(6,\)"),
    "x of three parts": (
        lambda: nn.graph.GINConv(torch.nn.Linear(6, 5))([torch.randn(7, 6)] * 3, edges(7, 7, 5)),
        "x has 3 parts: give features, or a pair",
    ),
    "no x": (lambda: nn.graph.GATConv(6, 5)(None, edges(7, 7, 5)), "x is None"),
    "edges of other nodes": (
        lambda: nn.graph.GCNConv(6, 5)(torch.randn(7, 6), pumice.Graph(edges(7, 7, 5), 8)),
        "the graph has 8 sources and 8 targets, and x 7 and 7 rows",
    ),
    "edges that lead nowhere": (
        lambda: nn.graph.SAGEConv(6, 5)(torch.randn(2, 6), torch.tensor([[0, 5], [1, 0]])),
        "= 5 where there are 2",
    ),
    "too few weights": (
        lambda: nn.graph.GCNConv(6, 5)(torch.randn(7, 6), edges(7, 7, 5), torch.ones(4)),
        r"edge_weight has shape \(4,\): give \[5\]",
    ),
    "a sparse matrix and types": (
        lambda: nn.graph.RGCNConv(6, 4, 2)(torch.randn(7, 6), torch.eye(7).to_sparse(), torch.zeros(7).long()),
        r"layout torch.sparse_coo: .*whose graph.edge_index goes with edge_type",
    ),
    "relations that there are not": (
        lambda: nn.graph.RGCNConv(6, 4, 2)(torch.randn(7, 6), edges(7, 7, 5), torch.full((5,), 2)),
        r"edge_type\[0\] = 2 where there are 2",
    ),
    "no relations": (
        lambda: nn.graph.RGCNConv(6, 4, 2)(torch.randn(7, 6), edges(7, 7, 5)),
        "edge_type is None",
    ),
    "too few relations": (
        lambda: nn.graph.RGCNConv(6, 4, 2)(torch.randn(7, 6), edges(7, 7, 5), torch.zeros(4, dtype=torch.int64)),
        r"give int64 \[5\]",
    ),
    "bases and blocks": (lambda: nn.graph.RGCNConv(6, 4, 2, num_bases=2, num_blocks=2), "give one of them"),
    "blocks that do not divide": (lambda: nn.graph.RGCNConv(6, 4, 2, num_blocks=4), "4 blocks of 6 and 4 channels"),
    "features of other types": (
        lambda: ops.typed_linear(torch.randn(3, 4), torch.randn(2, 4, 5), pumice.TypedRows([0, 1, 2])),
        "features has 3 rows, and 2 rows have types",
    ),
    "bounds that descend": (lambda: pumice.TypedRows([0, 3, 2]), r"begin\[2\] = 2 after 3"),
    "another aggregation": (lambda: nn.graph.SAGEConv(6, 5, aggr="median"), "aggr = 'median'"),
    "no channels": (lambda: nn.graph.GCNConv(0, 5), "in_channels = 0"),
    "another filling": (lambda: nn.graph.GATConv(6, 5, edge_dim=2, fill_value="mul"), "fill_value = 'mul'"),
    "features of edges of another width": (
        lambda: nn.graph.GATv2Conv(6, 5, edge_dim=2)(torch.randn(7, 6), edges(7, 7, 5), torch.ones(5, 3)),
        r"edge_attr has shape \(5, 3\): give \[5, 2\]",
    ),
    "features of edges that nobody takes": (
        lambda: nn.graph.GATConv(6, 5)(torch.randn(7, 6), edges(7, 7, 5), torch.ones(5, 3)),
        "edge_attr is given to a layer without edge_dim",
    ),
    "no features of targets": (
        lambda: nn.graph.GATv2Conv((6, 6), 5)((torch.randn(7, 6), None), edges(7, 7, 5)),
        "features of targets are None",
    ),
    "shared weights of other widths": (
        lambda: nn.graph.GATv2Conv((6, 4), 5, share_weights=True),
        "6 channels of sources and 4 of targets",
    ),
    "a modulation": (lambda: nn.graph.RGATConv(6, 4, 2, mod="scaled"), "mod = 'scaled'"),
    "another attention": (
        lambda: nn.graph.RGATConv(6, 4, 2, attention_mode="multiplicative-self-attention"),
        "attention_mode = 'multiplicative-self-attention': choose additive-self-attention",
    ),
    "types of other rows": (
        lambda: nn.graph.HeteroLinear(6, 4, 2)(torch.randn(7, 6), torch.zeros(5).long()),
        r"type_vec is torch.int64, \(5,\): give int64 \[7\]",
    ),
    "edges of an unknown type": (
        lambda: nn.graph.HGTConv(6, 4, HETERO)(of_types()[0], {("paper", "is", "paper"): edges(9, 9, 5)}),
        "edge_index_dict has .'paper', 'is', 'paper'.: there are edges of",
    ),
    "edges that lead to another type": (
        lambda: nn.graph.HGTConv(6, 4, HETERO)(of_types()[0], {HETERO[1][2]: torch.tensor([[0], [7]])}),
        "has row 1 from 7 to 7 where there are 5 nodes",
    ),
    "types of no nodes": (lambda: nn.graph.HGTConv(6, 4, (["a"], [("a", "to", "b")])), r"metadata\[1\] has .'a', 'to', 'b'."),
    "heads that do not divide": (lambda: nn.graph.HGTConv(6, 4, HETERO, heads=3), "3 heads of 4 channels"),
    "heads as text": (lambda: nn.graph.GATConv(6, 5, heads="2"), "heads"),
    "a sparse matrix": (
        lambda: nn.graph.SAGEConv(6, 5)(torch.randn(7, 6), torch.eye(7).to_sparse()),
        r"layout torch.sparse_coo: graph, values = pumice.Graph.of",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_a_sentence(name):
    call, said = MISTAKES[name]
    with pytest.raises(pumice.UserError, match=said):
        call()


@pytest.fixture(autouse=True)
def _compiled_anew():
    """What one test compiles does not count for the limit of another."""
    torch._dynamo.reset()


def test_a_compiled_layer_takes_edges_that_it_was_not_traced_with():
    layer = torch.compile(nn.graph.GCNConv(6, 5), fullgraph=True, backend="aot_eager", dynamic=True)
    for nodes, count in ((7, 20), (9, 33), (31, 5)):
        edge_index, x = edges(nodes, nodes, count), torch.randn(nodes, 6)
        eager = layer._orig_mod(x, edge_index)
        torch.testing.assert_close(layer(x, edge_index), eager)


def test_a_graph_from_outside_of_a_compiled_function_says_what_it_needs():
    graph = pumice.Graph(edges(7, 7, 20), 7)
    compiled = torch.compile(lambda x: ops.spmm(graph, x), fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=r"graph\.traceable\(\)"):
        compiled(torch.randn(7, 3))
    graph.traceable()
    assert compiled(torch.randn(7, 3)).shape == (7, 3)


def test_products_of_edges_are_there_for_layers_of_ones_own():
    graph = pumice.Graph(edges(7, 7, 20), 7)
    x = torch.randn(7, 8)
    scores = ops.sddmm(graph, x, x) / 8**0.5
    output = ops.spmm(graph, x, ops.edge_softmax(graph, scores))
    assert output.shape == (7, 8)
