"""Layers of typed edges and nodes load PyG's state dicts by name and give PyG's numbers and gradients."""

import copy
import warnings

import pytest
import torch

import pumice
from graph_layers_test import with_awkward_edges
from pumice import nn, ops
from sparse_products_test import edges

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its imports
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed: pip install torch_geometric")


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
def test_relational_layers_take_a_graph_instead_of_edges(name):
    layer = TYPED[name](nn.graph)
    edge_index, edge_type = typed_edges("cpu")
    x = None if "embeddings" in name else torch.randn(17, 6)
    more = of_typed_edges(name)
    graph = pumice.TypedGraph(edge_index, edge_type, 17, 5).traceable()
    torch.testing.assert_close(layer(x, graph, None, *more), layer(x, edge_index, edge_type, *more))
    assert torch.equal(graph.edge_index, edge_index) and torch.equal(graph.edge_type, edge_type)


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


@pytest.fixture(autouse=True)
def _compiled_anew():
    """What one test compiles does not count for the limit of another."""
    torch._dynamo.reset()
