#!/usr/bin/env python3
"""Two layers of a graph network of PyG, and the same layers of Pumice with the same weights, in one process on a GPU.

    python benchmarks/peers/graph_layers.py [--channels 128] [--rounds 5] [--passes 10] [--graphs NAME ...] [--layers NAME ...]
        [--compile] [--cudnn]

Each round times `passes` training steps over the whole graph (forward, mean squared error to a target, backward) and
inference passes of both, one library after the other; the table has medians over rounds, lowest and highest, ratios, and the most memory
that a step took beside the inputs. Pumice keeps what it made of the edges, PyG what it keeps of itself (nothing: its
layers are as a user writes them, and GCNConv is given cached=True). First both are checked against each other.
--compile measures PyG's layers under torch.compile too, --cudnn the same layers of cudnn.gnn (cudnn_layers.py), each in a
line of its own; what compiling takes is said and does not count. Then: products alone, calls that only the host is busy
with, and how long a graph takes to be made.
"""

import argparse
import statistics
import sys
import time
import warnings

import torch

if not torch.cuda.is_available():
    sys.exit("graph_layers.py needs a CUDA device, and PyTorch finds none")

import pumice
from cudnn_layers import Net as OfCudnn
from cudnn_layers import why_not
from power_law import SIZES, power_law_graphs

warnings.simplefilter("ignore")   # of PyG's imports
import torch_geometric.nn as pyg  # noqa: E402

LAYERS = {
    "GCN": lambda l, c: l.GCNConv(c, c, cached=True) if l is pyg else l.GCNConv(c, c),
    "SAGE": lambda l, c: l.SAGEConv(c, c),
    "SAGE max": lambda l, c: l.SAGEConv(c, c, aggr="max"),
    "GIN": lambda l, c: l.GINConv(torch.nn.Linear(c, c)),
    "GAT, 4 heads": lambda l, c: l.GATConv(c, c // 4, heads=4),
    "GATv2, 4 heads": lambda l, c: l.GATv2Conv(c, c // 4, heads=4),
}


class Net(torch.nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def median_ms(work, passes):
    """Of device time, from an idle device on."""
    times = []
    for _ in range(passes):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def memory_mib(work):
    """The most that it takes beside what is there."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def host_us(work, calls=300):
    """A call that the device keeps up with."""
    for _ in range(20):
        work()
    torch.cuda.synchronize()
    least = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        least = min(least, (time.perf_counter() - start) / calls)
        torch.cuda.synchronize()
    return least * 1e6


def passes_of(net, x, edge_index, target):
    """(a training step, an inference pass). The loss takes two tensors of the output's size; out.square().mean() takes four on
    its way back, at which a step of Pumice took most memory."""

    def step():
        net.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(net(x, edge_index), target).backward()

    def infer():
        with torch.no_grad():
            return net(x, edge_index)

    return step, infer


def networks(kind, edge_index, nodes, options):
    """{name: network} with the same weights, Pumice's last."""
    torch.manual_seed(0)
    theirs = Net(*(LAYERS[kind](pyg, options.channels) for _ in range(2))).cuda()
    ours = Net(*(LAYERS[kind](pumice.nn.graph, options.channels) for _ in range(2))).cuda()
    ours.load_state_dict(theirs.state_dict())
    nets = {"PyG": theirs}
    if options.compile:
        torch.compiler.reset()
        nets["torch.compile"] = torch.compile(theirs)
    if options.cudnn:
        nets["cuDNN"] = OfCudnn(kind, (theirs.first, theirs.second), edge_index, nodes)
    return nets | {"Pumice": ours}


def compare(name, kind, edge_index, nodes, options):
    x = torch.randn(nodes, options.channels, device="cuda", requires_grad=True)
    target = torch.randn(nodes, options.channels, device="cuda")
    rows = {}
    outputs = {}
    for library, net in networks(kind, edge_index, nodes, options).items():
        step, infer = passes_of(net, x, edge_index, target)
        try:
            begun = time.perf_counter()
            outputs[library] = infer()
            step()
            torch.cuda.synchronize()
            first = time.perf_counter() - begun
            for _ in range(3):
                step(), infer()
            rows[library] = {"memory": memory_mib(step), "step": [], "infer": [], "work": (step, infer), "first": first}
        except torch.OutOfMemoryError as error:
            print(f"{name:14s} {kind:14s} {library}: {str(error)[:80]}", flush=True)
        x.grad = None
        net.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
    if "Pumice" not in rows:
        return
    for library in rows:
        error = float((outputs[library] - outputs["Pumice"]).abs().max() / outputs["Pumice"].abs().max())
        assert error < 1e-4, f"{name}, {kind}: {library} and Pumice differ by {error}"
    outputs.clear()
    for _ in range(options.rounds):
        for row in rows.values():
            step, infer = row["work"]
            row["step"].append(median_ms(step, options.passes))
            row["infer"].append(median_ms(infer, options.passes))
    ours = rows.pop("Pumice")
    for place, (library, row) in enumerate(rows.items()):
        shown = []
        for what in ("infer", "step"):
            a, b = (statistics.median(figures[what]) for figures in (row, ours))
            shown.append(f"{a:8.3f} {b:8.3f} ({min(ours[what]):.3f}-{max(ours[what]):.3f}) {a / b:5.2f}x")
        more = f", compiled in {row['first']:.1f} s" if library == "torch.compile" else ""
        label = f"{name:14s} {kind:14s}" if place == 0 else f"{'':14s} {'':14s}"
        memory = f"{row['memory']:7.0f} {ours['memory']:7.0f} MiB"
        print(f"{label} {library:13s} {shown[0]:36s} {shown[1]:36s} {memory}{more}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--graphs", nargs="*", default=[name for name, _, _ in SIZES])
    parser.add_argument("--layers", nargs="*", default=list(LAYERS), choices=list(LAYERS))
    parser.add_argument("--compile", action="store_true", help="PyG's layers under torch.compile too")
    parser.add_argument("--cudnn", action="store_true", help="the same layers of cudnn.gnn too")
    options = parser.parse_args()
    if options.cudnn and (reason := why_not()):
        options.cudnn = False
        print(reason)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, fp32, {options.channels} channels, milliseconds")
    print(f"{'graph':14s} {'layers':14s} {'peer':13s} {'inference: peer, Pumice':36s} {'training step: peer, Pumice':36s} memory of a step")
    for name, (row, column, nodes) in power_law_graphs().items():
        if name not in options.graphs:
            continue
        edge_index = torch.stack([torch.from_numpy(column), torch.from_numpy(row)]).cuda()
        for kind in options.layers:
            compare(name, kind, edge_index, nodes, options)
            torch.cuda.empty_cache()
        x = torch.randn(nodes, 128, device="cuda")
        graph = pumice.Graph(edge_index, nodes)
        make = median_ms(lambda: pumice.Graph(edge_index, nodes), options.passes)
        turn = median_ms(graph.transposed, options.passes)
        product = median_ms(lambda: pumice.ops.spmm(graph, x), options.passes)
        print(f"{name}: made in {make:.3f} ms, transposed in {turn:.3f}, a product with 128 channels takes {product:.3f}")
    small = pumice.Graph(torch.randint(64, (2, 256), device="cuda"), 64)
    x, linear = torch.randn(64, 32, device="cuda"), torch.nn.Linear(32, 32).cuda()
    values = torch.rand(256, device="cuda")
    with torch.no_grad():
        calls = {
            "spmm": lambda: pumice.ops.spmm(small, x),
            "spmm with values": lambda: pumice.ops.spmm(small, x, values),
            "sddmm": lambda: pumice.ops.sddmm(small, x, x),
            "torch.nn.Linear": lambda: linear(x),
        }
        print("host time of a call: " + ", ".join(f"{name} {host_us(call):.1f} us" for name, call in calls.items()))


if __name__ == "__main__":
    main()
