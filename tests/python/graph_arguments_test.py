"""Layers of graphs take what PyG's take, as PyG takes it, and say of everything else what to give instead."""

import inspect
import re
import warnings

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

import pumice
from pumice import nn, ops
from sparse_products_test import DENSE, DglLike, SparseTensorLike, edges, networkx_graph, scipy_matrix

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its imports
    geometric = pytest.importorskip("torch_geometric", reason="torch_geometric is not installed: pip install torch_geometric")
    pyg = pytest.importorskip("torch_geometric.nn")

EDGES = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 3, 0, 1]])
TYPES = torch.tensor([0, 1, 1, 0, 0])
X = torch.linspace(-2, 2, 24, dtype=torch.float64).view(4, 6).sin()

KIND = ("a", "to", "a")

# Every layer that is there, so that a new one has to say how it is made.
MAKE = {
    "GATConv": lambda l: l.GATConv(6, 5, heads=2),
    "GATv2Conv": lambda l: l.GATv2Conv(6, 5, heads=2),
    "GCNConv": lambda l: l.GCNConv(6, 5),
    "GINConv": lambda l: l.GINConv(torch.nn.Linear(6, 5)),
    "HGTConv": lambda l: l.HGTConv(6, 6, (["a"], [KIND]), heads=2),
    "RGATConv": lambda l: l.RGATConv(6, 5, 2, heads=2),
    "RGCNConv": lambda l: l.RGCNConv(6, 5, 2),
    "SAGEConv": lambda l: l.SAGEConv(6, 5),
}
LAYERS = [name for name in nn.graph.__all__ if name.endswith("Conv")]
SIZED = [name for name in LAYERS if "size" in inspect.signature(getattr(nn.graph, name).forward).parameters]
PAIRED = [name for name in SIZED if name != "RGATConv"]  # which has no pairs
TYPED = ("RGATConv", "RGCNConv", "TypedGraph")


def both(make):
    """(PyG's layer, ours with its weights), in float64."""
    theirs, ours = make(pyg).double(), make(nn.graph).double()
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def same(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


def call(layer, x, edge_index, **more):
    name = type(layer).__name__
    if name == "HGTConv":
        return layer({"a": x}, {KIND: edge_index})["a"]
    return layer(x, edge_index, *([TYPES] if name in TYPED and not isinstance(edge_index, pumice.TypedGraph) else []), **more)


def edges_of(name):
    """What a layer calls its edges."""
    return f"edge_index_dict[{KIND!r}]" if name == "HGTConv" else "edge_index"


def features_of(name):
    return "x_dict['a']" if name == "HGTConv" else "x"


def said(function):
    with pytest.raises(pumice.UserError) as error:
        function()
    return str(error.value)


def test_types_that_there_are_not_are_named_as_the_layer_names_them():
    layer = nn.graph.HeteroLinear(8, 4, 3)
    for wrong in (3, -1):
        with pytest.raises(pumice.UserError, match=rf"type_vec\[2\] = {wrong} where the layer has 3 types"):
            layer(torch.randn(3, 8), torch.tensor([0, 1, wrong]))


def test_features_that_are_none_are_no_pair():
    with pytest.raises(pumice.UserError, match="x is None: give a tensor"):
        nn.graph.GATv2Conv(8, 4)(None, torch.tensor([[0], [0]]))


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_stands_in_these_tests(name):
    theirs, ours = both(MAKE[name])
    same(call(ours, X, EDGES), call(theirs, X, EDGES))


# size


@pytest.mark.parametrize("edge_index", [EDGES, pumice.Graph(EDGES, 4), geometric.EdgeIndex(EDGES)], ids=["tensor", "Graph", "EdgeIndex"])
@pytest.mark.parametrize("name", SIZED)
def test_size_is_looked_at_in_any_case(name, edge_index):
    layer = MAKE[name](nn.graph).double()
    if name in TYPED and isinstance(edge_index, pumice.Graph):
        edge_index = pumice.TypedGraph(EDGES, TYPES, 4, 2)
    expected = call(layer, X, edge_index)
    for size in ((4, 4), [4, 4], (None, 4), (4, None), (None, None), torch.Size([4, 4])):
        assert torch.equal(call(layer, X, edge_index, size=size), expected)
    for x in (X, (X, X), (X, None)) if name in PAIRED else (X,):
        assert "size = (7, " in said(lambda x=x: call(layer, x, edge_index, size=(7, 9)))
    for size, sentence in (
        ((4, 9), r"size = \(4, 9\) where there are 4 sources and 4 targets"),
        ((3, None), r"size = \(3, None\) where there are 4 sources"),
        ("nonsense", "size is a str: give the numbers of nodes"),
        ((4,), "size has 1 numbers: give two"),
        ((4, -1), "size = -1"),
        ((4, "4"), "size = '4'"),
        (torch.rand(5), r"size is a Tensor of shape \(5,\): .*weights of edges go to GCNConv or ops.spmm"),
    ):
        assert re.search(sentence, said(lambda size=size: call(layer, X, edge_index, size=size)))


@pytest.mark.parametrize("name", ["SAGEConv", "GINConv"])
def test_weights_in_the_place_of_size_are_not_dropped(name):
    layer = MAKE[name](nn.graph).double()
    for edge_index in (EDGES, pumice.Graph(EDGES, 4)):
        assert "weights of edges go to" in said(lambda of=edge_index: layer(X, of, torch.rand(5)))


def test_size_and_a_graph_have_to_agree():
    layer = nn.graph.SAGEConv(6, 5).double()
    assert "size = (99, 99)" in said(lambda: layer((X, None), pumice.Graph(EDGES, 4), size=(99, 99)))
    assert "size = (4, 5) where there are 4 sources and 3" in said(
        lambda: layer((X, None), pumice.Graph(torch.tensor([[3], [2]]), (4, 3)), size=(4, 5))
    )


@pytest.mark.parametrize("count", [0, 1, 33])
@pytest.mark.parametrize("name", PAIRED)
def test_pairs_without_features_of_targets_have_the_targets_of_pyg(name, count):
    theirs, ours = both(MAKE[name])
    x = (torch.randn(7, 6, dtype=torch.float64), None)
    edge_index = edges(3, 7, count)
    for size in (None, (7, 9), (None, 9), (7, None)):
        more = {} if size is None else {"size": size}
        if name == "GATConv" and size is not None and None in size:
            more = {}  # PyG compares None with numbers there
        expected = theirs(x, edge_index, **more)
        got = ours(x, edge_index, **({} if size is None else {"size": size}))
        if more or size in (None, (7, None)):
            same(got, expected)
        else:
            assert got.shape[0] == 9


def test_scores_of_both_sides_need_features_of_both_as_in_pyg():
    theirs, ours = both(MAKE["GATv2Conv"])
    with pytest.raises(AssertionError):
        theirs((X, None), EDGES)
    for edge_index in (EDGES, EDGES + 7):
        assert "features of targets are None" in said(lambda of=edge_index: ours((X, None), of))
    same(ours((X, X), EDGES), theirs((X, X), EDGES))


@pytest.mark.parametrize("name", PAIRED)
def test_a_target_beyond_the_sources_says_to_give_size(name):
    theirs, ours = both(MAKE[name])
    x, edge_index = (X[:2], None), torch.tensor([[0, 1], [0, 5]])
    with pytest.raises((ValueError, RuntimeError, IndexError)):
        theirs(x, edge_index)
    assert "edge_index[1] has target 5" in said(lambda: ours(x, edge_index))
    assert "give size = (2, number of targets)" in said(lambda: ours(x, edge_index))
    assert ours(x, edge_index, size=(2, 6)).shape[0] == 6


# EdgeIndex, and other subclasses of tensors


@pytest.mark.parametrize("size", [None, (4, 4), (4, None), (None, 4)])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_take_an_edge_index_object(name, size):
    theirs, ours = both(MAKE[name])
    given = geometric.EdgeIndex(EDGES, sparse_size=size or (None, None))
    expected = call(theirs, X, EDGES)
    same(call(ours, X, given), expected)
    same(call(ours, X, given), expected)  # of a graph that was kept


@pytest.mark.parametrize("name", LAYERS)
def test_an_edge_index_object_of_other_nodes_is_refused(name):
    layer = MAKE[name](nn.graph).double()
    given = geometric.EdgeIndex(EDGES, sparse_size=(9, 9))
    assert f"{edges_of(name)} has sparse_size (9, 9), and x 4 and 4 rows" in said(lambda: call(layer, X, given))


def test_an_edge_index_object_says_how_many_targets_there_are():
    theirs, ours = both(MAKE["SAGEConv"])
    given = geometric.EdgeIndex([[6, 5], [0, 1]], sparse_size=(7, 3))
    x = (torch.randn(7, 6, dtype=torch.float64), None)
    same(ours(x, given), theirs(x, given))
    assert ours(x, given).shape[0] == 3


def test_graphs_are_made_of_edge_index_objects():
    for size, nodes in ((None, (4, 4)), ((6, 5), (6, 5)), ((6, None), (6, 4)), ((None, 5), (4, 5))):
        given = geometric.EdgeIndex(EDGES, sparse_size=size or (None, None))
        typed = pumice.TypedGraph(given, TYPES)
        of, values = pumice.Graph.of(given)
        assert values is None
        for graph in (pumice.Graph(given), of, typed):
            assert (graph.columns, graph.rows, graph.entries) == (*nodes, 5)
        assert torch.equal(pumice.Graph(given).edge_index, EDGES) and torch.equal(of.edge_index, EDGES)
    assert pumice.Graph(geometric.EdgeIndex(EDGES), (8, 9)).rows == 9
    empty = geometric.EdgeIndex(torch.zeros(2, 0, dtype=torch.int64), sparse_size=(3, None))
    assert (pumice.Graph(empty).columns, pumice.Graph(empty).rows) == (3, 0)
    for make in (lambda of: pumice.Graph(of, 7), lambda of: pumice.TypedGraph(of, TYPES, 7)):
        assert "sparse_size (6, 5) where there are (7, 7)" in said(lambda make=make: make(geometric.EdgeIndex(EDGES, sparse_size=(6, 5))))


@pytest.mark.parametrize("name", ["RGATConv", "RGCNConv"])
def test_types_may_be_an_index_object(name):
    layer = MAKE[name](nn.graph).double()
    same(layer(X, EDGES, geometric.Index(TYPES)), layer(X, EDGES, TYPES))


def test_types_of_rows_may_be_an_index_object():
    layer = nn.graph.HeteroLinear(6, 5, 2).double()
    for _ in range(2):  # of a graph that was kept
        same(layer(X, geometric.Index(TYPES[:4])), layer(X, TYPES[:4]))


class Plain(torch.Tensor):
    """A subclass that is an ordinary tensor otherwise."""


@pytest.mark.parametrize("name", LAYERS)
def test_a_subclass_with_memory_of_its_own_is_a_tensor(name):
    layer = MAKE[name](nn.graph).double()
    same(torch.Tensor(call(layer, X, EDGES.as_subclass(Plain))), call(layer, X, EDGES))


def test_a_subclass_without_memory_is_not_called_meta():
    sentence = said(lambda: pumice.Graph(TwoTensor(EDGES, EDGES), 4))
    assert "TwoTensor, which keeps its numbers in other tensors: give an ordinary one" in sentence and "meta" not in sentence
    values = geometric.EdgeIndex(EDGES)
    sentence = said(lambda: ops.take_rows(torch.randn(4, 3), values[0]))
    assert ".as_tensor() gives it" in sentence and "meta" not in sentence
    assert "meta" in said(lambda: pumice.Graph(EDGES.to("meta"), 4))


# Other things in the place of edge_index

TAKERS = {
    **{name: lambda given, name=name: call(MAKE[name](nn.graph).double(), X, given) for name in LAYERS},
    "Graph": lambda given: pumice.Graph(given, 4),
    "TypedGraph": lambda given: pumice.TypedGraph(given, TYPES, 4),
}
TAKE_GRAPHS = [name for name in LAYERS if name not in (*TYPED, "HGTConv")]
THEN = {"HGTConv": "whose graph.edge_index goes here"} | dict.fromkeys(TYPED, "whose graph.edge_index goes with edge_type")
MATRICES = {
    "COO": lambda: DENSE.to_sparse(),
    "CSR": lambda: DENSE.to_sparse_csr(),
    "SciPy": scipy_matrix,
    "NetworkX": networkx_graph,
    "SparseTensor": SparseTensorLike,
    "DGL": DglLike,
}


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("taker", TAKERS)
def test_matrices_in_the_place_of_edges_are_sent_to_graph_of(taker, kind):
    sentence = said(lambda: TAKERS[taker](MATRICES[kind]()))
    then = THEN.get(taker, "which layers take instead")
    assert sentence.startswith(f"{edges_of(taker)} is ")
    assert f"graph, values = pumice.Graph.of({edges_of(taker)}) makes a graph of it, {then}" in sentence
    graph, values = pumice.Graph.of(MATRICES[kind]())  # and so it is
    if taker in TAKE_GRAPHS:
        TAKERS[taker](graph)
    else:
        TAKERS[taker](graph.edge_index)


@pytest.mark.parametrize("taker", TAKERS)
def test_what_is_no_edges_gets_a_remedy_that_works(taker):
    take = TAKERS[taker]
    pair = pumice.Graph.of(DENSE.to_sparse())
    remedy = "layer(x, *pumice.Graph.of(matrix))"
    if taker in THEN:
        remedy = "give the edge_index of that graph" + (", and edge_type" if taker in TYPED else "")
    for given in (pair, list(pair)):
        assert remedy in said(lambda given=given: take(given))
    data = geometric.data.Data(x=X, edge_index=EDGES)
    assert f"{edges_of(taker)} is a Data: give data.edge_index" in said(lambda: take(data))
    take(data.edge_index)
    hetero = geometric.data.HeteroData()
    hetero["a", "to", "a"].edge_index = EDGES
    for given in (hetero, hetero.edge_index_dict):
        assert "give the edges of one type, as data[source, relation, target].edge_index" in said(lambda given=given: take(given))
    take(hetero["a", "to", "a"].edge_index)
    for given in (EDGES.tolist(), EDGES.numpy()):
        assert f"torch.as_tensor({edges_of(taker)}) makes a tensor" in said(lambda given=given: take(given))
        take(torch.as_tensor(given))
    for given in (None, "edges", 3, iter([1]), object()):
        assert "give a tensor, int64 [2, edges], sources and targets" in said(lambda given=given: take(given))


@pytest.mark.parametrize("taker", TAKERS)
def test_graphs_of_the_other_kind_are_named(taker):
    plain, typed = pumice.Graph(EDGES, 4), pumice.TypedGraph(EDGES, TYPES, 4, 2)
    remedy = "give graph.edge_index and edge_type, or pumice.TypedGraph" if taker in TYPED else "graph.edge_index is what"
    if taker not in TAKE_GRAPHS:
        sentence = said(lambda: TAKERS[taker](plain))
        assert f"{edges_of(taker)} is a Graph: " in sentence and remedy in sentence
        TAKERS[taker](plain.edge_index)
    else:
        TAKERS[taker](plain)
    if taker in ("RGATConv", "RGCNConv"):
        TAKERS[taker](typed)
        return
    sentence = said(lambda: TAKERS[taker](typed))
    assert f"{edges_of(taker)} is a TypedGraph: " in sentence
    of_others = "give the edges of one type" if taker == "HGTConv" else "give [2, edges] or a pumice.Graph"
    assert ("it is made of" if taker in TYPED else of_others) in sentence


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_edges_of_a_type_lead_to_no_node_of_another(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device here: the same test runs on the CPU")
    layer = nn.graph.HGTConv(6, 6, (["a", "b"], [("a", "to", "b"), ("b", "to", "a")]), heads=2).to(device)
    x = {"a": torch.ones(4, 6, device=device), "b": torch.ones(3, 6, device=device)}
    edge_index = torch.tensor([[0, 3], [0, 2]], device=device)
    of_others = torch.tensor([[2, 0], [3, 0]], device=device)
    for row, by in ((0, 1), (0, -1), (1, 1), (1, -1)):
        wrong = edge_index.clone()
        wrong[row] += by
        for edges_of_both in ({("a", "to", "b"): wrong}, {("b", "to", "a"): of_others, ("a", "to", "b"): wrong}):
            sentence = said(lambda given=edges_of_both: layer(x, given))
            limit = 4 - row
            at = int(((wrong[row] < 0) | (wrong[row] >= limit)).nonzero()[0])
            place = f"edge_index_dict[('a', 'to', 'b')][{row}][{at}] = {int(wrong[row, at])}"
            assert f"{place} where there are {limit}: give numbers from 0 on" in sentence
        wrong[row] -= by  # written into, and looked at again
        assert layer(x, {("a", "to", "b"): wrong})["b"].shape == (3, 6)
        wrong[row] += by
        assert f"[{row}][{at}] = " in said(lambda of=wrong: layer(x, {("a", "to", "b"): of}))


@pytest.mark.parametrize("name", LAYERS)
def test_edges_without_memory_are_named(name):
    sentence = said(lambda: call(MAKE[name](nn.graph).double(), X, EDGES.to("meta")))
    assert sentence == f"{edges_of(name)} has no memory: give a tensor on the CPU or on a CUDA device, not on meta"


def test_a_matrix_and_its_values_are_weights_of_gcn():
    theirs, ours = both(lambda l: l.GCNConv(6, 5))
    row, column = DENSE.nonzero().t()
    expected = theirs(X, torch.stack([column, row]), DENSE[row, column].double())
    same(ours(X, *pumice.Graph.of(DENSE.to_sparse_csr())), expected)


@pytest.mark.parametrize("name", ["RGATConv", "RGCNConv"])
def test_types_beside_a_typed_graph_are_refused(name):
    typed = pumice.TypedGraph(EDGES, TYPES, 4, 2)
    layer = MAKE[name](nn.graph).double()
    assert "edge_type is given beside a TypedGraph" in said(lambda: layer(X, typed, TYPES))
    same(layer(X, typed), layer(X, EDGES, TYPES))


# What a layer has in PyG beside its own arguments: (a value that says what is the case here too, another one).
OF_PYG = {"flow": ("source_to_target", "target_to_source"), "node_dim": (-2, 1), "aggr": ("add", "mul"), "decomposed_layers": (1, 2)}


@pytest.mark.parametrize("name", [*LAYERS, "HeteroLinear"])
def test_keywords_of_pygs_layers_are_understood(name):
    kind = getattr(nn.graph, name)
    taken = {"in_channels": 6, "out_channels": 6, "num_relations": 2, "num_types": 2, "nn": torch.nn.Linear(6, 5), "metadata": (["a"], [KIND])}
    wanted = inspect.signature(kind).parameters
    given = {key: value for key, value in taken.items() if key in wanted}
    for word, (same, other) in OF_PYG.items():
        if word in wanted:
            continue
        assert isinstance(kind(**given, **{word: same}), kind)
        assert f"{word} = {other!r} is not there for {name}: " in said(lambda w=word, o=other: kind(**given, **{w: o}))
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        kind(**given, colour=1)


@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv", "RGATConv"])
@pytest.mark.parametrize("value", [True, False])
def test_weights_of_attention_are_not_returned(name, value):
    layer = MAKE[name](nn.graph).double()
    call(layer, X, EDGES, return_attention_weights=None)
    assert f"return_attention_weights = {value} is not there for {name}: " in said(
        lambda: call(layer, X, EDGES, return_attention_weights=value)
    )


def test_keywords_of_pygs_loader_are_understood():
    signature = inspect.signature(pytest.importorskip("torch_geometric.loader").NeighborLoader)
    ours = inspect.signature(pumice.data.NeighbourLoader).parameters
    for name, parameter in signature.parameters.items():
        if name in ours or name == "kwargs":
            continue
        sentence = said(lambda n=name: pumice.data.NeighbourLoader(EDGES, num_neighbors=[2], **{n: object()}))
        assert sentence.startswith(f"{name} is not there for NeighbourLoader: "), sentence
        if parameter.default is not inspect.Parameter.empty and name != "transform":
            pumice.data.NeighbourLoader(EDGES, num_neighbors=[2], **{name: parameter.default})
    assert "give workers" in said(lambda: pumice.data.NeighbourLoader(EDGES, num_neighbors=[2], num_workers=4))
