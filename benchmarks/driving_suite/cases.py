"""One library's network of one workload in each way to run it, and what it computes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import torch
from adapters import Absent, Library, first_line
from torch import Tensor, nn

from .inputs import Batch
from .passes import Passes
from .workloads import Workload

LOSS_SCALE = 64.0  # of networks in half precision, whose parameters no GradScaler takes
# To begin with: PyTorch's own is 65,536, at which the first steps overflow and are left out.
GRADIENT_SCALE = 2.0**10
ENCODED = 128  # channels of an encoder's features


@dataclasses.dataclass(frozen=True)
class Way:
    """In which types a network computes."""

    name: str
    dtype: torch.dtype
    autocasts: bool = False
    tf32: bool = False


WAYS = {
    way.name: way
    for way in (
        Way("autocast", torch.float16, autocasts=True),
        Way("half", torch.float16),
        Way("bf16", torch.bfloat16),
        Way("tf32", torch.float32, tf32=True),
        Way("f32", torch.float32),
    )
}
INFERENCE, KEPT, TRAINING = "inference", "inference, maps kept", "training step"
TASKS = (INFERENCE, KEPT, TRAINING)


@dataclasses.dataclass
class Job:
    """What is asked of a library."""

    work: Workload
    ways: Sequence[str]
    tasks: Sequence[str]
    norms: Sequence[str]  # "folded", "identity"
    single: list[Batch]  # of inference
    pairs: list[Batch]  # of training
    state: dict[str, Tensor]  # weights of Pumice's network
    layers: Sequence[int] = ()  # channels of single 3x3x3 layers on the voxels of the first scan


@dataclasses.dataclass
class Case:
    """One row of a table."""

    library: str
    way: str
    task: str
    norms: str
    passes: Passes


@dataclasses.dataclass
class Refusal:
    """A row that is not there, and why."""

    library: str
    task: str
    way: str
    reason: str


def device_of(job: Job) -> torch.device:
    return job.single[0].features.device


def network_of(library: Library, job: Job, norms: str) -> nn.Module:
    net = library.network(job.work, job.state)
    if norms == "identity":
        library.without_norms(net)
    return net.to(device_of(job))


def output_of(library: Library, job: Job, norms: str) -> tuple[Tensor, Tensor | None]:
    """float32 [M, C] of the first scan in float32, and the sites [M, 4] of an encoder, on the CPU."""
    library.allow_tf32(False)
    net = network_of(library, job, norms).eval()
    batch = job.single[0]
    with torch.no_grad():
        return _on_the_cpu(library, job, net(library.tensor(batch.voxels, batch.features)))


def output_after(library: Library, job: Job, half: bool, calls: int) -> tuple[Tensor, Tensor | None]:
    """The same of a network as it is measured, in half precision or in float32, after so many calls."""
    library.allow_tf32(False)
    batch = job.single[0]
    dtype = (torch.float16 if batch.features.is_cuda else torch.bfloat16) if half else torch.float32
    call = library.for_inference(network_of(library, job, "folded").eval().to(dtype))
    features = batch.features.to(dtype)
    with torch.no_grad():
        for _ in range(calls):
            takes_voxels = getattr(call, "takes_voxels", False)
            y = call(batch.voxels, features) if takes_voxels else call(library.tensor(batch.voxels, features))
    return _on_the_cpu(library, job, y.exact() if hasattr(y, "exact") else y)


def losses_of(library: Library, job: Job, way: str, steps: int) -> tuple[Tensor, None]:
    """float64 [steps] of training steps from the weights of the job on, over its batches in turn."""
    passes = _passes(library, job, WAYS[way], TRAINING, "folded")
    passes.begin()
    return torch.stack([passes.run(i) for i in range(steps)]).double().cpu(), None


def _on_the_cpu(library: Library, job: Job, y: object) -> tuple[Tensor, Tensor | None]:
    if isinstance(y, Tensor):
        return y.float().cpu(), None
    if job.work.network == "minkunet42":  # scores on the sites of the input
        return library.features(y).float().cpu(), None
    sites = library.sites(y)
    return library.features(y).float().cpu(), None if sites is None else sites.cpu().long()


def difference(ours: tuple[Tensor, Tensor | None], theirs: tuple[Tensor, Tensor | None]) -> float:
    """The largest difference over the largest value; infinite for other shapes or sites. Where a library does not tell
    its sites, each channel is compared in ascending order."""
    (left, left_sites), (right, right_sites) = ours, theirs
    if left.shape != right.shape:
        return float("inf")
    if left_sites is not None and right_sites is not None:
        left_order, right_order = _order(left_sites), _order(right_sites)
        if not torch.equal(left_sites[left_order], right_sites[right_order]):
            return float("inf")
        left, right = left[left_order], right[right_order]
    elif left_sites is not None or right_sites is not None:
        left, right = left.sort(0).values, right.sort(0).values
    return float((left - right).abs().max() / right.abs().max().clamp_min(1e-30))


def _order(sites: Tensor) -> Tensor:
    """Ascending by all columns."""
    order = torch.arange(len(sites))
    for column in reversed(range(sites.shape[1])):
        order = order[sites[order, column].argsort(stable=True)]
    return order


def cases_of(library: Library, job: Job) -> tuple[list[Case], list[Refusal]]:
    """All that `job` asks for, ready to run; nothing has run but the tuner."""
    cases, refusals = [], []
    for channels in job.layers:
        for backward in (False, True):
            task = f"3x3x3 layer of {channels}, {'forward and backward' if backward else 'forward'}"
            try:
                passes = _layer_passes(library, job, channels, backward)
            except Exception as error:
                refusals.append(Refusal(library.name, task, "half", _reason(error)))
            else:
                cases.append(Case(library.name, "half", task, "folded", passes))
    if library.layers_only:
        return cases, refusals
    for norms in job.norms:
        for task in job.tasks:
            for name in job.ways:
                if norms == "identity" and task != INFERENCE:
                    continue  # published for inference alone
                try:
                    passes = _passes(library, job, WAYS[name], task, norms)
                except Exception as error:  # one way that does not run leaves the others to be measured
                    refusals.append(Refusal(library.name, task, name, _reason(error)))
                else:
                    cases.append(Case(library.name, name, task, norms, passes))
    return cases, refusals


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Absent) else f"{type(error).__name__}: {first_line(error)}"


def layer_of(library: Library, job: Job, channels: int) -> tuple[nn.Module, Tensor]:
    """A 3x3x3 submanifold layer and features [N, channels] for the first scan, both in float32: the same numbers for
    every library."""
    generator = torch.Generator().manual_seed(channels)
    weight = torch.randn(27, channels, channels, generator=generator) / (27 * channels) ** 0.5
    features = torch.randn(len(job.single[0].features), channels, generator=generator)
    net = nn.Sequential(library.layer(channels, channels, (3, 3, 3), key="layer"))
    library.load(net, {"0.weight": weight})
    return net[0].to(device_of(job)), features.to(device_of(job))


def layer_output_of(library: Library, job: Job) -> tuple[Tensor, None]:
    """float32 [N, C] of a layer of the fewest channels asked for."""
    library.allow_tf32(False)
    layer, features = layer_of(library, job, min(job.layers))
    with torch.no_grad():
        y = library.call(layer, library.tensor(job.single[0].voxels, features))
    return library.features(y).float().cpu(), None


def _layer_passes(library: Library, job: Job, channels: int, backward: bool) -> Passes:
    """On one tensor, whose map is made once."""
    if library.float32_only:
        raise Absent(f"{library.name} computes in float32 alone")
    layer, features = layer_of(library, job, channels)
    dtype = torch.float16 if features.is_cuda else torch.bfloat16
    layer.train(backward)
    library.tune(layer, [(job.single[0].voxels, features)], backward)
    layer, features = layer.to(dtype), features.to(dtype).requires_grad_(backward)
    x = library.tensor(job.single[0].voxels, features)
    weights = torch.linspace(-1, 1, features.numel(), device=features.device).reshape(features.shape).to(dtype)

    def run(i: int) -> object:
        if not backward:
            with torch.no_grad():
                return library.call(layer, x)
        for value in (features, *layer.parameters()):
            value.grad = None
        y = library.features(library.call(layer, x))
        y.backward(weights)
        return y

    return Passes(run, features.device, lambda: library.allow_tf32(False), lambda: [features, *held_by(layer, run)])


def _passes(library: Library, job: Job, way: Way, task: str, norms: str) -> Passes:
    if library.float32_only and way.dtype != torch.float32:
        raise Absent(f"{library.name} computes in float32 alone")
    if task == KEPT and library.keeps_maps:
        raise Absent(f"maps are not kept: {library.keeps_maps}")
    device = device_of(job)
    dtype = way.dtype
    if device.type == "cpu" and dtype == torch.float16:
        dtype = torch.bfloat16  # what autocast and layers of a CPU compute in
    net = network_of(library, job, norms)
    batches = job.pairs if task == TRAINING else job.single
    net.train(task == TRAINING)
    library.tune(net, [(batch.voxels, batch.features) for batch in batches], task == TRAINING)
    if not way.autocasts:
        net = net.to(dtype)
    takes_half = not way.autocasts or library.half_under_autocast
    features = [batch.features.to(dtype) if takes_half else batch.features for batch in batches]

    def autocast() -> torch.autocast:
        return torch.autocast(device.type, dtype, enabled=way.autocasts)

    make = _training if task == TRAINING else _inference
    run = make(library, net, batches, features, autocast, way, task)
    given = [*features, *(batch.voxels.cells for batch in batches), *(batch.labels for batch in batches)]
    return Passes(run, device, lambda: library.allow_tf32(way.tf32), lambda: [*given, *held_by(net, run)])


def held_by(net: nn.Module, run: Callable[[int], object]) -> list[Tensor]:
    """Parameters, gradients, buffers, and the state of the optimizer."""
    tensors = [*net.parameters(), *net.buffers()]
    tensors += [parameter.grad for parameter in net.parameters() if parameter.grad is not None]
    for state in getattr(run, "optimizer_state", {}).values():
        tensors += [value for value in state.values() if isinstance(value, Tensor)]
    return tensors


def _inference(
    library: Library, net: nn.Module, batches: list[Batch], features: list[Tensor], autocast: Callable, way: Way, task: str
) -> Callable[[int], object]:  # fmt: skip
    call = library.for_inference(net.eval())
    takes_voxels = getattr(call, "takes_voxels", False)
    kept = library.tensor(batches[0].voxels, features[0]) if task == KEPT else None

    def run(i: int) -> object:
        with torch.no_grad(), autocast():
            if kept is not None:
                return call(kept)
            voxels, values = batches[i % len(batches)].voxels, features[i % len(batches)]
            return call(voxels, values) if takes_voxels else call(library.tensor(voxels, values))

    if hasattr(call, "graph_bytes"):
        run.graph_bytes = call.graph_bytes
    return run


def _training(
    library: Library, net: nn.Module, batches: list[Batch], features: list[Tensor], autocast: Callable, way: Way, task: str
) -> Callable[[int], object]:  # fmt: skip
    """A step as people write it: loss, backward, a gradient scaler under autocast in float16, SGD with momentum. It
    returns the loss."""
    on_gpu = features[0].is_cuda
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, fused=True if on_gpu else None)
    scaler = torch.amp.GradScaler("cuda", init_scale=GRADIENT_SCALE, enabled=on_gpu and way.autocasts)
    scale = LOSS_SCALE if way.name == "half" else 1.0
    segments = hasattr(net, "classifier")
    targets = _targets(segments, batches)

    if hasattr(library, "step_of"):
        step = library.step_of(net, _loss(segments), scale, optimizer, scaler if scaler.is_enabled() else None)

        def run(i: int) -> object:
            batch = batches[i % len(batches)]
            with autocast():
                return step(batch.voxels, features[i % len(batches)], targets[i % len(batches)])

        run.optimizer_state = optimizer.state
        run.graph_bytes = step.graph_bytes
        return run

    loss = _loss(segments)

    def run(i: int) -> object:
        batch, values = batches[i % len(batches)], features[i % len(batches)]
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            y = net(library.tensor(batch.voxels, values))
            y = y if isinstance(y, Tensor) else library.features(y)
            lost = loss(y, targets[i % len(batches)]) * scale
        scaler.scale(lost).backward()
        scaler.step(optimizer)
        scaler.update()
        return lost.detach()

    run.optimizer_state = optimizer.state
    return run


def _targets(segments: bool, batches: list[Batch]) -> list[Tensor]:
    """What losses are given beside outputs."""
    if segments:
        return [batch.labels for batch in batches]
    return [torch.tensor(1 / (ENCODED * len(batch.labels)), device=batch.labels.device) for batch in batches]


def _loss(segments: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """Cross entropy of scores; the sum of squares of an encoder's features over the number of its inputs, in which a row
    of zeros changes nothing: a graph has room for more rows than there are."""
    if not segments:
        return lambda y, part: y.float().square().sum() * part
    return lambda y, labels: nn.functional.cross_entropy(y.float(), labels, ignore_index=-1)
