"""Compiled models that are given edges: numbers of nodes and edges that differ from call to call, on the CPU, on a pretended
device (pretended_device.py), and on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pretended_device
import pytest
import torch
from conftest import NO_GPU

import pumice
from pumice import data, nn
from pumice.graph import GraphsOfRun
from pumice.nn import graph as layers

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
CHANNELS, RELATIONS = 8, 3
# Nodes and edges; a bucket is outgrown, and come back to.
SIZES = ((900, 3000), (800, 2900), (850, 2500), (33, 31), (31, 40), (33, 0), (1, 1), (900, 3100), (900, 5000), (1100, 4900),
         (1050, 4800), (1040, 4700), (900, 2100))  # fmt: skip


class Network(torch.nn.Module):
    """Two layers, each of which is given the edges, and what goes with them."""

    def __init__(self, make: Callable[[int, int], torch.nn.Module]) -> None:
        super().__init__()
        self.first, self.norm, self.second = make(CHANNELS, 16), torch.nn.LayerNorm(16), make(16, 4)

    def forward(self, x: Any, edges: Any, *more: Any, **named: Any) -> Any:
        return self.second(self.norm(self.first(x, edges, *more, **named)).relu(), edges, *more, **named)


PLAIN: dict[str, Callable[[int, int], torch.nn.Module]] = {
    "GCN": layers.GCNConv,
    "GCN without loops": lambda i, o: layers.GCNConv(i, o, add_self_loops=False),
    "SAGE": layers.SAGEConv,
    "SAGE max": lambda i, o: layers.SAGEConv(i, o, aggr="max", normalize=True),
    "SAGE project": lambda i, o: layers.SAGEConv(i, o, aggr="sum", project=True),
    "GIN": lambda i, o: layers.GINConv(torch.nn.Linear(i, o)),
    "GAT": lambda i, o: layers.GATConv(i, o // 2, heads=2, residual=True),
    "GATv2": lambda i, o: layers.GATv2Conv(i, o, heads=2, concat=False),
}
TYPED: dict[str, Callable[[int, int], torch.nn.Module]] = {
    "RGCN": lambda i, o: layers.RGCNConv(i, o, RELATIONS),
    "RGCN max, bases": lambda i, o: layers.RGCNConv(i, o, RELATIONS, num_bases=2, aggr="max"),
    "RGAT": lambda i, o: layers.RGATConv(i, o // 2, RELATIONS, heads=2),
    "RGAT within": lambda i, o: layers.RGATConv(i, o, RELATIONS, attention_mechanism="within-relation"),
}


def graph_of(nodes: int, edges: int, seed: int, device: str = "cpu") -> tuple[torch.Tensor, ...]:
    """(features, edges, their types), in which nodes repeat, some have no edge, and one may have many."""
    generator = torch.Generator().manual_seed(seed)
    targets = (nodes * torch.rand(edges, generator=generator) ** 3).long()
    index = torch.stack([torch.randint(0, nodes, (edges,), generator=generator), targets])
    x, types = torch.randn(nodes, CHANNELS, generator=generator), torch.randint(0, RELATIONS, (edges,), generator=generator)
    return x.to(device), index.to(device), types.to(device)


def network(make: Callable[[int, int], torch.nn.Module]) -> torch.nn.Module:
    torch.manual_seed(3)
    net = Network(make)
    for parameter in net.parameters():
        if parameter.dim() == 1:  # biases begin at 0
            torch.nn.init.normal_(parameter, 0.0, 0.3)
    return net.eval()


def eager(net: torch.nn.Module, *given: Any, **named: Any) -> Any:
    with torch.no_grad():
        return net(*given, **named)


def same(made: torch.Tensor, expected: torch.Tensor) -> None:
    """Products with one row have another order of sums on the CPU."""
    assert made.shape == expected.shape and made.dtype == expected.dtype
    if len(made) > 1:
        assert torch.equal(made, expected)
    else:
        torch.testing.assert_close(made, expected)


@pytest.mark.parametrize("given", ["edge_index", "graph"])
@pytest.mark.parametrize("name", PLAIN)
def test_layers_give_the_bits_of_eager_ones(name: str, given: str) -> None:
    net = network(PLAIN[name])
    fast = pretended_device.compile(net)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, _ = graph_of(nodes, edges, seed)
        same(fast(x, pumice.Graph(index, nodes) if given == "graph" else index), eager(net, x, index))
    assert fast._recorder.graphs == 3, "a bucket for each room of nodes and of edges"


@pytest.mark.parametrize("given", ["edge_index", "graph", "int32"])
@pytest.mark.parametrize("name", TYPED)
def test_layers_of_relations_give_what_eager_ones_do(name: str, given: str) -> None:
    net = network(TYPED[name])
    fast = pretended_device.compile(net)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, types = graph_of(nodes, edges, seed)
        if given == "graph":
            made = fast(x, pumice.TypedGraph(index, types, nodes, RELATIONS))
        else:
            made = fast(x, index.int() if given == "int32" else index, types)
        torch.testing.assert_close(made, eager(net, x, index, types), rtol=1e-5, atol=1e-5)
    assert fast._recorder.graphs == 3


def test_a_layer_is_what_double_precision_makes_by_hand() -> None:
    layer = layers.SAGEConv(CHANNELS, 4, aggr="mean").eval()
    fast = pretended_device.compile(layer)
    left, right, bias = (tensor.detach().double() for tensor in (layer.lin_l.weight, layer.lin_r.weight, layer.lin_l.bias))
    for seed, (nodes, edges) in enumerate(((60, 200), (50, 190), (40, 180), (70, 210), (31, 0), (33, 33), (1, 3))):
        x, index, _ = graph_of(nodes, edges, seed)
        expected = torch.zeros(nodes, 4, dtype=torch.float64)
        for node in range(nodes):
            sources = index[0][index[1] == node]
            mean = x.double()[sources].mean(0) if len(sources) else torch.zeros(CHANNELS, dtype=torch.float64)
            expected[node] = left @ mean + bias + right @ x.double()[node]
        torch.testing.assert_close(fast(x, index).double(), expected, rtol=1e-5, atol=1e-5)


def test_weights_and_features_of_edges_go_with_them() -> None:
    gcn = network(layers.GCNConv)
    gat = network(lambda i, o: layers.GATConv(i, o, edge_dim=5))
    fast_gcn, fast_gat = pretended_device.compile(gcn), pretended_device.compile(gat)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, _ = graph_of(nodes, edges, seed)
        weight, attributes = torch.rand(edges), torch.randn(edges, 5)
        torch.testing.assert_close(fast_gcn(x, index, edge_weight=weight), eager(gcn, x, index, weight), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(fast_gat(x, index, attributes), eager(gat, x, index, attributes), rtol=1e-5, atol=1e-5)
    assert fast_gcn._recorder.graphs == 3


class Typed(torch.nn.Module):
    """Nodes of two types, one of which the other leads to in two ways."""

    KINDS = (("user", "likes", "item"), ("item", "of", "user"), ("user", "sees", "item"))

    def __init__(self) -> None:
        super().__init__()
        self.layer = layers.HGTConv(CHANNELS, CHANNELS, (["user", "item"], list(self.KINDS)), heads=2)

    def forward(self, x: Any, edges: Any) -> Any:
        return self.layer(self.layer(x, edges), edges)


def test_nodes_and_edges_of_types_are_given_by_name() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(3)
    net = Typed().eval().to(device)
    fast = (pretended_device.compile if device == "cpu" else pumice.compile)(net)
    sizes = [(300, 200, 500), (290, 190, 480), (280, 170, 490), (31, 33, 40), (33, 31, 50), (200, 200, 500), (300, 190, 400)]
    for seed, (users, items, edges) in enumerate(sizes):
        generator = torch.Generator().manual_seed(seed)
        counts = {"user": users, "item": items}
        x = {name: torch.randn(count, CHANNELS, generator=generator).to(device) for name, count in counts.items()}
        index = {
            kind: torch.stack([torch.randint(0, counts[kind[end]], (edges + at,), generator=generator) for end in (0, 2)]).to(device)
            for at, kind in enumerate(Typed.KINDS)
        }
        made, expected = fast(x, index), eager(net, x, index)
        assert list(made) == list(expected)
        for name in made:
            torch.testing.assert_close(made[name], expected[name], rtol=1e-4, atol=1e-5)
    with pytest.raises(pumice.UserError, match="of nodes without features"):
        fast({"user": x["user"]}, index)


class Sampled(torch.nn.Module):
    """Layers over blocks, whose targets are the first of their sources."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([layers.SAGEConv(CHANNELS, 16), layers.SAGEConv(16, 4)])

    def forward(self, x: torch.Tensor, blocks: list[pumice.Graph]) -> torch.Tensor:
        for layer, block in zip(self.layers, blocks):
            x = layer((x, x[: block.rows]), block)
        return x


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
def test_sampled_blocks_of_changing_sizes(device: str) -> None:
    edges = data.grid_edges([60, 60])
    features = torch.randn(3600, CHANNELS, device=device)
    net = Sampled().eval().to(device)
    fast = (pretended_device.compile if device == "cpu" else pumice.compile)(net, buckets=2)
    sizes = set()
    for seeds in (300, 290, 310, 305, 31, 33, 1):
        for batch in data.NeighbourLoader(edges, [4, 3], batch_size=seeds, input_nodes=torch.arange(0, 3 * seeds), seed=seeds):
            batch = batch.to(device)
            x = features[batch.n_id]
            made = fast(x, batch.blocks)
            sizes.add((len(x), batch.blocks[0].entries))
            torch.testing.assert_close(made, eager(net, x, batch.blocks), rtol=1e-5, atol=1e-5)
            assert len(made) == batch.batch_size
    assert len(sizes) > 10 and len(fast._buckets) < 8


class OfTwo(torch.nn.Module):
    """A layer for each of two lists of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([layers.SAGEConv(CHANNELS, CHANNELS), layers.SAGEConv(CHANNELS, 4)])

    def forward(self, x: torch.Tensor, edges: Any) -> torch.Tensor:
        for layer, index in zip(self.layers, edges):
            x = layer(x, index)
        return x


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
@pytest.mark.parametrize("kind", [list, tuple])
def test_several_lists_of_edges(device: str, kind: type) -> None:
    net = OfTwo().eval().to(device)
    fast = (pretended_device.compile if device == "cpu" else pumice.compile)(net)
    for turn, sizes in enumerate([(90, 60)] * 4 + [(77, 77), (31, 90), (0, 5), (80, 70)]):
        generator = torch.Generator().manual_seed(turn)
        x = torch.randn(50 - turn, CHANNELS, generator=generator).to(device)
        edges = kind(torch.randint(0, len(x), (2, size), generator=generator).to(device) for size in sizes)
        torch.testing.assert_close(fast(x, edges), eager(net, x, edges), rtol=1e-5, atol=1e-5)
    assert len(fast._buckets) == 1


class Everything(torch.nn.Module):
    """Rows of nodes, of edges, and a tensor that belongs to neither."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = layers.SAGEConv(CHANNELS, 4)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, depth: torch.Tensor, scale: Any, flags: Any = None) -> Any:
        y = self.layer(x, edges) * depth
        return {"nodes": y, "edges": (y[edges[0]] * y[edges[1]]).sum(1), "scale": scale * 2, "flag": flags}


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
def test_what_goes_with_nodes_with_edges_and_with_neither(device: str) -> None:
    net = Everything().eval().to(device)
    fast = (pretended_device.compile if device == "cpu" else pumice.compile)(net)
    for seed, (nodes, edges) in enumerate(((200, 500), (190, 480), (200, 200), (180, 470), (170, 170), (180, 490), (31, 33))):
        x, index, _ = graph_of(nodes, edges, seed, device)
        depth, scale = torch.rand(nodes, 1, device=device), torch.rand(7, device=device)
        made = fast(x, index, depth, scale, flags="a")
        expected = eager(net, x, index, depth, scale, "a")
        assert made["flag"] == "a" and made["edges"].shape == (edges,)
        for name in ("nodes", "edges", "scale"):
            torch.testing.assert_close(made[name], expected[name], rtol=1e-5, atol=1e-5)


def test_where_there_are_as_many_nodes_as_edges_shapes_do_not_tell() -> None:
    net = Everything().eval()
    fast = pretended_device.compile(net)
    for count in (50, 60, 70, 80):  # as they are: nothing is learned, and nothing is wrong
        x, index, _ = graph_of(count, count, count)
        depth, scale = torch.rand(count, 1), torch.rand(7)
        torch.testing.assert_close(fast(x, index, depth, scale)["nodes"], eager(net, x, index, depth, scale)["nodes"])
    assert len(fast._buckets) == 0
    x, index, _ = graph_of(50, 90, 1)
    fast(x, index, torch.rand(50, 1), torch.rand(7))
    for count in (50, 60, 70):
        x, index, _ = graph_of(count, count, count)
        depth = torch.rand(count, 1)
        torch.testing.assert_close(fast(x, index, depth, scale)["nodes"], eager(net, x, index, depth, scale)["nodes"])
    assert len(fast._buckets) == 1 and fast._recorder.graphs == 1


class Scaled(torch.nn.Module):
    """A table that belongs to no node, of floats or of whole numbers, all of which every node is given."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return x * table.sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_table_that_was_seen_whole_is_whole_where_there_are_as_many_nodes(dtype: torch.dtype) -> None:
    net = Scaled().eval()
    fast = pretended_device.compile(net)
    table = torch.arange(1, 34, dtype=dtype)
    for nodes in (40, 33, 33, 33, 33, 41, 33, 31):
        x, index, _ = graph_of(nodes, 90, nodes)
        torch.testing.assert_close(fast(x, index, table), eager(net, x, index, table))
    assert len(fast._buckets) == 1 and fast._recorder.graphs == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_table_with_as_many_rows_as_nodes_is_refused_until_another_call_tells(dtype: torch.dtype) -> None:
    net = Scaled().eval()
    fast = pretended_device.compile(net)
    table = torch.arange(1, 34, dtype=dtype)
    x, index, _ = graph_of(33, 90, 1)
    for _ in range(2):
        torch.testing.assert_close(fast(x, index, table), eager(net, x, index, table))
    with pytest.raises(pumice.UserError, match="tensor 2 has 33 rows, as nodes do.*call once with another number of nodes"):
        fast(x, index, table)
    for nodes in (30, 33, 33, 33, 33):
        x, index, _ = graph_of(nodes, 90, nodes)
        torch.testing.assert_close(fast(x, index, table), eager(net, x, index, table))
    assert fast._recorder.graphs == 1


def test_places_in_calls_of_other_structure_are_others() -> None:
    """With as many users as items they share a place, and edges come one place earlier."""

    class Weighted(torch.nn.Module):
        def forward(self, x: Any, edges: Any, weight: torch.Tensor) -> torch.Tensor:
            kind = ("user", "likes", "item")
            return pumice.ops.spmm(pumice.Graph(edges[kind], (len(x["user"]), len(x["item"]))), x["user"], weight)

    net = Weighted().eval()
    fast = pretended_device.compile(net)
    for turn, (users, items, edges) in enumerate([(50, 50, 90)] * 3 + [(50, 90, 90), (50, 40, 90), (40, 90, 90), (50, 50, 80)] * 3):
        generator = torch.Generator().manual_seed(turn)
        x = {"user": torch.randn(users, CHANNELS, generator=generator), "item": torch.randn(items, CHANNELS, generator=generator)}
        index = {("user", "likes", "item"): torch.stack([torch.randint(0, users, (edges,), generator=generator),
                                                          torch.randint(0, items, (edges,), generator=generator)])}  # fmt: skip
        weight = torch.rand(edges, generator=generator)
        torch.testing.assert_close(fast(x, index, weight), eager(net, x, index, weight), rtol=1e-5, atol=1e-5)


def test_a_call_that_was_a_mistake_teaches_nothing() -> None:
    net = network(layers.GCNConv)
    fast = pretended_device.compile(net)
    x, index, _ = graph_of(50, 90, 1)
    with pytest.raises(pumice.UserError):
        fast(x, index, torch.rand(89))
    for edges in (90, 80, 70, 60):
        x, index, _ = graph_of(50, edges, edges)
        weight = torch.rand(edges)
        torch.testing.assert_close(fast(x, index, weight), eager(net, x, index, weight), rtol=1e-5, atol=1e-5)
    assert len(fast._buckets) >= 1 and fast._recorder.graphs == 1


class Mixing(torch.nn.Module):
    def __init__(self, mix: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.mix = mix

    def forward(self, x: torch.Tensor, edges: torch.Tensor, weight: Any = None) -> Any:
        return self.mix(x, edges if weight is None else weight)


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, edges: x - x.mean(0),
        lambda x, edges: x.softmax(0),
        lambda x, edges: x.sum(0),
        lambda x, edges: x / len(x),
        lambda x, edges: x + edges.shape[1],
        lambda x, edges: x + edges.float().mean(),
    ],
)
def test_models_that_mix_rows_are_refused(mix: Callable[[Any, Any], Any]) -> None:
    net = torch.nn.Sequential()
    net.add_module("body", layers.GINConv(torch.nn.Identity()))
    net = Both(net.body, Mixing(mix)).eval()
    fast = pretended_device.compile(net)
    x, index, _ = graph_of(200, 700, 1)
    for _ in range(2):
        fast(x, index)
    for _ in range(2):
        with pytest.raises(pumice.UserError, match=r"(module 'last' \(Mixing\)|the model \(Both\)) cannot be recorded.*rows"):
            fast(x, index)
    assert fast._recorder.graphs == 0


class Both(torch.nn.Module):
    def __init__(self, body: torch.nn.Module, last: torch.nn.Module) -> None:
        super().__init__()
        self.body, self.last = body, last

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> Any:
        return self.last(self.body(x, edges), edges)


def test_edges_that_lead_nowhere_are_reported_with_room_to_spare() -> None:
    net = network(layers.SAGEConv)
    fast = pretended_device.compile(net)
    x, index, _ = graph_of(200, 700, 1)
    for _ in range(4):
        fast(x, index)
    for row, bad in ((0, 200), (1, 210), (0, -1), (1, 5000)):
        wrong = index.clone()
        wrong[row, 500] = bad
        said = rf"^Graph: edge_index\[{row}\]\[500\] = {bad} where there are 200: "
        with pytest.raises(pumice.UserError, match=said):
            fast(x, wrong)
        with pytest.raises(pumice.UserError, match=said):  # as the model does by itself
            net(x, wrong)
    same(fast(x, index), eager(net, x, index))


def test_of_several_lists_the_one_that_leads_nowhere_is_named() -> None:
    fast = pretended_device.compile(OfTwo().eval())
    x, edges = torch.randn(50, CHANNELS), [torch.randint(0, 50, (2, size)) for size in (90, 60)]
    for _ in range(4):
        fast(x, edges)
    edges[1][1, 7] = 64
    with pytest.raises(pumice.UserError, match=r"^edges 1: edge_index\[1\]\[7\] = 64 where there are 50: "):
        fast(x, edges)
    torch.manual_seed(3)
    fast = pretended_device.compile(Typed().eval())
    counts = {"user": 40, "item": 30}
    features = {name: torch.randn(count, CHANNELS) for name, count in counts.items()}
    index = {kind: torch.randint(0, 30, (2, 60)) for kind in Typed.KINDS}
    for _ in range(4):
        fast(features, index)
    index[Typed.KINDS[0]][1, 5] = 31
    with pytest.raises(pumice.UserError, match=r"^edges \('user', 'likes', 'item'\): edge_index\[1\]\[5\] = 31 where there are 30: "):
        fast(features, index)


def test_graphs_are_made_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = pumice.Graph.__init__
    monkeypatch.setattr(pumice.Graph, "__init__", lambda self, *a: made.append(a) or original(self, *a))
    fast = pretended_device.compile(network(layers.GCNConv))
    x, index, _ = graph_of(200, 700, 1)
    for _ in range(4):
        fast(x, index)
    made.clear()
    fast(x, index)
    assert len(made) == 2, "of the edges, and with loops, for both layers"
    runs = GraphsOfRun()
    with runs.run([index]):
        graph = pumice.Graph(index, 200)
        first = graph.derived("a", lambda _: object())
        assert graph.derived("a", lambda _: object()) is first and runs.owns(index) and not runs.owns(index.clone())
    assert not runs.owns(index)


def test_memory_is_said_and_results_are_of_their_own() -> None:
    net = network(layers.SAGEConv)
    fast = pretended_device.compile(net)
    x, index, _ = graph_of(900, 3000, 1)
    rooms = 1024 + 64, 4096
    assert fast.plan(x, index) == fast.bytes == 100 + 4 * CHANNELS * rooms[0] + (2 + 1) * 8 * rooms[1] + 16
    calls = [graph_of(900 + seed, 3000 - seed, seed) for seed in range(4)]
    made = [fast(one[0], one[1]) for one in calls]
    for one, result in zip(calls, made):
        same(result, eager(net, one[0], one[1]))


def test_models_stay_what_they_are_on_the_cpu() -> None:
    net = network(layers.GATConv)
    fast = pumice.compile(net)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, _ = graph_of(nodes, edges, seed)
        assert torch.equal(fast(x, index), eager(net, x, index)) and not fast(x, index).requires_grad


SAGE = layers.SAGEConv(CHANNELS, 4).eval()
BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: pumice.compile(SAGE)(graph_of(9, 20, 1)[0].requires_grad_(), graph_of(9, 20, 1)[1]), "want a gradient"),
    (lambda: pumice.compile(SAGE)(graph_of(9, 20, 1)[0][0], graph_of(9, 20, 1)[1]), r"features have shape \(8,\) and must be 2-D, \[nodes, channels\]: features\[:, None\]"),
    (lambda: pumice.compile(SAGE)(*graph_of(9, 20, 1)[:2], [{1, 2}]), "given a set"),
    (lambda: pumice.compile(SAGE, input=lambda x: x)(*graph_of(9, 20, 1)[:2]), "got edges"),
    (lambda: pumice.compile(SAGE)(torch.zeros(1, 4).int(), torch.ones(1, 4), edge_weight=3), "edge_weight is no argument"),
    (lambda: pumice.compile(SAGE)(*graph_of(9, 20, 1)[:2], pumice.SparseTensor(torch.zeros(1, 4).int(), torch.ones(1, 4))), "its features"),
    (lambda: pretended_device.compile(SAGE, max_voxels=8)(*graph_of(9, 20, 1)[:2]), "9 nodes, max_voxels = 8"),
]  # fmt: skip


@pytest.mark.parametrize("call, part", BAD)
def test_mistakes_are_named(call: Callable[[], Any], part: str) -> None:
    with pytest.raises(pumice.UserError, match=part):
        call()


# On a GPU.


@cuda
@pytest.mark.parametrize("name", [*PLAIN, *TYPED])
def test_recorded_layers_give_what_eager_ones_do(name: str) -> None:
    net = network({**PLAIN, **TYPED}[name]).cuda()
    fast = pumice.compile(net)
    for seed, (nodes, edges) in enumerate((*SIZES, *((900 - 10 * seed, 3000 - 20 * seed) for seed in range(20)))):
        x, index, types = graph_of(nodes, edges, seed, "cuda")
        given = (x, index, types) if name in TYPED else (x, index)
        made, expected = fast(*given), eager(net, *given)
        assert made.shape == expected.shape
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-4)
    fast.wait()
    assert fast._recorder._graphs == 3


@cuda
@pytest.mark.parametrize("name", ["SAGE", "SAGE max", "GIN", "GAT"])
def test_graphs_have_the_bits_of_what_they_record(name: str) -> None:
    """Of layers without products, whose kernels follow the number of rows."""
    graph_only = {
        "SAGE": lambda: Edgewise("mean"), "SAGE max": lambda: Edgewise("max"), "GIN": lambda: Edgewise("sum"),
        "GAT": lambda: Edgewise("softmax"),
    }[name]()  # fmt: skip
    fast = pumice.compile(graph_only.eval().cuda())
    by_plan = pumice.compile(graph_only, eager=True)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, _ = graph_of(nodes, edges, seed, "cuda")
        made = fast(x, index)
        assert torch.equal(made, by_plan(x, index))
        torch.testing.assert_close(made, eager(graph_only, x, index), rtol=1e-5, atol=1e-5)


class Edgewise(torch.nn.Module):
    def __init__(self, reduce: str) -> None:
        super().__init__()
        self.reduce = reduce

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        graph = pumice.Graph(edges, len(x))
        if self.reduce != "softmax":
            return pumice.ops.spmm(graph, x, reduce=self.reduce)
        shares = pumice.ops.edge_softmax(graph, pumice.ops.sddmm(graph, x, x) / math.sqrt(CHANNELS))
        return pumice.ops.spmm(graph, x, shares)


@cuda
def test_steady_calls_with_edges_wait_for_nothing() -> None:
    fast = pumice.compile(network(layers.GATConv).cuda())
    calls = [graph_of(900 - seed, 3000 - seed, seed, "cuda") for seed in range(8)]
    for x, index, _ in calls[:4]:
        fast(x, index)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    refused = pumice._C.RefusedWaits()
    try:
        for x, index, _ in calls[4:]:
            fast(x, index)
    finally:
        torch.cuda.set_sync_debug_mode("default")
        del refused
    fast.wait()


@cuda
def test_edges_that_lead_nowhere_are_raised_by_the_next_wait() -> None:
    net = network(layers.SAGEConv).cuda()
    fast = pumice.compile(net)
    x, index, _ = graph_of(200, 700, 1, "cuda")
    for _ in range(4):
        fast(x, index)
    wrong = index.clone()
    wrong[1, 500] = 210  # there is room for it
    fast(x, wrong)
    with pytest.raises(pumice.UserError, match=r"^Graph: edge_index\[1\]\[500\] = 210 where there are 200: "):
        fast.wait()
    torch.testing.assert_close(fast(x, index), eager(net, x, index), rtol=1e-4, atol=1e-4)
