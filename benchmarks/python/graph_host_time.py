"""Host time of graph layers on a graph of a few nodes, so that Python, the binding and launches are all there is.

    python benchmarks/python/graph_host_time.py [--device cuda] [--channels 8] [--rounds 20] [--calls 200]

Least of the rounds, in us: a call without gradients, a forward pass for training, forward and backward. On the CPU it is
the time of the process, which other processes do not lengthen. PyG's layers are measured too where it is installed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator

import torch

import pumice
from pumice.nn import graph as layers

NODES, ENTRIES, RELATIONS = 8, 12, 3


def microseconds(run: Callable[[], object], device: torch.device, rounds: int, calls: int) -> float:
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    best = float("inf")
    for _ in range(rounds + 1):  # the first one warms up
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = clock()
        for _ in range(calls):
            run()
        best = min(best, (clock() - start) / calls)
    return best * 1e6


def cases(channels: int, device: torch.device) -> Iterator[tuple[str, torch.nn.Module, tuple]]:
    """(name, layer, what it takes beside features)"""
    edges = torch.randint(NODES, (2, ENTRIES), device=device)
    types = torch.randint(RELATIONS, (ENTRIES,), device=device)
    graph, typed = pumice.Graph(edges, NODES), pumice.TypedGraph(edges, types, NODES, RELATIONS)
    size = (channels, channels)
    yield "torch.nn.Linear", torch.nn.Linear(*size), ()
    yield "RGCNConv", layers.RGCNConv(*size, RELATIONS), (typed,)
    yield "RGCNConv of edge_index", layers.RGCNConv(*size, RELATIONS), (edges, types)
    yield "RGCNConv, bases", layers.RGCNConv(*size, RELATIONS, num_bases=2), (typed,)
    yield "RGCNConv, blocks", layers.RGCNConv(*size, RELATIONS, num_blocks=2), (typed,)
    yield "GCNConv", layers.GCNConv(*size), (graph,)
    yield "SAGEConv", layers.SAGEConv(*size), (graph,)
    yield "GATv2Conv, 2 heads", layers.GATv2Conv(channels, channels // 2, heads=2), (graph,)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its imports
            import torch_geometric.nn as pyg
    except ImportError:
        return
    yield "PyG's RGCNConv", pyg.RGCNConv(*size, RELATIONS), (edges, types)
    yield "PyG's FastRGCNConv", pyg.FastRGCNConv(*size, RELATIONS), (edges, types)
    yield "PyG's GCNConv, cached", pyg.GCNConv(*size, cached=True), (edges,)
    yield "PyG's SAGEConv", pyg.SAGEConv(*size), (edges,)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.set_num_threads(1)
    x = torch.randn(NODES, options.channels, device=device, requires_grad=True)
    print(f"{'us':26s} {'inference':>10s} {'forward':>10s} {'and backward':>13s}")
    for name, layer, more in cases(options.channels, device):
        layer.to(device)
        gradient = torch.ones_like(layer(x, *more))

        def infer(layer=layer, more=more) -> None:
            with torch.no_grad():
                layer(x, *more)

        def train(layer=layer, more=more, gradient=gradient) -> None:
            layer(x, *more).backward(gradient)

        runs = (infer, lambda layer=layer, more=more: layer(x, *more), train)
        shown = [microseconds(run, device, options.rounds, options.calls) for run in runs]
        print(f"{name:26s} {shown[0]:10.1f} {shown[1]:10.1f} {shown[2]:13.1f}", flush=True)


if __name__ == "__main__":
    main()
