"""What tools/sanitize_python.py runs under compute-sanitizer: networks and training steps from Python, layer by layer and as
graphs, on one street.

    python tests/python/sanitized_runs.py minkunet42 training autocast graph small [--device cuda]

`small` has at most 2,000 voxels, `real` those of the networks' own voxel sizes. A graph is learned, recorded and launched on two
scans, of which the second is the smaller one, so that rows past its count hold what the first one left. Results have to be
numbers; what they are other tests look at. On a CPU networks have an eighth of their widths.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import pumice
from pumice import losses, nn

NETWORKS = ("minkunet42", "centerpoint", "graphs")
TYPES = ("f32", "half", "autocast")
MOST_SMALL = 2000  # voxels
CLASSES = 19
CALLS = 4  # of a size: two learn, the third records
VOXELS = {"minkunet42": (0.05, 2.0), "centerpoint": ((0.075, 0.075, 0.2), 2.0)}  # metres: real, small
STRIDE = 16  # of the coarsest level
LEAST_HEIGHT = 48  # cells, of which the encoder's coarsest level has two


def street(network: str, is_small: bool, device: str, seed: int = 0) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """int32 cells [N, 4], float32 features [N, 4], and their grid."""
    cloud = pumice.simulate(seed=seed)
    voxels = pumice.voxelize(cloud.positions, cloud.features(), size=VOXELS[network][is_small])
    cells = torch.from_numpy(voxels.coordinates).int()
    cells[:, 1:] -= cells[:, 1:].min(0).values
    if is_small and len(cells) > MOST_SMALL:
        sys.exit(f"{len(cells)} voxels: a small run has at most {MOST_SMALL}")
    shape = [int(most) // STRIDE * STRIDE + STRIDE for most in cells[:, 1:].max(0).values]
    shape[2] = max(shape[2], LEAST_HEIGHT)
    return cells.to(device), torch.from_numpy(voxels.features).float().to(device), {"batch_size": 1, "spatial_shape": shape}


def network_of(name: str, device: str) -> torch.nn.Module:
    torch.manual_seed(0)
    if name == "centerpoint":
        return pumice.models.CenterPointEncoder().to(device)
    return pumice.models.MinkUNet42(classes=CLASSES, width_factor=1.0 if device != "cpu" else 0.125).to(device)


class OnEdges(torch.nn.Module):
    """Layers of graphs one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([nn.graph.SAGEConv(32, 32), nn.graph.GATConv(32, 32), nn.graph.GCNConv(32, 32)])

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, edges).relu()
        return x


def check(value: Tensor, what: str) -> None:
    if not bool(value.isfinite().all()):
        sys.exit(f"{what} is no number")


def under(kind: str, device: str) -> contextlib.AbstractContextManager[Any]:
    if kind != "autocast":
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, torch.bfloat16 if device == "cpu" else torch.float16)


def sum_of_squares(output: Any, part: Tensor) -> Tensor:
    """Of an encoder's features; rows that are not in use are zeros."""
    return getattr(output, "features", output).float().square().sum() * part


sum_of_squares.ignore_index = -1


def halved(kind: str, net: torch.nn.Module, features: Tensor) -> tuple[torch.nn.Module, Tensor]:
    if kind != "half":
        return net, features
    dtype = torch.bfloat16 if features.device.type == "cpu" else torch.float16
    return net.to(dtype), features.to(dtype)


def in_turn(as_graph: bool, scans: list[Any], call: Callable[[Any], Any]) -> Any:
    """Results of the first scan until its graph has run, then of the second, which is in the same bucket."""
    for _ in range(CALLS if as_graph else 1):
        made = call(scans[0])
    return call(scans[1]) if as_graph else made


def infer(name: str, kind: str, as_graph: bool, is_small: bool, device: str) -> str:
    cells, features, grid = street(name, is_small, device)
    net, features = halved(kind, network_of(name, device).eval(), features)
    fewer = len(cells) - len(cells) // 10
    scans = [(cells, features), (cells[:fewer], features[:fewer])]
    with under(kind, device):
        if as_graph:
            fast = pumice.compile(net, max_voxels=len(cells))
            made = in_turn(True, scans, lambda scan: fast(*scan, **grid))
            fast.wait()
        else:
            with torch.no_grad():
                made = net(pumice.SparseTensor(*scans[0], **grid))
    made = made.exact() if hasattr(made, "exact") else made
    check(made.features, "a score")
    return f"{len(cells):,} voxels"


def train(name: str, kind: str, as_graph: bool, is_small: bool, device: str) -> str:
    cells, features, grid = street(name, is_small, device)
    net, features = halved(kind, network_of(name, device).train(), features)
    on_gpu = device != "cpu"
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    scaled = torch.amp.GradScaler("cuda", init_scale=2.0**10) if on_gpu and kind == "autocast" else None
    fewer = len(cells) - len(cells) // 10
    generator = torch.Generator().manual_seed(0)
    segments = name == "minkunet42"
    scans = []
    for rows in (len(cells), fewer):
        truth = torch.randint(0, CLASSES, (rows,), generator=generator) if segments else torch.tensor(1e-3 / rows)
        scans.append((cells[:rows], features[:rows], truth.to(device)))
    loss = losses.cross_entropy if segments else sum_of_squares
    with under(kind, device):
        if as_graph:
            step = pumice.compile_step(net, loss, optimizer, scaler=scaled, clip_norm=10.0, max_voxels=len(cells))
            value = in_turn(True, scans, lambda scan: step(*scan, **grid))
            step.wait()
        else:
            output = net(pumice.SparseTensor(*scans[0][:2], **grid))
            value = loss(output.features if segments else output, scans[0][2])
    if not as_graph:
        (value if scaled is None else scaled.scale(value)).backward()
        if scaled is None:
            optimizer.step()
        else:
            scaled.step(optimizer)
            scaled.update()
    check(value.detach(), "a loss")
    return f"{len(cells):,} voxels"


def on_edges(task: str, kind: str, as_graph: bool, is_small: bool, device: str) -> str:
    nodes = MOST_SMALL if is_small else 60_000
    generator = torch.Generator().manual_seed(0)
    net, x = halved(kind, OnEdges().to(device).eval(), torch.randn(nodes, 32, generator=generator).to(device))
    if task == "training":
        sys.exit("graphs: of these there is inference alone")
    edges = torch.randint(0, nodes, (2, 8 * nodes), generator=generator).to(device)
    fewer = edges[:, : edges.shape[1] * 9 // 10].contiguous()
    with under(kind, device):
        if as_graph:
            fast = pumice.compile(net)
            made = in_turn(True, [edges, fewer], lambda given: fast(x, given))
            fast.wait()
        else:
            with torch.no_grad():
                made = net(x, edges)
    check(made, "a feature")
    return f"{nodes:,} nodes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("task", choices=("inference", "training"))
    parser.add_argument("kind", choices=TYPES)
    parser.add_argument("mode", choices=("eager", "graph"))
    parser.add_argument("size", choices=("small", "real"))
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    words = (options.kind, options.mode == "graph", options.size == "small", options.device)
    if options.network == "graphs":
        said = on_edges(options.task, *words)
    else:
        said = (infer if options.task == "inference" else train)(options.network, *words)
    if options.device != "cpu":
        torch.cuda.synchronize()
    print(f"{options.network} {options.task} {options.kind} {options.mode} {options.size}: {said}")


if __name__ == "__main__":
    main()
