"""Trains GraphSAGE on batches of sampled neighbours, to find the classes of a generated graph's nodes.

    python examples/train_minibatch.py
    python examples/train_minibatch.py --nodes 2400000 --edges 62000000 --batch 1024 --fan-outs 15 10 5
    torchrun --standalone --nproc-per-node 2 examples/train_minibatch.py

Edges are those of a power law, of which some join nodes of one class; features hint at the class, not enough to tell
it, so that it takes a node's neighbours. Of ten nodes eight are to learn from and one to measure on. Several processes
share the seeds, each on a GPU of its own where there are some, and average their gradients.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import pumice
from pumice.data import NeighbourBatch, NeighbourLoader, power_law_edges
from pumice.nn.graph import SAGEConv

PART = 2**22  # edges that are looked at at once


@dataclasses.dataclass
class Nodes:
    """A graph, float32 features [nodes, channels] and int64 classes [nodes]."""

    graph: pumice.Graph
    features: torch.Tensor
    classes: torch.Tensor
    train: torch.Tensor
    test: torch.Tensor


def generate(options: argparse.Namespace) -> Nodes:
    """The class of a node is its number modulo that of classes."""
    nodes, classes = options.nodes, options.classes
    generator = torch.Generator().manual_seed(options.seed)
    edges = power_law_edges(nodes, options.edges, options.seed)
    for begin in range(0, options.edges, PART):
        source, target = edges[:, begin : begin + PART]
        alike = source - source % classes + target % classes
        joins = (torch.rand(len(source), generator=generator) < options.alike) & (alike < nodes)
        source.copy_(torch.where(joins, alike, source))
    of_node = torch.arange(nodes) % classes
    features = torch.randn(nodes, options.channels, generator=generator)
    centres = torch.randn(classes, options.channels, generator=generator)
    features += options.hint * centres[of_node]
    number = torch.randperm(nodes, generator=generator)
    ninth, last = nodes * 8 // 10, nodes * 9 // 10
    return Nodes(pumice.Graph(edges, nodes), features, of_node, number[:ninth], number[last:])


class Network(torch.nn.Module):
    """A layer for each block."""

    def __init__(self, channels: int, hidden: int, classes: int, layers: int) -> None:
        super().__init__()
        widths = [channels, *[hidden] * (layers - 1), classes]
        self.layers = torch.nn.ModuleList(
            SAGEConv(first, second) for first, second in zip(widths, widths[1:], strict=False)
        )

    def forward(self, x: torch.Tensor, blocks: list[pumice.Graph]) -> torch.Tensor:
        for layer, block in zip(self.layers, blocks, strict=True):
            x = layer((x, x[: block.rows]), block)
            if layer is not self.layers[-1]:
                x = x.relu()
        return x


def loader_of(nodes: Nodes, seeds: torch.Tensor, options: argparse.Namespace, shuffle: bool) -> NeighbourLoader:
    """Workers pick the features and classes too."""

    def pick(batch: NeighbourBatch) -> NeighbourBatch:
        batch.x, batch.y = nodes.features[batch.n_id], nodes.classes[batch.seeds]
        return batch

    return NeighbourLoader(
        nodes.graph, options.fan_outs, seeds, batch_size=options.batch, shuffle=shuffle, seed=options.seed,
        workers=options.workers, transform=pick,
    )  # fmt: skip


kept_sums: list[dist.Work] = []


def over_processes(*numbers: float) -> list[float]:
    """Their sums over all processes."""
    sums = torch.tensor(numbers, dtype=torch.float64)
    if dist.is_initialized():
        # Kept until the next one, for PyTorch's thread may let go of it later than this one, and then aborts where Python has ended.
        kept_sums[:] = [dist.all_reduce(sums, async_op=True)]
        kept_sums[0].wait()
    return sums.tolist()


class Bar:
    """How far an epoch is, on a terminal."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown and sys.stdout.isatty()

    def show(self, done: int, of: int, text: str) -> None:
        if self.shown:
            full = 24 * done // of
            print(f"\r[{'#' * full}{'.' * (24 - full)}] {text}", end="", flush=True)

    def clear(self) -> None:
        if self.shown:
            print(f"\r{'':79}\r", end="")


def train_epoch(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader: NeighbourLoader, device: torch.device, steps: int | None, bar: Bar
) -> tuple[float, float, int]:
    """(mean loss, seconds that were waited for batches, edges)."""
    model.train()
    waited, losses, edges = 0.0, 0.0, 0
    count = min(len(loader), len(loader) if steps is None else steps)
    batches = iter(loader)
    for step in range(count):
        begun = time.monotonic()
        batch = next(batches).to(device)
        waited += time.monotonic() - begun
        loss = cross_entropy(model(batch.x, batch.blocks), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses += loss.item()
        edges += len(batch.e_id)
        bar.show(step + 1, count, f"batch {step + 1} of {count}, loss {loss.item():.3f}")
    batches.close()
    bar.clear()
    return losses / max(count, 1), waited, edges


@torch.no_grad()
def accuracy(network: Network, loader: NeighbourLoader, device: torch.device) -> float:
    """Over all processes, each seed once."""
    network.eval()
    right = counted = 0
    for batch in loader:
        moved = batch.to(device)
        found = network(moved.x, moved.blocks).argmax(1) == moved.y
        right += int(found[: batch.counted].sum())
        counted += batch.counted
    right, counted = over_processes(right, counted)
    return right / max(counted, 1)


def train(options: argparse.Namespace, device: torch.device) -> None:
    first = not dist.is_initialized() or dist.get_rank() == 0
    begun = time.monotonic()
    nodes = generate(options)
    if first:
        print(
            f"{options.nodes} nodes, {options.edges} edges, {options.classes} classes, made in "
            f"{time.monotonic() - begun:.1f} s", flush=True,
        )  # fmt: skip
    torch.manual_seed(options.seed)
    network = Network(options.channels, options.hidden, options.classes, len(options.fan_outs)).to(device)
    model: torch.nn.Module = network
    if dist.is_initialized():
        model = DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    loader = loader_of(nodes, nodes.train, options, shuffle=True)
    measured = loader_of(nodes, nodes.test[: options.measured], options, shuffle=False)
    curves = [("epoch", "loss", "accuracy", "seconds", "waited", "edges")]
    for epoch in range(options.epochs):
        loader.set_epoch(epoch)
        begun = time.monotonic()
        loss, waited, edges = train_epoch(model, optimizer, loader, device, options.steps, Bar(first))
        took = time.monotonic() - begun
        (edges,) = over_processes(edges)
        share = accuracy(network, measured, device)
        curves.append((epoch, loss, share, took, waited, int(edges)))
        if first:
            print(
                f"epoch {epoch}: loss {loss:.3f}, accuracy {share:.3f}, {took:.1f} s, of which {waited:.1f} s waiting for "
                f"batches; {edges / took / 1e6:.2f} million edges a second", flush=True,
            )  # fmt: skip
    if options.curves and first:
        with open(options.curves, "w", newline="") as file:
            csv.writer(file).writerows(curves)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--nodes", type=int, default=20_000)
    add("--edges", type=int, default=300_000)
    add("--classes", type=int, default=16)
    add("--channels", type=int, default=32, help="of the features")
    add("--hidden", type=int, default=64)
    add("--fan-outs", type=int, nargs="+", default=[10, 5], help="edges of a node, from the seeds on; -1: all")
    add("--batch", type=int, default=512, help="seeds of each process a step")
    add("--epochs", type=int, default=5)
    add("--steps", type=int, help="batches an epoch; default: all")
    add("--measured", type=int, default=20_000, help="nodes to measure on, at most")
    add("--workers", type=int, default=1, help="threads that sample ahead")
    add("--alike", type=float, default=0.6, help="share of edges that join nodes of one class")
    add("--hint", type=float, default=0.3, help="what of a class features have, beside noise of 1")
    add("--rate", type=float, default=0.01)
    add("--seed", type=int, default=0)
    add("--device", help="default: a GPU, where there is one")
    add("--curves", help="a CSV file: epoch, loss, accuracy, seconds, seconds of waiting, edges")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    has_gpu = torch.cuda.is_available() and options.device != "cpu"
    device = torch.device(options.device or ("cuda" if has_gpu else "cpu"))
    if "RANK" in os.environ:
        if device.type == "cuda":
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(device)
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    try:
        train(options, device)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


if __name__ == "__main__":
    try:
        main()
    except pumice.UserError as error:
        sys.exit(f"train_minibatch.py: {error}")
