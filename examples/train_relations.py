"""Trains a relational graph network to find the classes of entities, on one of the datasets of R-GCN.

    python examples/train_relations.py FOLDER
    python examples/train_relations.py FOLDER --seeds 10 --weights network.safetensors

FOLDER has edges (N-Triples), trainingSet.tsv and testSet.tsv, as AIFB does. Each seed trains a network of its own, whose
last epoch counts. Prints each accuracy on the test entities and their mean; where PyG is installed, also those of the same
network of its layers. `pumice rgcn network.safetensors FOLDER scores.safetensors` runs the last network without Python.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings

import torch
from torch.nn.functional import cross_entropy

import pumice
from pumice.nn.graph import RGCN

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its imports
        from torch_geometric.nn import FastRGCNConv  # RGCNConv in another order; PyG's example takes it for AIFB too
except ImportError:
    FastRGCNConv = None


class OfPyG(torch.nn.Module):
    """The same network of PyG's layers."""

    def __init__(self, nodes: int, widths: tuple[int, ...], relations: int, bases: int) -> None:
        super().__init__()
        self.convs = torch.nn.ModuleList(
            FastRGCNConv(before, width, relations, num_bases=bases) for before, width in zip((nodes, *widths), widths)
        )

    def forward(self, x: None, edge_index: torch.Tensor, edge_type: torch.Tensor) -> torch.Tensor:
        for place, layer in enumerate(self.convs):
            x = layer(x if place == 0 else x.relu(), edge_index, edge_type)
        return x


def train(net: torch.nn.Module, edges: tuple, data: pumice.data.EntityClasses, options: argparse.Namespace, name: str) -> float:
    """The accuracy on the test entities after the last epoch."""
    optimizer = torch.optim.Adam(net.parameters(), lr=options.rate, weight_decay=options.decay)
    for epoch in range(options.epochs):
        optimizer.zero_grad()
        loss = cross_entropy(net(None, *edges)[data.train], data.train_classes)
        loss.backward()
        optimizer.step()
        if sys.stdout.isatty():
            full = 24 * (epoch + 1) // options.epochs
            print(f"\r[{'#' * full}{'.' * (24 - full)}] {name}, loss {loss.item():.3f}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r", end="")
    with torch.no_grad():
        return float((net(None, *edges)[data.test].argmax(1) == data.test_classes).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--hidden", type=int, default=16, help="channels between the two layers")
    parser.add_argument("--bases", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--decay", type=float, default=5e-4)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--layers", choices=["both", "pumice", "pyg"], default="both", help="both, where PyG is installed")
    parser.add_argument("--weights", help="a safetensors file that takes the last network")
    options = parser.parse_args()
    data = pumice.data.entities(options.folder)
    edges = data.edges
    print(
        f"{edges.nodes} nodes, {edges.edge_type.shape[0]} edges of {edges.relations} relations, both ways; "
        f"{len(data.train)} entities of {len(data.names)} classes to learn from, {len(data.test)} to measure on"
    )
    lists = {name: getattr(data, name).to(options.device) for name in ("train", "train_classes", "test", "test_classes")}
    data = pumice.data.EntityClasses(edges, **lists, names=data.names)
    widths = (options.hidden, len(data.names))
    kinds = ["pumice", "pyg"] if options.layers == "both" else [options.layers]
    if FastRGCNConv is None and "pyg" in kinds:
        kinds.remove("pyg")
        print("PyG is not installed, whose accuracies would stand beside: pip install torch_geometric")
    ours = (edges.graph(options.device),)
    theirs = (edges.edge_index.to(options.device), edges.edge_type.to(options.device))
    accuracies: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        for kind in kinds:
            start = time.monotonic()
            torch.manual_seed(seed)  # both draw the same weights, where they draw in the same order
            if kind == "pumice":
                net: torch.nn.Module = RGCN(edges.nodes, widths, edges.relations, options.bases)
            else:
                net = OfPyG(edges.nodes, widths, edges.relations, options.bases)
            net = net.to(options.device)
            accuracy = train(net, ours if kind == "pumice" else theirs, data, options, f"{kind}, seed {seed}")
            accuracies.setdefault(kind, []).append(accuracy)
            print(f"{kind}, seed {seed}: {accuracy:.3f} in {time.monotonic() - start:.1f} s{'':24}", flush=True)
            if kind == "pumice" and options.weights:
                pumice.save_weights(net, options.weights)
    for kind, of_seeds in accuracies.items():
        print(f"{kind}: mean test accuracy {statistics.mean(of_seeds):.4f} of {len(of_seeds)} seeds")


if __name__ == "__main__":
    try:
        main()
    except pumice.UserError as error:
        sys.exit(f"train_relations.py: {error}")
