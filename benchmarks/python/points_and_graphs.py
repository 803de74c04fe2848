"""Compiled models that are given points, models that are given graphs, and steps of these, beside the same layer by layer:
milliseconds.

    python benchmarks/python/points_and_graphs.py [--scan scan.bin ...] [--passes 24] [--rounds 5]
        [--nodes 2000 60000] [--parts points graphs steps]

Points: MinkUNet42 of voxels that were made before, of voxels that are made eagerly in each call, and of points whose voxels
are made inside the graph. Graphs: three layers of 64 channels, other edges in each call, some eight for a node. Steps: the same
layers with a batch norm after each, under autocast in float16, cross entropy of 16 classes, GradScaler and fused AdamW, as a loop
written by hand and compiled. Calls follow each other; medians of rounds. "host": until all is enqueued. For a GPU; without one sizes are small and both
ways run the same layers.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from training_step import waiter

import pumice
from pumice.nn import graph

CALLS = 8  # different ones, in turn
LAYERS = {"GCN": graph.GCNConv, "SAGE": graph.SAGEConv, "GAT": graph.GATConv, "RGCN": graph.RGCNConv}
RELATIONS, CLASSES = 4, 16


class Network(torch.nn.Module):
    def __init__(self, name: str, channels: int = 64) -> None:
        super().__init__()
        more = (RELATIONS,) if name == "RGCN" else ()
        self.layers = torch.nn.ModuleList([LAYERS[name](channels, channels, *more) for _ in range(3)])

    def forward(self, x: torch.Tensor, *edges: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, *edges).relu()
        return x


def measure(name: str, call: Callable[[Any], object], given: Sequence[Any], options: argparse.Namespace) -> None:
    wait = waiter(torch.device(options.device))
    for one in given:
        call(one)
    whole, host = [], []
    for _ in range(options.rounds):
        wait()
        start = time.perf_counter()
        for turn in range(options.passes):
            call(given[turn % len(given)])
        host.append((time.perf_counter() - start) / options.passes)
        wait()
        whole.append((time.perf_counter() - start) / options.passes)
    print(f"{name:52s} {statistics.median(whole) * 1e3:8.3f} host {statistics.median(host) * 1e3:8.3f}", flush=True)


def points(options: argparse.Namespace) -> None:
    device = torch.device(options.device)
    on_gpu = device.type == "cuda"
    scans = [pumice.read_points(name) for name in options.scan] or [pumice.simulate(seed=0)]
    generator = torch.Generator().manual_seed(0)
    clouds = []
    for turn in range(CALLS):
        scan = scans[turn % len(scans)]
        rows = torch.cat([torch.from_numpy(scan.positions), torch.from_numpy(scan.features()[:, -1:])], 1).float()
        rows = rows if on_gpu else rows[:2000]
        rows[:, :3] += torch.rand(3, generator=generator) * 0.05
        clouds.append(rows[: len(rows) - 5 * turn].contiguous().to(device))
    dtype = torch.float16 if on_gpu else torch.float32
    how = pumice.Voxelizer(size=0.05, range=[-100, -100, -10, 100, 100, 10])
    net = pumice.models.MinkUNet42(4, 19, width_factor=1.0 if on_gpu else 0.125).to(device, dtype).eval()
    made = [how(cloud, cloud.to(dtype)) for cloud in clouds]
    print(f"{len(clouds[0])} points, {len(made[0])} voxels")
    of_voxels, of_points = pumice.compile(net), pumice.compile(net, voxelize=how)

    def of_eager_voxels(cloud: torch.Tensor) -> object:
        voxels = how(cloud, cloud.to(dtype))
        return of_voxels(voxels.coordinates, voxels.features, batch_size=1)

    measure("voxels that were made before, compiled", lambda v: of_voxels(v.coordinates, v.features, batch_size=1), made, options)
    measure("voxels that are made eagerly, compiled", of_eager_voxels, clouds, options)
    measure("points, compiled", lambda cloud: of_points(cloud, cloud.to(dtype)), clouds, options)
    measure("layer by layer", lambda cloud: net(how(cloud, cloud.to(dtype)).tensor), clouds, options)


def graph_calls(nodes: int, device: torch.device) -> list[tuple[torch.Tensor, ...]]:
    """(features, edges, their types), in different numbers."""
    generator = torch.Generator().manual_seed(nodes)
    calls = []
    for turn in range(CALLS):
        rows, edges = nodes - 7 * turn, 8 * nodes - 31 * turn
        index = torch.randint(0, rows, (2, edges), generator=generator)
        kinds = torch.randint(0, RELATIONS, (edges,), generator=generator)
        calls.append((torch.randn(rows, 64, generator=generator).to(device), index.to(device), kinds.to(device)))
    return calls


def graphs(nodes: int, options: argparse.Namespace) -> None:
    device = torch.device(options.device)
    calls = graph_calls(nodes, device)
    for name in LAYERS:
        net = Network(name).to(device).eval()
        fast = pumice.compile(net)
        taken = 3 if name == "RGCN" else 2
        # Layers keep what they make of edges with the tensor, so that an eager call gets a new one.
        measure(f"{name}, {nodes} nodes, layer by layer", lambda one: net(one[0], one[1].clone(), *one[2:taken]), calls, options)
        measure(f"{name}, {nodes} nodes, compiled", lambda one: fast(*one[:taken]), calls, options)


class Trained(torch.nn.Module):
    def __init__(self, name: str, channels: int = 64) -> None:
        super().__init__()
        self.body = Network(name, channels)
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm1d(channels) for _ in self.body.layers])
        self.head = torch.nn.Linear(channels, CLASSES)

    def forward(self, x: torch.Tensor, *edges: torch.Tensor) -> torch.Tensor:
        for layer, norm in zip(self.body.layers, self.norms):
            x = norm(layer(x, *edges)).relu()
        return self.head(x)


def steps(nodes: int, options: argparse.Namespace) -> None:
    device = torch.device(options.device)
    calls = [(*given, torch.arange(len(given[0]), device=device) % CLASSES) for given in graph_calls(nodes, device)]
    half = torch.autocast(device.type, torch.float16 if device.type == "cuda" else torch.bfloat16)
    for name in LAYERS:
        taken = 3 if name == "RGCN" else 2
        for compiled in (False, True):
            torch.manual_seed(0)
            net = Trained(name).to(device)
            optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
            scaler = torch.amp.GradScaler(device.type)
            step = pumice.compile_step(net, pumice.losses.cross_entropy, optimizer, scaler=scaler)

            def by_hand(one: Any, net: Any = net, optimizer: Any = optimizer, scaler: Any = scaler) -> None:
                with half:  # of each pass: in it autocast keeps the weights that it has converted
                    loss = pumice.losses.cross_entropy(net(one[0], one[1].clone(), *one[2:taken]), one[-1])
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()

            def as_one(one: Any, step: Any = step) -> None:
                with half:
                    step(*one[:taken], one[-1])

            which = "compiled" if compiled else "by hand"
            measure(f"{name}, {nodes} nodes, step {which}", as_one if compiled else by_hand, calls, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--scan", nargs="*", default=[], help="default: a simulated one")
    parser.add_argument("--nodes", nargs="*", type=int, default=[2000, 60_000])
    parser.add_argument("--parts", nargs="+", choices=["points", "graphs", "steps"], default=["points", "graphs", "steps"])
    parser.add_argument("--passes", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with torch.no_grad():
        if "points" in options.parts:
            points(options)
        for nodes in options.nodes if "graphs" in options.parts else []:
            graphs(nodes, options)
    for nodes in options.nodes if "steps" in options.parts else []:
        steps(nodes, options)


if __name__ == "__main__":
    main()
