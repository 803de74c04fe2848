"""Graphs that layers make of edges are kept with the edges, and made anew when these change."""

import copy
import pickle

import pytest
import torch

import pumice
from pumice import nn, ops
from sparse_products_test import edges
from typed_graph_layers_test import typed_edges


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


def test_a_graph_from_outside_of_a_compiled_function_says_what_it_needs():
    graph = pumice.Graph(edges(7, 7, 20), 7)
    compiled = torch.compile(lambda x: ops.spmm(graph, x), fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=r"graph\.traceable\(\)"):
        compiled(torch.randn(7, 3))
    graph.traceable()
    assert compiled(torch.randn(7, 3)).shape == (7, 3)
