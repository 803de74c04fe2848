"""Trains a relational graph network to find missing edges of a knowledge graph, and ranks the right answers of held-out ones.

    python examples/train_link_prediction.py FOLDER
    python examples/train_link_prediction.py FOLDER --layers pumice pyg-fast --channels 32 --blocks 4 --curves curves.csv

FOLDER has train2id.txt, valid2id.txt and test2id.txt as OpenKE writes them (FB15k-237, WN18RR). R-GCN makes features of the
nodes, DistMult scores edges with them. Of the training edges, a step scores some that pass no messages, each beside edges
that lead to or come from random nodes instead. The weights of the best validation count. Prints the filtered mean
reciprocal rank (MRR) and hits on the test edges; where PyG is installed, also those of the same network of its RGCNConv, or
of its FastRGCNConv, which gives the same and makes a matrix for each edge.
"""

from __future__ import annotations

import argparse
import copy
import csv
import dataclasses
import statistics
import sys
import time
import warnings

import torch
from torch.nn.functional import cross_entropy, dropout

import pumice
from pumice.nn.graph import RGCNConv

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its imports
        from torch_geometric import nn as pyg
except ImportError:
    pyg = None

SCORES = 2**25  # that are in memory at once where answers are ranked
HITS = (1, 3, 10)
LAYERS = {"pumice": RGCNConv, "pyg": pyg and pyg.RGCNConv, "pyg-fast": pyg and pyg.FastRGCNConv}


@dataclasses.dataclass
class Edges:
    """Knowledge of three parts, each int64 [edges, 3]: source, relation, target."""

    nodes: int
    relations: int
    train: torch.Tensor
    valid: torch.Tensor
    test: torch.Tensor

    def both_ways(self, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(edge_index, edge_type), those of relation r backwards as relation r + relations."""
        source, kind, target = edges.T
        index = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
        return index, torch.cat([kind, kind + self.relations])


def read(folder: str, device: str) -> Edges:
    read = [pumice.data.typed_edges(folder, part=part) for part in ("train", "valid", "test")]
    parts = [torch.stack([part.edge_index[0], part.edge_type, part.edge_index[1]], 1).to(device) for part in read]
    return Edges(read[0].nodes, read[0].relations, *parts)


class Network(torch.nn.Module):
    """Two layers over features that are learnt, and a vector for each relation. `layer` is RGCNConv of either library."""

    def __init__(self, layer: type, edges: Edges, options: argparse.Namespace) -> None:
        super().__init__()
        channels, more = options.channels, {"num_bases": options.bases or None, "num_blocks": options.blocks or None}
        self.drop = options.dropout
        self.nodes = torch.nn.Parameter(torch.empty(edges.nodes, channels))
        self.relations = torch.nn.Parameter(torch.empty(edges.relations, channels))
        torch.nn.init.xavier_uniform_(self.nodes)
        torch.nn.init.xavier_uniform_(self.relations)
        self.first, self.second = (layer(channels, channels, 2 * edges.relations, **more) for _ in range(2))

    def forward(self, *edges: object) -> torch.Tensor:
        """Features [nodes, channels] of a TypedGraph, or of edge_index and edge_type."""
        x = self.first(self.nodes, *edges).relu()
        return self.second(dropout(x, self.drop, self.training), *edges)

    def asked(self, x: torch.Tensor, source: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
        """What answers are multiplied with, to find the other end of edges."""
        return x[source] * self.relations[kind]


def messages(layer: type, edges: Edges, part: torch.Tensor) -> tuple:
    """What the network takes."""
    index, kind = edges.both_ways(part)
    return (pumice.TypedGraph(index, kind, edges.nodes, 2 * edges.relations),) if layer is RGCNConv else (index, kind)


def loss_of(network: Network, x: torch.Tensor, scored: torch.Tensor, negatives: int) -> torch.Tensor:
    """How little the right end of an edge stands out among random nodes, of both ends."""
    source, kind, target = scored.T
    others = x[torch.randint(x.shape[0], (negatives,), device=x.device)]
    total = x.new_zeros(())
    for known, right in ((source, target), (target, source)):
        asked = network.asked(x, known, kind)
        scores = torch.cat([(asked * x[right]).sum(1, keepdim=True), asked @ others.t()], 1)
        total = total + cross_entropy(scores, torch.zeros_like(kind))
    return total / 2


class Known:
    """All edges of all parts by what is asked, so that right answers other than the wanted one are left out."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        parts = torch.cat([edges.train, edges.valid, edges.test])
        index, kind = edges.both_ways(parts)
        self.asked, order = (index[0] * 2 * edges.relations + kind).sort()
        self.answers = index[1][order]

    def of(self, source: torch.Tensor, kind: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(row of a question, right answer to it), of all of them."""
        asked = source * 2 * self.edges.relations + kind
        begin, end = (torch.searchsorted(self.asked, asked, right=right) for right in (False, True))
        count = end - begin
        row = torch.repeat_interleave(torch.arange(len(asked), device=asked.device), count)
        first = count.cumsum(0) - count
        return row, self.answers[torch.arange(len(row), device=asked.device) - first[row] + begin[row]]


@torch.no_grad()
def ranks(network: Network, x: torch.Tensor, part: torch.Tensor, known: Known) -> torch.Tensor:
    """float64 [2 · edges], of the right ends among all nodes but other right ones; of equal scores the middle."""
    index, kind = known.edges.both_ways(part)
    found = []
    step = max(SCORES // x.shape[0], 1)
    for source, target, of in zip(index[0].split(step), index[1].split(step), kind.split(step), strict=True):
        scores = network.asked(x, source, of % known.edges.relations) @ x.t()
        right = scores.gather(1, target[:, None])
        scores[known.of(source, of)] = -torch.inf
        equal = (scores == right).sum(1)
        found.append(1 + (~(scores <= right)).sum(1) + equal.double() / 2)  # numbers that are none are above all
    return torch.cat(found)


def figures(ranks: torch.Tensor) -> list[float]:
    """MRR, and the shares of ranks up to each of HITS."""
    return [float((1 / ranks).mean()), *(float((ranks <= most).double().mean()) for most in HITS)]


def train(layer: type, edges: Edges, known: Known, options: argparse.Namespace, seed: int, name: str, curves: list) -> list[float]:
    """Figures on the test edges, of the weights of the best validation."""
    torch.manual_seed(seed)  # both libraries draw the same weights, edges and nodes
    network = Network(layer, edges, options).to(options.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=options.rate)
    whole = messages(layer, edges, edges.train)
    scored = min(options.scored, len(edges.train) // 2)  # the others pass messages
    asked = torch.randperm(len(edges.valid))[: options.validated].to(options.device)
    best, weights, start = -1.0, {}, time.monotonic()
    for step in range(1, options.steps + 1):
        network.train()
        order = torch.randperm(len(edges.train), device=options.device)
        passed = edges.train[order[scored:]]
        loss = loss_of(network, network(*messages(layer, edges, passed)), edges.train[order[:scored]], options.negatives)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if step % options.every == 0 or step == options.steps:
            network.eval()
            with torch.no_grad():
                found = figures(ranks(network, network(*whole), edges.valid[asked], known))[0]
            took = time.monotonic() - start
            curves.append((name, step, loss.item(), found, took))
            print(f"{name}, step {step}: loss {loss.item():.3f}, validation MRR {found:.4f}, {took:.1f} s{'':24}", flush=True)
            if found > best or not weights:  # a rate that is too high makes no numbers
                best, weights = found, copy.deepcopy(network.state_dict())
        if sys.stdout.isatty() and step < options.steps:
            full = 24 * step // options.steps
            print(f"[{'#' * full}{'.' * (24 - full)}] {name}, loss {loss.item():.3f}", end="\r", flush=True)
    network.load_state_dict(weights)
    network.eval()
    with torch.no_grad():
        return figures(ranks(network, network(*whole), edges.test[: options.measured], known))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("folder")
    add("--channels", type=int, default=200)
    add("--bases", type=int, default=0, help="makes each relation's matrix a combination of so many")
    add("--blocks", type=int, default=0, help="makes each relation's matrix block-diagonal, of so many blocks")
    add("--dropout", type=float, default=0.2, help="of what goes from the first layer into the second")
    add("--steps", type=int, default=1000)
    add("--scored", type=int, default=30_000, help="training edges that a step scores; the others pass messages")
    add("--negatives", type=int, default=1024, help="random nodes beside each right one")
    add("--rate", type=float, default=0.01)
    add("--every", type=int, default=100, help="steps between validations")
    add("--validated", type=int, default=5000, help="edges of validation, at most")
    add("--measured", type=int, default=10**9, help="test edges to measure on, at most")
    add("--seeds", type=int, default=1)
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--layers", choices=list(LAYERS), nargs="+", default=["pumice", "pyg"])
    add("--curves", help="a CSV file: name, step, loss, MRR of validation, seconds")
    options = parser.parse_args(arguments)
    for name in ("steps", "every", "seeds", "validated"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: give 1 or more")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    edges = read(options.folder, options.device)
    print(
        f"{edges.nodes} nodes, {edges.relations} relations, {len(edges.train)} edges to learn from, {len(edges.valid)} to "
        f"choose by, {len(edges.test)} to measure on", flush=True,
    )  # fmt: skip
    layers = {kind: layer for kind, layer in LAYERS.items() if kind in options.layers and layer}
    if len(layers) < len(set(options.layers)):
        print("PyG is not installed, whose ranks would stand beside: pip install torch_geometric")
    known = Known(edges)
    curves: list[tuple] = []
    found: dict[str, list[list[float]]] = {}
    for seed in range(options.seeds):
        for kind, layer in layers.items():
            start = time.monotonic()
            figures_ = train(layer, edges, known, options, seed, f"{kind}, seed {seed}", curves)
            found.setdefault(kind, []).append(figures_)
            hits = ", ".join(f"{share:.3f} up to {most}" for most, share in zip(HITS, figures_[1:], strict=True))
            print(f"{kind}, seed {seed}: MRR {figures_[0]:.4f}; ranks {hits}; {time.monotonic() - start:.1f} s{'':24}", flush=True)
    for kind, of_seeds in found.items():
        means = [statistics.mean(column) for column in zip(*of_seeds, strict=True)]
        hits = ", ".join(f"Hits@{most} {share:.4f}" for most, share in zip(HITS, means[1:], strict=True))
        print(f"{kind}: test MRR {means[0]:.4f}, {hits}, mean of {len(of_seeds)} seeds")
    if options.curves:
        with open(options.curves, "w", newline="") as file:
            csv.writer(file).writerows([("name", "step", "loss", "validation", "seconds"), *curves])


if __name__ == "__main__":
    try:
        main()
    except pumice.UserError as error:
        sys.exit(f"train_link_prediction.py: {error}")
