"""Trains a graph network to find the classes of nodes, on one of Planetoid's citation graphs.

    python examples/train_nodes.py FOLDER --network gcn
    python examples/train_nodes.py FOLDER --network gat --seeds 10 --curves curves.csv

FOLDER has ind.cora.x and its like. Each seed trains a network of its own on the public split; of its epochs the one with
the best validation counts. Prints each accuracy on the test nodes, and their mean.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time

import torch
from torch.nn.functional import cross_entropy, dropout, elu

import pumice
from pumice.nn.graph import GATConv, GCNConv, SAGEConv


class Network(torch.nn.Module):
    """Two layers with dropout before each."""

    def __init__(self, kind: str, channels: int, classes: int) -> None:
        super().__init__()
        self.drop = 0.6 if kind == "gat" else 0.5
        if kind == "gcn":
            self.first, self.second = GCNConv(channels, 16), GCNConv(16, classes)
        elif kind == "sage":
            self.first, self.second = SAGEConv(channels, 64), SAGEConv(64, classes)
        else:
            self.first = GATConv(channels, 8, heads=8, dropout=0.6)
            self.second = GATConv(64, classes, dropout=0.6)

    def forward(self, x: torch.Tensor, graph: pumice.Graph) -> torch.Tensor:
        x = elu(self.first(dropout(x, self.drop, self.training), graph))
        return self.second(dropout(x, self.drop, self.training), graph)


def train(nodes: pumice.data.NodeClasses, graph: pumice.Graph, options: argparse.Namespace, seed: int, curves: list) -> float:
    """The accuracy on the test nodes at the epoch of the best validation."""
    torch.manual_seed(seed)
    net = Network(options.network, nodes.features.shape[1], int(nodes.classes.max()) + 1).to(options.device)
    decay = {"gcn": (5e-4, 0.0), "sage": (5e-3, 5e-3), "gat": (5e-4, 5e-4)}[options.network]
    optimizer = torch.optim.Adam(
        [
            {"params": net.first.parameters(), "weight_decay": decay[0]},
            {"params": net.second.parameters(), "weight_decay": decay[1]},
        ],
        lr=0.005 if options.network == "gat" else 0.01,
    )
    best, chosen = -1.0, 0.0
    for epoch in range(options.epochs):
        net.train()
        optimizer.zero_grad()
        scores = net(nodes.features, graph)
        loss = cross_entropy(scores[nodes.train], nodes.classes[nodes.train])
        loss.backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            right = (net(nodes.features, graph).argmax(1) == nodes.classes).float()
        validation, test = (float(right[part].mean()) for part in (nodes.validation, nodes.test))
        curves.append((seed, epoch, loss.item(), validation, test))
        if validation > best:
            best, chosen = validation, test
        if sys.stdout.isatty():
            full = 24 * (epoch + 1) // options.epochs
            print(f"\r[{'#' * full}{'.' * (24 - full)}] seed {seed}, loss {loss.item():.3f}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r", end="")
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--name", default="cora", help="cora, citeseer or pubmed")
    parser.add_argument("--network", choices=["gcn", "sage", "gat"], default="gcn")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--curves", help="a CSV file: seed, epoch, loss, accuracy of validation and of test")
    options = parser.parse_args()
    nodes = pumice.data.planetoid(options.folder, options.name)
    nodes = pumice.data.NodeClasses(*(getattr(nodes, name).to(options.device) for name in nodes.__dataclass_fields__))
    graph = pumice.Graph(nodes.edge_index, nodes.features.shape[0])
    print(f"{options.name}: {graph.rows} nodes, {graph.entries} edges, {nodes.features.shape[1]} channels")
    curves: list[tuple] = []
    accuracies = []
    for seed in range(options.seeds):
        start = time.monotonic()
        accuracies.append(train(nodes, graph, options, seed, curves))
        print(f"seed {seed}: {accuracies[-1]:.3f} in {time.monotonic() - start:.1f} s{'':24}", flush=True)
    print(f"{options.network}: mean test accuracy {statistics.mean(accuracies):.4f} of {len(accuracies)} seeds")
    if options.curves:
        with open(options.curves, "w", newline="") as file:
            csv.writer(file).writerows([("seed", "epoch", "loss", "validation", "test"), *curves])


if __name__ == "__main__":
    try:
        main()
    except pumice.UserError as error:
        sys.exit(f"train_nodes.py: {error}")
