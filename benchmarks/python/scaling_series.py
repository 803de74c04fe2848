"""Copies of a scan side by side, and what scaling.py measures on them: each series is a function that makes, of a scene, one
pass to be called again and again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import pumice
from pumice import losses, nn

CLASSES, VOXEL = 19, 0.05
STRIDE = 16  # of the coarsest level, in voxels
GAP = 3 * STRIDE  # between copies: windows of 3 there do not reach over it
COLUMNS = 16  # copies in a row
TINY_VOXELS, TINY_WIDTHS = 300, 0.125
SCALE = 2.0**10  # at which half precision does not overflow


@dataclasses.dataclass
class Scene:
    """Voxels of one batch item."""

    cells: Tensor  # int32 [N, 4]
    features: Tensor  # float32 [N, 4]
    labels: Tensor  # int64 [N]
    shape: list[int]
    copies: int
    widths: float

    @property
    def device(self) -> torch.device:
        return self.cells.device

    @property
    def grid(self) -> dict[str, Any]:
        return {"batch_size": 1, "spatial_shape": self.shape}

    def sparse(self, features: Tensor) -> pumice.SparseTensor:
        """A tensor without maps."""
        return pumice.SparseTensor(self.cells, features, **self.grid)

    def network(self) -> torch.nn.Module:
        """With the same weights each time."""
        torch.manual_seed(0)
        return pumice.models.MinkUNet42(classes=CLASSES, width_factor=self.widths).to(self.device)


def scene_of(scan: str | None, copies: int, device: torch.device, tiny: bool) -> Scene:
    """`scan`: a file; None: a simulated street. The copies are made on the device."""
    cloud = pumice.read_points(scan) if scan else pumice.simulate(seed=0)
    voxels = pumice.voxelize(cloud.positions, cloud.features(), size=VOXEL)
    rows = TINY_VOXELS if tiny else len(voxels.coordinates)
    cells = torch.from_numpy(voxels.coordinates[:rows]).int()
    cells[:, 1:] -= cells[:, 1:].min(0).values
    pitch = [(int(most) + GAP) // STRIDE * STRIDE + STRIDE for most in cells[:, 1:].max(0).values]
    number = torch.arange(copies)
    offset = torch.stack([number * 0, number % COLUMNS * pitch[0], number // COLUMNS * pitch[1], number * 0], 1).int()
    together = (cells.to(device)[None] + offset.to(device)[:, None]).reshape(-1, 4)
    features = torch.from_numpy(voxels.features[:rows]).float().to(device).repeat(copies, 1)
    labels = torch.randint(0, CLASSES, (rows,), generator=torch.Generator().manual_seed(0)).to(device).repeat(copies)
    shape = [min(copies, COLUMNS) * pitch[0], -(-copies // COLUMNS) * pitch[1], pitch[2]]
    return Scene(together, features, labels, shape, copies, TINY_WIDTHS if tiny else 1.0)


def half_of(scene: Scene) -> tuple[torch.nn.Module, Tensor]:
    """A frozen network in half precision, and features; in bfloat16 on a CPU, which has no layers in float16."""
    dtype = torch.float16 if scene.device.type == "cuda" else torch.bfloat16
    return nn.freeze(scene.network().eval().to(dtype)), scene.features.to(dtype)


def forward(scene: Scene) -> Callable[[], Any]:
    net, features = half_of(scene)
    fast = pumice.compile(net, max_voxels=len(scene.cells))
    return lambda: fast(scene.cells, features, **scene.grid)


def forward_by_layers(scene: Scene) -> Callable[[], Any]:
    net, features = half_of(scene)

    def run() -> Any:
        with torch.no_grad():
            return net(scene.sparse(features))

    return run


def maps(scene: Scene) -> Callable[[], Any]:
    """What a compiled forward pass makes before its layers run, as a graph of its own."""
    if scene.device.type != "cuda":
        return maps_by_layers(scene)  # as a CPU makes them in any case
    net, features = half_of(scene)
    fast = pumice.compile(net, max_voxels=len(scene.cells))
    fast.plan(scene.cells, features, **scene.grid)
    (bucket,) = fast._buckets
    bucket.drop()  # whose memory is not that of maps
    with bucket.recorder.as_in_a_graph():
        recording = bucket.recorder.record(lambda: bucket.plan.make(bucket._indices, bucket._count))

    def run(kept: Any = (fast, recording)) -> None:
        recording.graph.replay()

    return run


def maps_by_layers(scene: Scene) -> Callable[[], Any]:
    """Calls `find` of all convolutions in the order of a pass, on sites that were made anew."""
    net, features = half_of(scene)
    known: list[Any] = []  # sites of a pass, the input's first
    calls: list[tuple[Any, int, int | None, int]] = []

    def number_of(coords: Any) -> int:
        for number, one in enumerate(known):
            if one.is_same(coords):
                return number
        known.append(coords)
        return len(known) - 1

    def note(layer: Any, given: tuple[Any, ...], made: Any) -> None:
        like = given[1] if len(given) > 1 else None
        at = None if like is None else number_of(getattr(like, "coords", like))
        calls.append((layer, number_of(given[0].coords), at, number_of(made.coords)))

    layers = [layer for layer in net.modules() if isinstance(layer, nn.Convolution)]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    with torch.no_grad():
        x = scene.sparse(features)
        number_of(x.coords)
        net(x)
    for hook in hooks:
        hook.remove()
    known.clear()
    nothing = features[:, :0]

    def run() -> None:
        sites = {0: scene.sparse(nothing)}
        for layer, at, like, to in calls:
            _, coords = layer.find(sites[at], None if like is None else sites[like].coords)
            if to not in sites:
                sites[to] = pumice.SparseTensor(coords, features.new_empty(len(coords), 0))

    return run


class Training:
    """A network with what trains it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.net = scene.network().train()
        self.on_gpu = scene.device.type == "cuda"
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9, fused=True if self.on_gpu else None)
        self.scaler = torch.amp.GradScaler(scene.device.type, init_scale=SCALE, enabled=self.on_gpu)

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.scene.device.type, torch.float16 if self.on_gpu else torch.bfloat16)


def step(scene: Scene) -> Callable[[], Tensor]:
    way = Training(scene)
    compiled = pumice.compile_step(
        way.net, losses.cross_entropy, way.optimizer, scaler=way.scaler if way.on_gpu else None, max_voxels=len(scene.cells)
    )

    def run() -> Tensor:
        with way.autocast():
            return compiled(scene.cells, scene.features, scene.labels, **scene.grid)

    return run


def step_by_layers(scene: Scene) -> Callable[[], Tensor]:
    way = Training(scene)

    def run() -> Tensor:
        way.optimizer.zero_grad()
        with way.autocast():
            output = way.net(scene.sparse(scene.features))
            loss = losses.cross_entropy(output.features, scene.labels)
        way.scaler.scale(loss).backward()
        way.scaler.step(way.optimizer)
        way.scaler.update()
        return loss.detach()

    return run


SERIES: dict[str, Callable[[Scene], Callable[[], Any]]] = {
    "maps": maps,
    "maps, layer by layer": maps_by_layers,
    "forward": forward,
    "forward, layer by layer": forward_by_layers,
    "training step": step,
    "training step, layer by layer": step_by_layers,
}
CALLS = 4  # of a compiled way, the last of which is a graph


def agreement(scene: Scene, series: list[str]) -> dict[str, float]:
    """The largest difference between the two ways of each task in `series`, in proportion to the largest value: outputs of
    the last of a few passes, and the losses of all of them."""
    found = {}
    if "forward" in series:
        run, other = forward(scene), forward_by_layers(scene)
        outputs = [run().features for _ in range(CALLS)]
        found["forward"] = apart(other().features, outputs[-1])
    if "training step" in series:
        curves = [torch.stack([run() for _ in range(CALLS)]) for run in (step_by_layers(scene), step(scene))]
        found["training step"] = apart(*curves)
    return found


def apart(one: Tensor, other: Tensor) -> float:
    """Infinite for other shapes."""
    if one.shape != other.shape:
        return float("inf")
    return float((one - other).abs().max() / one.abs().max())
