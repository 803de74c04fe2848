"""Calls recorded by torch.cuda.graph as its documentation shows it: everything is made and warmed up beforehand on other streams,
and the recording has a stream of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from conftest import NO_GPU, random_sites
from torch import Tensor

import pumice
from pumice import nn, ops
from pumice.nn import graph as layers

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)

NODES, EDGES, CHANNELS = 2_000, 20_000, 32


def recorded(call: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
    """What a recording of `call` writes, and its replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = call()
    return output, graph.replay


def edges() -> Tensor:
    return torch.randint(0, NODES, (2, EDGES), device="cuda")


@pytest.mark.parametrize("name", ["sum", "mean", "max", "sddmm", "softmax"])
def test_products_of_a_graph_that_was_made_before(name: str) -> None:
    graph = pumice.Graph(edges(), NODES)
    x, values = torch.randn(NODES, CHANNELS, device="cuda"), torch.rand(EDGES, device="cuda")
    call = {
        "sddmm": lambda: ops.sddmm(graph, x, x),
        "softmax": lambda: ops.edge_softmax(graph, values),
    }.get(name, lambda: ops.spmm(graph, x, values, name))
    output, replay = recorded(call)
    for _ in range(2):
        x.normal_()
        replay()
        torch.testing.assert_close(output, call(), rtol=0, atol=0)


@pytest.mark.parametrize("given", ["graph", "edge_index"])
@pytest.mark.parametrize("name", ["GCNConv", "SAGEConv", "GINConv", "GATConv", "GATv2Conv", "RGCNConv"])
def test_layers(name: str, given: str) -> None:
    edge_index, edge_type = edges(), torch.randint(0, 5, (EDGES,), device="cuda")
    layer = {
        "GINConv": lambda: layers.GINConv(torch.nn.Linear(CHANNELS, CHANNELS)),
        "RGCNConv": lambda: layers.RGCNConv(CHANNELS, CHANNELS, 5),
    }.get(name, lambda: getattr(layers, name)(CHANNELS, CHANNELS))().cuda()
    x = torch.randn(NODES, CHANNELS, device="cuda")
    if name == "RGCNConv":
        graph = pumice.TypedGraph(edge_index, edge_type, NODES, 5)
        call = lambda: layer(x, graph) if given == "graph" else layer(x, edge_index, edge_type)  # noqa: E731
    else:
        graph = pumice.Graph(edge_index, NODES) if given == "graph" else edge_index
        call = lambda: layer(x, graph)  # noqa: E731
    with torch.no_grad():
        output, replay = recorded(call)
        for _ in range(2):
            x.normal_()
            replay()
            torch.testing.assert_close(output, call(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("warm", [True, False], ids=["transpose kept", "transpose recorded"])
def test_gradients(warm: bool) -> None:
    graph = pumice.Graph(edges(), NODES)
    x = torch.randn(NODES, CHANNELS, device="cuda", requires_grad=True)

    def gradient() -> Tensor:
        return torch.autograd.grad(ops.spmm(graph, x).square().sum(), x)[0]

    if not warm:  # kernels are compiled, and nothing is kept with this graph
        other = pumice.Graph(edges(), NODES)
        torch.autograd.grad(ops.spmm(other, x).square().sum(), x)
        torch.cuda.synchronize()
        recording = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recording):
            output = gradient()
        replay = recording.replay
    else:
        output, replay = recorded(gradient)
    with torch.no_grad():
        x.normal_()
    replay()
    torch.testing.assert_close(output, gradient())


def test_a_convolution_over_sites_that_were_made_before() -> None:
    cells = random_sites(3, 40, 9_000).cuda()
    x = pumice.SparseTensor(cells, torch.randn(len(cells), 8, device="cuda"), batch_size=2)
    layer = nn.SubMConv3d(8, 8, 3).cuda()
    with torch.no_grad():
        output, replay = recorded(lambda: layer(x).features)
        x.features.normal_()
        replay()
        torch.testing.assert_close(output, layer(x).features)
