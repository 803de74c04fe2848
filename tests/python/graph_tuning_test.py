"""Tuning, candidates and explanations of networks of graph layers."""

import os
import subprocess
import sys

import pytest
import torch

import pumice
from pumice import nn

EDGES = torch.randint(0, 60, (2, 400), generator=torch.Generator().manual_seed(1))
X = torch.randn(60, 8, generator=torch.Generator().manual_seed(2))


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.graph.SAGEConv(8, 8)
        self.second = nn.graph.GATv2Conv(8, 4)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges)


def test_tune_measures_the_products_of_graph_layers():
    model = TwoLayers().eval()
    tuning = pumice.tune(model, [(X, EDGES)], budget_s=3, store=False, progress=False)
    problems = [layer.problem for layer in tuning.layers]
    assert problems == [
        "spmm forward mean f32 channels 8",
        "edge_scores forward f32 channels 4",
        "spmm forward sum f32 channels 4 weighted",
    ]
    for layer in tuning.layers:
        assert layer.rows == 60
        assert layer.untuned.startswith("csr/ranges of 65536/8 ahead")
        assert {one["verdict"] for one in layer.candidates}.isdisjoint({"refused"})
    assert "spmm forward mean f32" in str(tuning)


def test_tune_measures_training_steps():
    model = torch.nn.ModuleList([nn.graph.SAGEConv(8, 3)])[0]
    labels = torch.zeros(60, dtype=torch.int64)
    loss = lambda output, item: torch.nn.functional.cross_entropy(output, item[1])
    features = X.clone().requires_grad_()
    tuning = pumice.tune(model, [((features, EDGES), labels)], loss=loss, budget_s=2, store=False)
    assert tuning.layers[0].problem == "spmm forward mean f32 channels 3"
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_was_tuned_goes_to_a_store_and_computes_the_same(tmp_path):
    program = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
import pumice, torch
from graph_tuning_test import EDGES, X, TwoLayers
model, graph = TwoLayers().eval(), pumice.Graph(EDGES, 60)
before = model(X, graph)
tuning = pumice.tune(model, [(X, graph)], budget_s=20, store=False, progress=False)
tuning.save("plans.json")
assert pumice.load_plans("plans.json") == len(tuning.layers)
after = pumice.candidates(model, (X, graph))
assert [product["name"] for product in after] == [layer.plan for layer in tuning.layers]
assert all(product["is_stored"] for product in after)
torch.testing.assert_close(model(X, graph), before, rtol=1e-5, atol=1e-5)
"""
    environment = {**os.environ, "PUMICE_PLANS": str(tmp_path / "plans.sqlite")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_candidates_lists_what_could_run():
    found = pumice.candidates(TwoLayers().eval(), (X, EDGES), measure=True)
    assert [one["problem"].split()[0] for one in found] == ["spmm", "edge_scores", "spmm"]
    for one in found:
        assert one["plan"] in [other["plan"] for other in one["candidates"]]
        assert all(other["measured_s"] > 0 for other in one["candidates"])
    assert "csr/ranges" in str(found)


def test_explain_names_the_plans_of_graph_layers():
    found = pumice.explain(TwoLayers(), (X, EDGES))
    assert [(layer.name, layer.kind) for layer in found] == [("first", "SAGEConv"), ("second", "GATv2Conv")]
    assert all(layer.plan.startswith("csr/ranges of 65536/8 ahead") and layer.reason for layer in found)
    assert [layer.rows for layer in found] == [60, 60]


TYPES = torch.arange(400) % 3


def typed(**more):
    return nn.graph.RGCNConv(60, 4, 3, **more).eval()


class Hetero(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.graph.HGTConv(8, 8, (["a"], [("a", "to", "a")]))

    def forward(self, x, edges):
        return self.layer(x, edges)["a"]


class OfGraph(torch.nn.Module):
    """Features that are learnt, as networks have them that find missing edges."""

    def __init__(self):
        super().__init__()
        self.nodes = torch.nn.Parameter(X.clone())
        self.layer = nn.graph.RGCNConv(8, 4, 3)

    def forward(self, graph):
        return self.layer(self.nodes, graph)


# What layers take, and how many rows and channels explain finds that go into the first of them.
TAKEN = {
    "None": (typed, (None, EDGES, TYPES), (60, 0)),
    "numbers": (typed, (torch.arange(60), EDGES, TYPES), (60, 0)),
    "None and a typed graph": (typed, (None, pumice.TypedGraph(EDGES, TYPES, 60)), (60, 0)),
    "features and a typed graph": (lambda: nn.graph.RGCNConv(8, 4, 3), (X, pumice.TypedGraph(EDGES, TYPES, 60)), (60, 8)),
    "a pair": (lambda: nn.graph.SAGEConv((8, 8), 4), ((X, None), EDGES), (60, 8)),
    "a pair without sources": (typed, ((None, torch.arange(60)), EDGES, TYPES), (60, 0)),
    "dictionaries": (Hetero, ({"a": X}, {("a", "to", "a"): EDGES}), (60, 8)),
    "a typed graph": (OfGraph, pumice.TypedGraph(EDGES, TYPES, 60), (60, 8)),
}


@pytest.mark.parametrize("given", TAKEN)
def test_what_layers_take_is_an_input(given):
    make, x, size = TAKEN[given]
    model = make().eval()
    (layer,) = pumice.explain(model, x)
    assert (layer.rows_in, layer.channels_in, layer.rows) == (*size, 60) and layer.plan
    assert pumice.candidates(model, x)
    labels = torch.zeros(60, dtype=torch.int64)
    for item, loss in ((x, None), ((x, labels), lambda output, item: torch.nn.functional.cross_entropy(output, item[1]))):
        assert pumice.tune(model, [item], loss=loss, budget_s=0.2, store=False, progress=False).layers


def test_what_is_no_input_is_refused():
    wanted = r"takes a sparse tensor, a PointTensor, or what graph layers take, \(features, graph or edge_index, …\), "
    wanted += "and got a"
    for x, remedy in (
        ((X, X), r" tuple: give a graph or edge_index, int64 \[2, E\], after what the nodes have"),
        ((None, None), r" tuple: give a graph or edge_index, int64 \[2, E\], after"),
        ((X,), r" tuple: give a graph or edge_index, int64 \[2, E\], after"),
        (X, r" Tensor: make one with .*, or give \(features, edge_index\)"),
        ({"a": X}, r" dict: give edges too, as \(x_dict, edge_index_dict\)"),
        (("x", EDGES), r" tuple: give one of its items"),
        ((), r" tuple: give one of its items"),
    ):
        for call in (pumice.candidates, pumice.explain):
            with pytest.raises(pumice.UserError, match=wanted + remedy):
                call(TwoLayers(), x)


def test_explain_takes_layers_of_types_and_calls_by_keyword():
    class Typed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.graph.HGTConv(8, 8, (["a"], [("a", "to", "a")]))
            self.last = nn.graph.SAGEConv(8, 4)

        def forward(self, x, edges):
            return self.last(x=self.layer({"a": x}, {("a", "to", "a"): edges})["a"], edge_index=edges)

    assert [layer.name for layer in pumice.explain(Typed().eval(), (X, EDGES))] == ["layer", "last"]


def test_explain_counts_what_is_inside_of_a_layer_with_it():
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.act = torch.nn.ReLU()
            self.conv = nn.graph.GINConv(torch.nn.Sequential(torch.nn.Linear(8, 8), self.act))
            self.head = nn.graph.SAGEConv(8, 4)

        def forward(self, x, edges):
            return self.head(self.act(self.conv(x, edges)), edges)

    assert [layer.name for layer in pumice.explain(Shared().eval(), (X, EDGES))] == ["conv", "act", "head"]


def test_tune_tells_labels_of_edges_from_edges():
    def loss(output, item):
        return (output[item[1][0]] * output[item[1][1]]).sum()

    tuning = pumice.tune(TwoLayers(), [((X, EDGES), EDGES[:, :5])], loss=loss, budget_s=1, store=False, progress=False)
    assert tuning.layers
