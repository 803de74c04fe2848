"""Forms of calls of compiled steps on graphs: features of edges, edges in every form, sampled blocks, and what labels go with. With
graphs that are pretended (pretended_step.py); what nothing may come from is in compiled_step_graphs_test.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pretended_step
import pytest
import torch
from compiled_step_graphs_test import (
    CLASSES, SIZES, Network, by_hand, labels_of, made, same_loss, same_state, with_filled_room,
)  # fmt: skip
from planned_graphs_test import CHANNELS, PLAIN, RELATIONS, TYPED, Typed, graph_of
from torch.nn.functional import cross_entropy

import pumice
from pumice import data
from pumice.nn import graph as layers


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pretended_step.use_counts(monkeypatch)
    yield


class OfEdges(torch.nn.Module):
    """Weighs edges by what it makes of their features, with numbers of its own that features are multiplied by."""

    def __init__(self) -> None:
        super().__init__()
        self.weigh = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1), torch.nn.Sigmoid())
        self.scale = torch.nn.Parameter(torch.rand(CHANNELS))
        self.first, self.second = layers.GCNConv(CHANNELS, 8), layers.GATConv(8, CLASSES, edge_dim=5)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, edge_attr: torch.Tensor) -> torch.Tensor:
        y = self.first(x * self.scale, edges, self.weigh(edge_attr).squeeze(1)).relu()
        return self.second(y, edges, edge_attr)


def test_gradients_through_features_of_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    with_filled_room(monkeypatch, 3.0)
    torch.manual_seed(1)
    net, step, other, optimizer = made(None, net=OfEdges(), dtype=torch.float64)
    for seed, (nodes, edges) in enumerate((*SIZES, *SIZES)):
        x, index, _ = graph_of(nodes, edges, seed)
        given = x.double(), index, torch.randn(edges, 5, generator=torch.Generator().manual_seed(seed)).double()
        labels = labels_of(nodes, seed)
        expected = by_hand(other, optimizer, given, labels)
        value = step(*given, labels) if seed % 2 else step(given[0], index, edge_attr=given[2], labels=labels)
        same_loss(value, expected)
    same_state(net, step, other, optimizer, 1e-8, 1e-10)
    assert step.recordings == 6, "by name and by place are buckets of their own"


@pytest.mark.parametrize("form", ["Graph", "int32", "TypedGraph"])
def test_edges_are_given_as_to_compiled_models(form: str) -> None:
    net, step, other, optimizer = made(TYPED["RGCN"] if form == "TypedGraph" else PLAIN["GAT"], dtype=torch.float64)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, types = graph_of(nodes, edges, seed)
        x, labels = x.double(), labels_of(nodes, seed)
        if form == "TypedGraph":
            given: tuple[Any, ...] = (x, pumice.TypedGraph(index, types, nodes, RELATIONS))
        else:
            given = (x, pumice.Graph(index, nodes) if form == "Graph" else index.int())
        same_loss(step(*given, labels), by_hand(other, optimizer, given, labels))
    same_state(net, step, other, optimizer, 1e-8, 1e-10)
    assert step.recordings == 3


class Sampled(torch.nn.Module):
    """Layers over blocks, whose targets are the first of their sources."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([layers.SAGEConv(CHANNELS, 16), layers.GATConv((16, 16), CLASSES, add_self_loops=False)])
        self.norm = torch.nn.BatchNorm1d(16)

    def forward(self, x: torch.Tensor, blocks: list[pumice.Graph]) -> torch.Tensor:
        first, second = blocks
        x = self.norm(self.layers[0]((x, x[: first.rows]), first)).relu()
        return self.layers[1]((x, x[: second.rows]), second)


def test_sampled_blocks_with_labels_of_seeds() -> None:
    edges = data.grid_edges([60, 60])
    features, classes = torch.randn(3600, CHANNELS), torch.arange(3600) % CLASSES
    net, step, other, optimizer = made(None, net=Sampled(), buckets=2)
    turns = 0
    for seeds in (300, 290, 310, 305, 31, 33):
        for batch in data.NeighbourLoader(edges, [4, 3], batch_size=seeds, input_nodes=torch.arange(0, 3 * seeds), seed=seeds):
            given = features[batch.n_id], batch.blocks
            labels = classes[batch.seeds]
            torch.testing.assert_close(step(*given, labels), by_hand(other, optimizer, given, labels), rtol=1e-3, atol=1e-4)
            turns += 1
    same_state(net, step, other, optimizer, 1e-2, 2e-3)
    assert turns == 18 and 0 < step.recordings < 8


def test_labels_of_the_first_nodes_alone() -> None:
    """As of a sampled graph whose seeds come first, in numbers that change."""
    net, step, other, optimizer = made(PLAIN["SAGE"], dtype=torch.float64)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, _ = graph_of(nodes, edges, seed)
        seeds = 40 if nodes > 850 else 1 + seed
        labels = labels_of(nodes, seed)[:seeds].clamp(min=0).to(torch.uint8)
        expected = by_hand(other, optimizer, (x.double(), index), labels.long(), lambda y, labels: cross_entropy(y[: len(labels)], labels))
        same_loss(step(x.double(), index, labels), expected)
    same_state(net, step, other, optimizer, 1e-8, 1e-10)
    assert step.recordings == 3


def masked(output: torch.Tensor, labels: dict[str, torch.Tensor]) -> torch.Tensor:
    each = cross_entropy(output, labels["classes"], ignore_index=-1, reduction="none")
    counts = labels["mask"] * (labels["classes"] >= 0)
    return (each * counts).sum() / counts.sum()


masked.ignore_index = -1  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["mask", "weights", "ignored", "numbers"])
def test_nodes_to_learn_from(kind: str) -> None:
    class Picked(Network):
        def forward(self, x: Any, edges: Any, picked: Any = None) -> Any:
            y = super().forward(x, edges)
            return y if picked is None else y[picked]

    loss = masked if kind in ("mask", "weights") else cross_entropy
    net, step, other, optimizer = made(None, net=Picked(PLAIN["GCN"]), dtype=torch.float64, loss=loss)
    for seed, (nodes, edges) in enumerate(size for size in SIZES if size[0] > 13):
        x, index, _ = graph_of(nodes, edges, seed)
        x, classes = x.double(), labels_of(nodes, seed).clamp(min=0)
        mask = torch.rand(nodes, generator=torch.Generator().manual_seed(seed)) < 0.5
        mask[:13] = True
        picked = torch.arange(13) if kind == "numbers" else mask
        expected = by_hand(other, optimizer, (x, index), classes, lambda y, classes: cross_entropy(y[picked], classes[picked]))
        if kind == "numbers":  # as many in each step
            value = step(x, index, torch.arange(13), classes[:13])
        elif kind == "ignored":
            value = step(x, index, classes.masked_fill(~mask, -100))
        else:
            value = step(x, index, {"classes": classes, "mask": mask if kind == "mask" else mask.double()})
        same_loss(value, expected)
    same_state(net, step, other, optimizer, 1e-8, 1e-10)
    assert step.recordings == 3


class Pairs(torch.nn.Module):
    """Scores of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = layers.SAGEConv(CHANNELS, 8), torch.nn.Linear(8, CLASSES)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        y = self.layer(x, edges)
        return self.head(y[edges[0]] * y[edges[1]])


def test_labels_of_edges() -> None:
    net, step, other, optimizer = made(None, net=Pairs(), dtype=torch.float64)
    for seed, (nodes, edges) in enumerate(size for size in SIZES if size[1] > 1):
        x, index, _ = graph_of(nodes, edges, seed)
        labels = labels_of(edges, seed)
        same_loss(step(x.double(), index, labels), by_hand(other, optimizer, (x.double(), index), labels))
    same_state(net, step, other, optimizer, 1e-8, 1e-10)
    assert step.recordings == 3


def test_where_there_are_as_many_nodes_as_edges_labels_follow_earlier_ones() -> None:
    net, step, other, optimizer = made(PLAIN["GCN"], dtype=torch.float64)

    def train(nodes: int, edges: int, seed: int) -> None:
        x, index, _ = graph_of(nodes, edges, seed)
        labels = labels_of(nodes, seed)
        same_loss(step(x.double(), index, labels), by_hand(other, optimizer, (x.double(), index), labels))

    for turn in range(4):
        train(50 + turn, 50 + turn, turn)
    assert step.recordings == 0 and len(step._buckets) == 0, "nobody has told whose labels these are"
    for turn in range(4):
        train(50 + turn, 90, turn)
        train(50 + turn, 50 + turn, turn)
    assert step.recordings == 1 and len(step._buckets) == 1


def test_types_of_nodes_are_given_by_name() -> None:
    torch.manual_seed(3)
    net = Typed().double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)

    def loss(output: dict[str, torch.Tensor], labels: dict[str, torch.Tensor]) -> torch.Tensor:
        return sum(cross_entropy(output[name], labels[name], ignore_index=-1) for name in ("user", "item"))  # type: ignore[return-value]

    loss.ignore_index = -1  # type: ignore[attr-defined]
    net, step, other, optimizer = made(None, net=net, dtype=torch.float64, loss=loss)
    for seed, (users, items, edges) in enumerate([(300, 200, 500), (290, 190, 480), (280, 170, 490), (31, 33, 40), (33, 31, 50), (270, 201, 401)]):
        generator = torch.Generator().manual_seed(seed)
        counts = {"user": users, "item": items}
        x = {name: torch.randn(count, CHANNELS, generator=generator).double() for name, count in counts.items()}
        index = {
            kind: torch.stack([torch.randint(0, counts[kind[end]], (edges + at,), generator=generator) for end in (0, 2)])
            for at, kind in enumerate(Typed.KINDS)
        }
        labels = {name: labels_of(count, seed) for name, count in counts.items()}
        expected = by_hand(other, optimizer, (x, index), labels, loss)
        same_loss(step(x, index, labels), expected)
    same_state(net, step, other, optimizer, 1e-8, 1e-10)
    assert step.recordings == 1
