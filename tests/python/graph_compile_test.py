"""Layers of graphs under torch.compile as users call it: one graph and no break, forward and backward, with the numbers of
eager calls."""

import pytest
import torch
import torch._dynamo
from torch._dynamo.utils import counters

import pumice
from graph_layers_test import LAYERS, of_each_edge, with_awkward_edges
from pumice import nn, ops
from sparse_products_test import edges
from typed_graph_layers_test import HETERO, TYPED, of_typed_edges, of_types, typed_edges

# By layer: (how it is made, what it is called with).
CASES = {name: (make, "plain", weighted) for name, (make, weighted) in LAYERS.items()}
CASES |= {name: (make, "typed", None) for name, make in TYPED.items()}
CASES |= {
    "HGTConv": (lambda l: l.HGTConv(6, 6, HETERO, heads=2), "hetero", None),
    "HeteroLinear": (lambda l: l.HeteroLinear(6, 4, 5), "rows", None),
    "RGCN": (lambda l: l.RGCN(6, (8, 4), num_relations=5, aggr="max"), "typed", None),
}


def arguments(name, kind, weighted):
    if kind == "hetero":
        return of_types()
    x = None if "embeddings" in name else torch.linspace(-1, 1, 17 * 6).view(17, 6).sin().requires_grad_()
    if kind == "rows":
        return x, torch.arange(17) * 3 % 5
    if kind == "typed":
        return x, *typed_edges("cpu"), *[of.sin().requires_grad_() for of in of_typed_edges(name)]
    edge_index = with_awkward_edges(17, 60)
    return x, edge_index, *[of.requires_grad_() for of in of_each_edge(weighted, edge_index.shape[1])]


def leaves(layer, given):
    """What gets gradients."""
    tensors = [of for part in given for of in (part.values() if isinstance(part, dict) else [part]) if isinstance(of, torch.Tensor)]
    return [*layer.parameters(), *(of for of in tensors if of.requires_grad)]


def run(function, layer, given):
    """[output, gradients], where there are such."""
    output = function(*given)
    output = torch.cat([part.flatten() for part in output.values()]) if isinstance(output, dict) else output
    loss = (output * torch.arange(output.numel()).view(output.shape).cos()).sum()
    return [output.detach(), *torch.autograd.grad(loss, leaves(layer, given), allow_unused=True)]


def compiled_with_count(function, backend="aot_eager"):
    """(compiled as torch.compile does it alone, a list of the graphs it becomes)"""
    torch._dynamo.reset()
    counters.clear()
    graphs = []
    compile_one = torch._dynamo.lookup_backend(backend)

    def counting(graph, inputs):
        graphs.append(graph)
        return compile_one(graph, inputs)

    return torch.compile(function, backend=counting), graphs


def test_every_layer_is_compiled_here():
    made = {type(make(nn.graph)).__name__ for make, _, _ in CASES.values()}
    assert made == set(nn.graph.__all__)


@pytest.mark.parametrize("name", CASES)
def test_layers_become_one_graph_with_the_numbers_and_gradients_of_eager_calls(name):
    make, kind, weighted = CASES[name]
    layer = make(nn.graph)
    given = arguments(name, kind, weighted)
    expected = run(layer, layer, given)
    compiled, graphs = compiled_with_count(layer)
    got = run(compiled, layer, given)
    assert len(graphs) == 1 and not counters["graph_break"], dict(counters["graph_break"])
    assert [of is None for of in got] == [of is None for of in expected]
    for a, b in zip(got, expected, strict=True):
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["RGCNConv", "RGCNConv max", "RGCNConv of embeddings", "RGATConv of heads", "HeteroLinear"])
@pytest.mark.parametrize("count", [0, 1, 31, 33])
def test_compiled_layers_take_any_number_of_edges(name, count):
    make, kind, _ = CASES[name]
    layer = make(nn.graph)
    if kind == "rows":
        given = torch.randn(count, 6, requires_grad=True), torch.arange(count) % 5
    else:
        x = None if "embeddings" in name else torch.randn(17, 6, requires_grad=True)
        given = x, edges(17, 17, count) if count else torch.zeros(2, 0, dtype=torch.int64), torch.arange(count) % 4
    compiled, graphs = compiled_with_count(layer)
    for a, b in zip(run(compiled, layer, given), run(layer, layer, given), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert len(graphs) == 1


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_products_of_relations_have_gradients_of_weights_of_edges_in_a_compiled_function(reduce):
    edge_index, edge_type = typed_edges("cpu")
    tensors = [torch.randn(shape, requires_grad=True) for shape in ((17, 6), (5, 6, 4), (89, 1))]

    def product(edge_index, edge_type, x, weight, of_edge):
        graph = pumice.TypedGraph(edge_index, edge_type, 17, 5)
        return ops.rgms(graph, x, weight, of_edge, reduce)

    compiled, graphs = compiled_with_count(product)
    grad = torch.randn(17, 4)
    made = []
    for call in (compiled, product):
        output = call(edge_index, edge_type, *tensors)
        made.append([output.detach(), *torch.autograd.grad(output, tensors, grad)])
    assert len(graphs) == 1
    for a, b in zip(*made, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 4), (4,), (5, 6, 4, 1)])
def test_a_weight_of_another_shape_is_refused_in_the_same_words(shape):
    edge_index, edge_type = typed_edges("cpu")
    graph = pumice.TypedGraph(edge_index, edge_type, 17, 5).traceable()
    weight = torch.randn(shape)
    said = rf"typed_linear: weight has shape \[{', '.join(map(str, shape))}\]: give \[5 types, C_in, C_out\]"
    for product, rows in (
        (lambda x, weight: ops.rgms(graph, x, weight), 17),
        (lambda x, weight: ops.typed_linear(x, weight, graph.segments), graph.segments.rows),
    ):
        torch._dynamo.reset()
        for call in (product, torch.compile(product, fullgraph=True, backend="aot_eager")):
            with pytest.raises(pumice.UserError, match=said):
                call(torch.randn(rows, 6), weight)


def test_memory_for_the_way_back_is_given_back_with_it():
    """Segments that a product keeps for its gradient live as long as the graph of autograd, and no longer."""
    edge_index, edge_type = typed_edges("cpu")
    graph = pumice.TypedGraph(edge_index, edge_type, 17, 5)
    x, weight = torch.randn(17, 6, requires_grad=True), torch.randn(5, 6, 4, requires_grad=True)
    output, kept = torch.ops.pumice.rgms(*graph.tokens, None, x, weight, 17, "max")
    copy = kept.clone()
    del kept
    gathered, source = pumice._C.tensors_of(copy)
    assert gathered.shape == source.shape == (graph.segments.rows, 6)
    del gathered, source
    output.sum().backward()
    del output
    with pytest.raises(pumice.UserError, match="stands for no"):
        pumice._C.tensors_of(copy)


def test_parts_of_a_graph_that_a_compiled_function_makes_can_be_asked_for():
    edge_index, edge_type = typed_edges("cpu")

    def gathered(edge_index, edge_type, x):
        graph = pumice.TypedGraph(edge_index, edge_type, 17, 5)
        return ops.spmm(graph.gather, x), graph.kind_of_segment(), graph.scatter.edge_index

    torch._dynamo.reset()
    call = (edge_index, edge_type, torch.randn(17, 3))
    for a, b in zip(torch.compile(gathered, fullgraph=True, backend="aot_eager")(*call), gathered(*call), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("typed", [False, True])
def test_a_layer_runs_as_it_is_with_a_graph_that_is_not_traceable(typed):
    edge_index, edge_type = typed_edges("cpu")
    layer = nn.graph.RGATConv(6, 4, 5) if typed else nn.graph.SAGEConv(6, 4)
    graph = pumice.TypedGraph(edge_index, edge_type, 17, 5) if typed else pumice.Graph(edge_index, 17)
    x = torch.randn(17, 6)
    compiled, graphs = compiled_with_count(layer)
    torch.testing.assert_close(compiled(x, graph), layer(x, graph))  # what takes the graph is not compiled
    graph.traceable()
    compiled, graphs = compiled_with_count(layer)
    torch.testing.assert_close(compiled(x, graph), layer(x, graph))
    assert len(graphs) == 1
