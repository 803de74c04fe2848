"""Values, features and numbers of nodes: what layers and operators of graphs make of them is what PyG makes of them, and
what does not fit is named."""

import copy
import re

import pytest
import torch

import pumice
from graph_arguments_test import EDGES, LAYERS, MAKE, TYPES, X, both, call, features_of, pyg, said, same
from pumice import nn, ops
from sparse_products_test import DENSE


# Values


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc])
def test_values_pass_their_gradient_on_to_the_matrix(layout):
    x, grad = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    dense = DENSE.double().requires_grad_()
    (dense @ x).backward(grad)
    mine = DENSE.double().requires_grad_()
    blocks = {"blocksize": (2, 2)} if layout in (torch.sparse_bsr, torch.sparse_bsc) else {}
    graph, values = pumice.Graph.of(mine.to_sparse(layout=layout, **blocks))
    ops.spmm(graph, x, values).backward(grad)
    there = torch.ones_like(DENSE, dtype=torch.bool) if blocks else DENSE != 0
    if blocks:  # a block that is not there has no gradient
        there = DENSE.view(2, 2, 2, 2).ne(0).any(3).any(1)[:, None, :, None].expand(2, 2, 2, 2).reshape(4, 4)
    same(mine.grad, dense.grad * there)


@pytest.mark.parametrize("repeats", [False, True])
def test_values_of_a_coo_tensor_have_the_gradient_of_those_it_was_made_of(repeats):
    index = torch.tensor([[0, 2, 0, 2], [3, 1, 1, 1 if repeats else 0]])
    x, grad = torch.randn(4, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)
    results = []
    for of in ("dense", "graph"):
        values = torch.tensor([2.0, -1.0, 0.5, 3.0], dtype=torch.float64, requires_grad=True)
        matrix = torch.sparse_coo_tensor(index, values, (3, 4))
        if of == "dense":
            output = torch.zeros(3, 4, dtype=torch.float64).index_put((index[0], index[1]), values, accumulate=True) @ x
        else:
            graph, mine = pumice.Graph.of(matrix)
            output = ops.spmm(graph, x, mine)
        output.backward(grad)
        results.append((output.detach(), values.grad))
    for a, b in zip(*results, strict=True):
        same(b, a)
    without, _ = pumice.Graph.of(torch.sparse_coo_tensor(index, torch.ones(4), (3, 4)))
    assert without.entries == 4  # entries that repeat stay


def test_weights_of_networkx_are_those_it_counts():
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(3))
    graph.add_edge(0, 1, weight=2.5)
    graph.add_edge(1, 2)
    graph.add_edge(1, 2, weight=4)
    made, values = pumice.Graph.of(graph)
    dense = made.to_torch(values).to_dense()
    assert dense.numpy().tolist() == networkx.to_numpy_array(graph).T.tolist()
    graph.add_edge(2, 0, weight="heavy")
    assert "the edge from 2 to 0 has weight = 'heavy': give a number" in said(lambda: pumice.Graph.of(graph))
    assert pumice.Graph.of(networkx.path_graph(3))[1] is None


def test_values_that_are_not_as_many_as_entries():
    graph = pumice.Graph(EDGES, 4)
    assert "values have shape (3,): give [5]" in said(lambda: graph.to_torch(torch.ones(3)))
    assert "values have shape (): give [5]" in said(lambda: graph.to_torch(torch.tensor(1.0)))
    assert "values are a list" in said(lambda: graph.to_torch([1.0] * 5))
    assert "values have shape (5, 2): give [5]" in said(lambda: graph.to_torch(torch.ones(5, 2)))


def test_weights_of_edges_are_looked_at_with_and_without_norms():
    for normalize in (True, False):
        theirs, ours = both(lambda l, normalize=normalize: l.GCNConv(6, 5, normalize=normalize))
        weight = torch.rand(5, dtype=torch.float64)
        expected = theirs(X, EDGES, weight)
        column = weight[:, None].clone().requires_grad_()
        got = ours(X, EDGES, column)
        same(got, expected)
        got.sum().backward()
        assert column.grad.shape == (5, 1)
        for given in (torch.rand(5, 2), torch.rand(4), torch.rand(1, 5), torch.tensor(1.0)):
            shape = re.escape(str(tuple(given.shape)))
            assert re.search(rf"edge_weight has shape {shape}: give \[5\]", said(lambda given=given: ours(X, EDGES, given.double())))
        assert "edge_weight has no memory" in said(lambda: ours(X, EDGES, weight.to("meta")))


def test_loops_of_gcn_are_those_of_pyg():
    for loops, normalize in ((None, True), (None, False), (True, True), (False, True), (False, False)):
        theirs, ours = both(lambda l, a=loops, n=normalize: l.GCNConv(6, 5, add_self_loops=a, normalize=n))
        assert ours.add_self_loops is theirs.add_self_loops
        same(ours(X, EDGES), theirs(X, EDGES))
    with pytest.raises(ValueError):
        pyg.GCNConv(6, 5, add_self_loops=True, normalize=False)
    assert "add_self_loops = True and normalize = False" in said(
        lambda: nn.graph.GCNConv(6, 5, add_self_loops=True, normalize=False)
    )
    assert "add_self_loops" in said(lambda: nn.graph.GCNConv(6, 5, add_self_loops="no"))


# x


@pytest.mark.parametrize("name", LAYERS)
def test_features_of_another_width_or_type_are_named(name):
    layer = MAKE[name](nn.graph).double()
    x = features_of(name)
    assert f"{name}: {x} has 7 channels: give 6" in said(lambda: call(layer, torch.randn(4, 7).double(), EDGES))
    sentence = said(lambda: call(layer, X.float(), EDGES))
    assert f"{name}: {x} is torch.float32 and the layer's weights are torch.float64: give {x}.to(torch.float64)" in sentence
    call(layer.to(torch.float32), X.float(), EDGES)
    with torch.autocast("cpu", torch.bfloat16):
        call(layer, X.to(torch.bfloat16), EDGES)


PAIRS = {
    "SAGEConv": lambda l: l.SAGEConv((6, 3), 5),
    "GATConv": lambda l: l.GATConv((6, 3), 5, add_self_loops=False),
    "GATv2Conv": lambda l: l.GATv2Conv((6, 3), 5),
    "RGCNConv": lambda l: l.RGCNConv((6, 3), 5, 2),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_another_width_are_named(name):
    layer = PAIRS[name](nn.graph).double()
    of_targets = X[:, :3]
    call(layer, (X, of_targets), EDGES)
    assert f"{name}: x[1] has 6 channels: give 3" in said(lambda: call(layer, (X, X), EDGES))
    assert f"{name}: x[0] has 3 channels: give 6" in said(lambda: call(layer, (of_targets, of_targets), EDGES))
    if name != "RGCNConv":
        assert f"{name}: x has 6 channels: give 3" in said(lambda: call(layer, X, EDGES))


def test_rows_of_another_width_or_type_are_named():
    layer = nn.graph.HeteroLinear(6, 5, 2).double()
    assert "HeteroLinear: x has 5 channels: give 6" in said(lambda: layer(X[:, :5], TYPES[:4]))
    assert "HeteroLinear: x is torch.float32" in said(lambda: layer(X.float(), TYPES[:4]))
    for types, found in ((TYPES[:4] + 1, "2"), (TYPES[:4] - 1, "-1")):
        assert found in said(lambda types=types: layer(X, types))


ATTRIBUTED = {
    "GATConv": lambda l: l.GATConv(6, 5, heads=2, edge_dim=3),
    "GATv2Conv": lambda l: l.GATv2Conv(6, 5, heads=2, edge_dim=3),
    "RGATConv": lambda l: l.RGATConv(6, 5, 2, heads=2, edge_dim=3),
}


@pytest.mark.parametrize("name", ATTRIBUTED)
def test_features_of_edges_of_another_width_or_type_are_named(name):
    layer = ATTRIBUTED[name](nn.graph).double()
    attributes = torch.ones(5, 3, dtype=torch.float64)
    call(layer, X, EDGES, edge_attr=attributes)
    assert "edge_attr has shape (5, 2): give [5, 3]" in said(lambda: call(layer, X, EDGES, edge_attr=attributes[:, :2]))
    sentence = said(lambda: call(layer, X, EDGES, edge_attr=attributes.float()))
    assert f"{name}: edge_attr is torch.float32 and the layer's weights are torch.float64" in sentence
    assert "give edge_attr.to(torch.float64)" in sentence
    without = MAKE[name](nn.graph).double()
    assert "edge_attr is given to a layer without edge_dim" in said(lambda: call(without, X, EDGES, edge_attr=attributes))


def test_a_pair_that_cannot_be_added_is_named():
    layer = nn.graph.GINConv(torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU())).double()
    for channels in (1, 3):
        assert f"GINConv: x[0] has 6 channels and x[1] {channels}" in said(lambda c=channels: layer((X, X[:, :c]), EDGES))
    assert "GINConv: x has 3 channels: give 6" in said(lambda: layer(X[:, :3], EDGES))


# Numbers of nodes

NUMBERED = {
    "whole": lambda l: l.RGCNConv(4, 5, 2),
    "bases": lambda l: l.RGCNConv(4, 5, 2, num_bases=2),
    "no root": lambda l: l.RGCNConv(4, 5, 2, root_weight=False),
}


@pytest.mark.parametrize("name", NUMBERED)
def test_numbers_of_nodes_are_those_of_pyg(name):
    theirs, ours = both(NUMBERED[name])
    numbers = torch.tensor([2, 0, 3, 3])
    for given in (numbers, numbers.int()):
        same(ours(given, EDGES, TYPES), theirs(given, EDGES, TYPES))
        pair = (given, given.flip(0))
        same(ours(pair, EDGES, TYPES), theirs(pair, EDGES, TYPES))
    compiled = torch.compile(copy.deepcopy(ours), fullgraph=True, backend="aot_eager")
    same(compiled(numbers, EDGES, TYPES), ours(numbers, EDGES, TYPES))
    for wrong in (numbers + 1, numbers - 1):
        with pytest.raises(RuntimeError, match="x has numbers of nodes that are not from 0 to below 4"):
            compiled(wrong, EDGES, TYPES)
    torch._dynamo.reset()


@pytest.mark.parametrize("name", NUMBERED)
def test_numbers_that_are_no_nodes_are_named(name, device):
    layer = NUMBERED[name](nn.graph).to(device)
    numbers, edge_index, types = torch.arange(4, device=device), EDGES.to(device), TYPES.to(device)
    for make in (lambda of: of.clone(), lambda of: of.int()):
        given = make(numbers)
        for _ in range(2):
            layer(given, edge_index, types)
        given += 1
        assert "x[3] = 4 where the layer has 4 rows: give numbers of nodes from 0 to 3" in said(
            lambda given=given: layer(given, edge_index, types)
        )
        assert "x[0] = -1" in said(lambda make=make: layer(make(numbers - 1), edge_index, types))
        assert "x[0][3] = 4" in said(lambda make=make: layer((make(numbers + 1), make(numbers)), edge_index, types))
        for shape in ((4, 1), (2, 2)):
            assert f"x has shape {shape}: give [nodes] numbers" in said(
                lambda make=make, shape=shape: layer(make(numbers).view(shape), edge_index, types)
            )
    if layer.root is not None:
        assert "x[1][0] = -1" in said(lambda: layer((numbers, numbers - 1), edge_index, types))
    for given in (numbers.short(), numbers.bool(), numbers.byte()):
        assert f"x is {given.dtype}: give floats [nodes, channels], or int64 [nodes]" in said(
            lambda given=given: layer(given, edge_index, types)
        )
    nothing = torch.zeros(2, 0, dtype=torch.int64, device=device)
    assert layer(numbers[:0], nothing, nothing[0]).shape == (0, 5)


# Attention without a slope


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv"])
def test_a_slope_of_0_is_that_of_pyg(name, loops):
    theirs, ours = both(lambda l: getattr(l, name)(6, 5, heads=2, negative_slope=0.0, add_self_loops=loops))
    edge_index = torch.cat([EDGES, torch.tensor([[2, 2, 0], [2, 2, 0]])], 1)  # loops that repeat count nothing
    results = []
    for layer in (theirs, ours):
        x = X.clone().requires_grad_()
        output = layer(x, edge_index)
        output.mul(torch.arange(40).view(4, 10).cos()).sum().backward()
        results.append((output.detach(), x.grad, *[p.grad for _, p in sorted(layer.named_parameters())]))
    for a, b in zip(*results, strict=True):
        same(b, a)


@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0])
def test_an_edge_of_minus_infinity_is_as_if_it_were_not_there(device, slope):
    """Of additive attention too, whose scores are weighed before they are shares."""
    results = []
    for edge_index in (torch.tensor([[0, 1, 2, 1], [0, 0, 0, 1]]), torch.tensor([[0, 2, 1], [0, 0, 1]])):
        graph = pumice.Graph(edge_index.to(device), (3, 2))
        x = torch.linspace(-2, 2, 9, device=device).view(3, 3).requires_grad_()
        attention = torch.tensor([0.5, 1.0, 2.0], device=device, requires_grad=True)
        entry = torch.zeros(edge_index.shape[1], 3, device=device)
        if edge_index.shape[1] == 4:
            entry[1] = float("-inf")
        scores = ops.edge_scores(graph, x[:2], x, attention, entry.requires_grad_(), negative_slope=slope)
        shares = ops.edge_softmax(graph, scores)
        kept = shares[[0, 2, 3]] if edge_index.shape[1] == 4 else shares
        output = ops.spmm(graph, x, shares)
        output.mul(torch.arange(6, device=device).view(2, 3).cos()).sum().backward()
        of_entry = entry.grad[[0, 2, 3]] if edge_index.shape[1] == 4 else entry.grad
        results.append((kept.detach(), output.detach(), x.grad, attention.grad, of_entry))
    for a, b in zip(*results, strict=True):
        assert bool(a.isfinite().all())
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_a_score_of_0_is_that_below_it(device):
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    graph = pumice.Graph(torch.tensor([[0, 1, 2, 3], [0, 0, 0, 0]], device=device), (4, 1))
    for slope in (0.0, 0.25):
        results = []
        for attend in (
            lambda s, slope=slope: torch.softmax(torch.nn.functional.leaky_relu(s, slope), 0),
            lambda s, slope=slope: ops.edge_softmax(graph, s, negative_slope=slope),
        ):
            scores = torch.tensor([0.0, -1.0, 2.0, -0.0], dtype=dtype, device=device, requires_grad=True)
            shares = attend(scores)
            shares.mul(torch.arange(4, device=device).cos()).sum().backward()
            results.append((shares.detach(), scores.grad))
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-6)


# Operators, and graphs on devices


@pytest.mark.parametrize("wants_gradient", [False, True])
def test_operators_are_named_as_they_were_called(wants_gradient):
    graph, x = pumice.Graph(EDGES, 4), torch.randn(4, 3, requires_grad=wants_gradient)
    for call_, sentence in (
        (lambda: ops.sddmm(graph, x[:3], x), "sddmm: left has 3 rows and the graph 4 rows"),
        (lambda: ops.sddmm(graph, x, x[:3]), "sddmm: right has 3 rows and the graph 4 columns"),
        (lambda: ops.sddmm(graph, x[:, :2], x), "sddmm: left has 2 channels and right 3"),
        (lambda: ops.sddmm(graph, x.double(), x), "sddmm: left is torch.float64 and right torch.float32"),
        (lambda: ops.sddmm(graph, x[:, 0], x), "left has shape (4,)"),
        (lambda: ops.edge_softmax(graph, x[:, 0]), "edge_softmax: scores has shape (4,): give [5] or [5, heads]"),
        (lambda: ops.edge_softmax(graph, x[:, :, None]), "edge_softmax: scores has shape (4, 3, 1)"),
        (lambda: ops.edge_softmax(graph, target=x[:, 0]), "edge_softmax: target has shape (4,): give [4, heads]"),
        (lambda: ops.edge_softmax(graph, source=x[:3]), "edge_softmax: source has shape (3, 3): give [4, heads]"),
        (lambda: ops.edge_softmax(graph, torch.ones(5).int()), "edge_softmax: scores is torch.int32"),
    ):
        assert sentence in said(call_)


def test_add_is_another_word_for_sum():
    graph, typed = pumice.Graph(EDGES, 4), pumice.TypedGraph(EDGES, TYPES, 4, 2)
    weight = torch.randn(2, 6, 3, dtype=torch.float64)
    assert torch.equal(ops.spmm(graph, X, reduce="add"), ops.spmm(graph, X, reduce="sum"))
    assert torch.equal(ops.rgms(typed, X, weight, reduce="add"), ops.rgms(typed, X, weight, reduce="sum"))
    for run in (lambda: ops.spmm(graph, X, reduce="median"), lambda: ops.rgms(typed, X, weight, reduce="median")):
        assert "reduce = 'median': choose sum, mean, max, min" in said(run)


def test_a_typed_graph_goes_to_a_device_and_back(device):
    graph = pumice.TypedGraph(EDGES, TYPES, 4, 3)
    assert graph.to("cpu") is graph and graph.device == torch.device("cpu")
    there = graph.to(device)
    back = there.to("cpu")
    weight, x = torch.randn(3, 6, 5), X.float()
    expected = ops.rgms(graph, x, weight)
    torch.testing.assert_close(ops.rgms(there, x.to(device), weight.to(device)).cpu(), expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(ops.rgms(back, x, weight), expected)
    assert torch.equal(back.kind_of_segment(), graph.kind_of_segment())
    assert there.device.type == device.type and (there.rows, there.columns, there.entries, there.relations) == (4, 4, 5, 3)


@pytest.mark.parametrize("make", [lambda: nn.graph.GCNConv(8, 5), lambda: nn.graph.GATConv(8, 5), lambda: nn.graph.SAGEConv(8, 5),
                                  lambda: nn.graph.GATv2Conv(8, 5), lambda: nn.graph.GINConv(torch.nn.Linear(8, 5))])
@pytest.mark.parametrize("of", ["edges", "a graph"])
def test_a_look_in_inference_mode_leaves_nothing_that_training_cannot_use(make, of):
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    given = edge_index if of == "edges" else pumice.Graph(edge_index, num_nodes=3)
    x, layer = torch.randn(3, 8), make()
    with torch.inference_mode():
        looked = layer(x, given)
    output = layer(x, given)
    output.sum().backward()
    torch.testing.assert_close(output.detach(), looked.clone())
    assert all(parameter.grad is not None for parameter in layer.parameters())


@pytest.mark.parametrize("make", [lambda: nn.graph.RGCNConv(8, 5, 2), lambda: nn.graph.RGATConv(8, 5, 2)])
def test_the_same_of_typed_edges(make):
    edge_index, edge_type = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([0, 1, 1])
    x, layer = torch.randn(3, 8), make()
    with torch.inference_mode():
        looked = layer(x, edge_index, edge_type)
    output = layer(x, edge_index, edge_type)
    output.sum().backward()
    torch.testing.assert_close(output.detach(), looked.clone())
