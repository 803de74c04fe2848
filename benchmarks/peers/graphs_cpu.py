#!/usr/bin/env python3
"""Products of sparse matrices beside PyTorch's CSR product, and R-GCN beside PyG's, on the CPU, call by call in turns.

    python benchmarks/peers/graphs_cpu.py FOLDER [--threads 2] [--seconds 1] [--channels 32 128 512] [--least-entries 50000]

FOLDER is that of PUMICE_DATA, of which matrices/*.mtx, graphs/openke_*, graphs/am and graphs/aifb are taken where they
are there. Medians of calls in milliseconds, fp32, and their ratio, PyTorch or PyG over Pumice.
"""

import argparse
import math
import statistics
import time
import warnings
from pathlib import Path

import torch

import pumice


def edges_of(path):
    """(edge_index [2, E], edge_type [E] or None, nodes, relations) of a Matrix Market file or a folder of typed edges."""
    if path.is_dir():
        edges = pumice.data.typed_edges(path)
        return edges.edge_index, edges.edge_type, edges.nodes, edges.relations
    lines = [line for line in path.read_text().splitlines() if not line.startswith("%")]
    nodes = int(lines[0].split()[0])
    row, column = torch.tensor([[int(word) - 1 for word in line.split()[:2]] for line in lines[1:]]).T
    if "symmetric" in path.read_text().splitlines()[0]:
        off = row != column
        row, column = torch.cat([row, column[off]]), torch.cat([column, row[off]])
    return torch.stack([column, row]), None, nodes, 0


def in_turns(seconds, *calls):
    """Medians of the time of each, in ms, of calls one after the other for so many seconds and at least five times."""
    times = [[] for _ in calls]
    for call in calls:
        call()
    begin = time.perf_counter()
    while len(times[0]) < 5 or time.perf_counter() - begin < seconds:
        for call, of_call in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            of_call.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(of_call) for of_call in times]


def products(name, edge_index, nodes, options):
    ratios = []
    values = torch.rand(edge_index.shape[1])
    matrix = torch.sparse_coo_tensor(edge_index.flip(0), values, (nodes, nodes)).coalesce().to_sparse_csr()
    graph, values = pumice.Graph.of(matrix)
    if values.numel() < options.least_entries:
        return ratios
    for channels in options.channels:
        x = torch.randn(nodes, channels)
        torch.testing.assert_close(pumice.ops.spmm(graph, x, values), matrix @ x, rtol=1e-3, atol=1e-3)
        theirs, ours = in_turns(options.seconds, lambda x=x: matrix @ x, lambda x=x: pumice.ops.spmm(graph, x, values))
        ratios.append(theirs / ours)
        print(f"{name:24} {nodes:9} rows {values.numel():9} entries F {channels:3}  PyTorch {theirs:9.3f}  Pumice {ours:9.3f}  "
              f"{theirs / ours:5.2f}x", flush=True)
    return ratios


def relational(name, edge_index, edge_type, nodes, relations, options):
    from torch_geometric.nn import FastRGCNConv, RGCNConv

    x = torch.randn(nodes, 32)
    layers = {layer: torch.nn.ModuleList([layer(32, 32, relations), layer(32, 32, relations)])
              for layer in (RGCNConv, FastRGCNConv, pumice.nn.graph.RGCNConv)}
    weights = layers[RGCNConv].state_dict()

    def run(layer):
        first, second = layers[layer]
        with torch.no_grad():
            return second(first(x, edge_index, edge_type).relu(), edge_index, edge_type)

    for of_layer in layers.values():
        of_layer.load_state_dict(weights)
    torch.testing.assert_close(run(pumice.nn.graph.RGCNConv), run(RGCNConv), rtol=1e-3, atol=1e-3)
    *theirs, ours = in_turns(options.seconds, *[lambda layer=layer: run(layer) for layer in layers])
    print(f"R-GCN, {name}, two layers of 32: RGCNConv {theirs[0]:.2f}, FastRGCNConv {theirs[1]:.2f}, Pumice {ours:.2f}: "
          f"{min(theirs) / ours:.2f}x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1, help="of each pair of calls")
    parser.add_argument("--channels", type=int, nargs="*", default=[32, 128, 512])
    parser.add_argument("--least-entries", type=int, default=50_000, help="smaller matrices are left out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")   # PyTorch's, that sparse CSR is in beta
    torch.set_num_threads(options.threads)
    capability = torch.backends.cpu.get_cpu_capability()
    print(f"CPU ({capability}), {options.threads} threads, torch {torch.__version__}, fp32, milliseconds")
    paths = [*sorted(options.folder.glob("matrices/*.mtx")), *sorted(options.folder.glob("graphs/openke_*")),
             options.folder / "graphs/am", options.folder / "graphs/aifb"]
    ratios = []
    for path in paths:
        if not path.exists():
            continue
        edge_index, edge_type, nodes, relations = edges_of(path)
        ratios += products(path.stem, edge_index, nodes, options)
        if edge_type is not None and path.stem in ("aifb", "openke_FB15K237"):
            relational(path.stem, edge_index, edge_type, nodes, relations, options)
    if ratios:
        print(f"geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.2f}, lowest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
