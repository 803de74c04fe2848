#!/usr/bin/env python3
"""Two relational graph convolutions of PyG, the faster of its two layers, and those of Pumice with the same weights, in
one process on a GPU.

    python benchmarks/peers/relational_layers.py FOLDER [--channels 32] [--rounds 5] [--passes 10] [--graphs aifb am fb15k237]

FOLDER has aifb/aifb_stripped.nt.gz, am/amfull_triples.int.csv.gz and openke_FB15K237/train2id.txt. Medians over rounds of
inference and of a training step (forward, mean squared error to a target, backward) in fp32, lowest and highest, ratios, and the most
memory that a step took beside the inputs; then how long the graph takes to be made.
"""

import argparse
import gzip
import re
import statistics
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

if not torch.cuda.is_available():
    sys.exit("relational_layers.py needs a CUDA device, and PyTorch finds none")

import pumice
from graph_layers import median_ms, memory_mib

warnings.simplefilter("ignore")   # of PyG's imports
from torch_geometric.nn import FastRGCNConv, RGCNConv  # noqa: E402


def aifb(folder):
    nodes, relations, triples = {}, {}, []
    with gzip.open(folder / "aifb/aifb_stripped.nt.gz", "rt", errors="replace") as lines:
        for line in lines:
            found = re.match(r"(\S+) (\S+) (.+) \.\s*$", line)
            if found:
                subject, relation, target = found.groups()
                number = nodes.setdefault(subject, len(nodes))
                kind = relations.setdefault(relation, len(relations))
                triples.append((number, kind, nodes.setdefault(target, len(nodes))))
    return np.array(triples, np.int64), len(nodes), len(relations)


def am(folder):
    with gzip.open(folder / "am/amfull_triples.int.csv.gz") as file:
        triples = np.loadtxt(file, delimiter=",", dtype=np.int64)
    return triples, int(triples[:, [0, 2]].max()) + 1, int(triples[:, 1].max()) + 1


def fb15k237(folder):
    triples = np.loadtxt(folder / "openke_FB15K237/train2id.txt", skiprows=1, dtype=np.int64)
    return triples[:, [0, 2, 1]], 14541, 237


GRAPHS = {"aifb": aifb, "am": am, "fb15k237": fb15k237}


class Net(torch.nn.Module):
    def __init__(self, make):
        super().__init__()
        self.first, self.second = make(), make()

    def forward(self, x, edge_index, edge_type):
        return self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_type)


def compare(name, options):
    triples, nodes, relations = GRAPHS[name](Path(options.folder))
    edge_index = torch.from_numpy(triples[:, [0, 2]].T.copy()).cuda()
    edge_type = torch.from_numpy(triples[:, 1].copy()).cuda()
    torch.manual_seed(0)
    size = (options.channels, options.channels, relations)
    nets = {
        "RGCNConv": Net(lambda: RGCNConv(*size)).cuda(),
        "FastRGCNConv": Net(lambda: FastRGCNConv(*size)).cuda(),
        "Pumice": Net(lambda: pumice.nn.graph.RGCNConv(*size)).cuda(),
    }
    for net in nets.values():
        net.load_state_dict(nets["RGCNConv"].state_dict())
    x = torch.randn(nodes, options.channels, device="cuda", requires_grad=True)
    target = torch.randn(nodes, options.channels, device="cuda")
    rows, outputs = {}, {}
    for library, net in nets.items():

        def step(net=net):
            net.zero_grad(set_to_none=True)
            torch.nn.functional.mse_loss(net(x, edge_index, edge_type), target).backward()

        def infer(net=net):
            with torch.no_grad():
                return net(x, edge_index, edge_type)

        try:
            outputs[library] = infer()
            for _ in range(2):
                step(), infer()
            memory = memory_mib(step)
        except torch.OutOfMemoryError:
            print(f"{name}: {library} runs out of memory")
            torch.cuda.empty_cache()
            continue
        rows[library] = {"memory": memory, "work": (infer, step), "infer": [], "step": []}
    error = float((outputs["RGCNConv"] - outputs["Pumice"]).abs().max() / outputs["RGCNConv"].abs().max())
    assert error < 1e-4, f"{name}: they differ by {error}"
    for _ in range(options.rounds):
        for row in rows.values():
            for what, work in zip(("infer", "step"), row["work"], strict=True):
                row[what].append(median_ms(work, options.passes))
    print(f"{name}: {nodes} nodes, {len(triples)} edges, {relations} relations")
    peers = [library for library in rows if library != "Pumice"]
    for what in ("infer", "step"):
        best = min(peers, key=lambda library: statistics.median(rows[library][what]))
        a, b = (statistics.median(rows[library][what]) for library in (best, "Pumice"))
        spread = f"{min(rows['Pumice'][what]):.3f}-{max(rows['Pumice'][what]):.3f}"
        print(f"  {what:6s} {best} {a:.3f} ms, Pumice {b:.3f} ({spread}): {a / b:.2f}x")
    print("  memory of a step, MiB: " + ", ".join(f"{library} {row['memory']:.0f}" for library, row in rows.items()))
    make = median_ms(lambda: pumice.TypedGraph(edge_index, edge_type, nodes, relations), options.passes)
    print(f"  the graph is made in {make:.3f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--graphs", nargs="*", default=list(GRAPHS))
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, fp32, {options.channels} channels")
    for name in options.graphs:
        compare(name, options)


if __name__ == "__main__":
    main()
