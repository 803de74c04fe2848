"""Reports where the time of a network goes, layer by layer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import _C
from ._checks import kind_of
from .layer_calls import LayerCall, PairCounter, is_graph_layer
from .nn.convolution import Convolution
from .passes import (
    as_it_was, called, check_alone, check_input, check_loss, check_model, device_of, is_of_another_interface, learn, step,
)  # fmt: skip

# Dense f16 TFLOP/s of the tensor cores, f32 TFLOP/s, TB/s, from the vendor's data sheets.
_LIMITS = {
    "H200": (989.0, 67.0, 4.8),
    "H100 80GB HBM3": (989.0, 67.0, 3.35),
    "A100-SXM4-80GB": (312.0, 19.5, 2.04),
    "A100-SXM4-40GB": (312.0, 19.5, 1.56),
}


@dataclasses.dataclass
class Layer:
    """One call of one layer."""

    name: str
    kind: str
    rows_in: int
    rows: int
    channels_in: int
    channels: int
    pairs: int  # of rows, that the layer's map joins; 0 for layers without a map
    map_ms: float  # of finding the map; 0 where another layer had made it
    ms: float  # of the layer itself; the first on a map cuts it to the kernel's tiles as well
    gflop: float
    share: float | None  # of the fastest possible; None where the device's limits are not known
    plan: str  # dataflow and kernel that ran, as `pumice run --json` names them; "" without a choice
    reason: str  # why the planner took it, in a sentence


@dataclasses.dataclass
class Kind:
    """The sum over calls of one kind of layer."""

    calls: int
    ms: float
    map_ms: float
    gflop: float


class Explanation(list[Layer]):
    """A list of layers that prints as a table, with a sum for each kind."""

    @property
    def ms(self) -> float:
        """Milliseconds of all layers, without maps."""
        return sum(layer.ms for layer in self)

    @property
    def map_ms(self) -> float:
        """Milliseconds of finding all maps."""
        return sum(layer.map_ms for layer in self)

    def by_kind(self) -> dict[str, Kind]:
        """The sum of the calls of each kind of layer, the slowest first."""
        kinds = {layer.kind: Kind(0, 0.0, 0.0, 0.0) for layer in self}
        for layer in self:
            of = kinds[layer.kind]
            of.calls += 1
            of.ms += layer.ms
            of.map_ms += layer.map_ms
            of.gflop += layer.gflop
        return dict(sorted(kinds.items(), key=lambda item: -item[1].ms))

    def sorted_by(self, column: str = "ms") -> Explanation:
        """The same calls, those with the largest numbers of a column of `Layer` first."""
        known = [field.name for field in dataclasses.fields(Layer) if field.type in ("int", "float")]
        if column not in known:
            raise _C.UserError(f"column = {column!r}: there are {', '.join(known)}")
        return Explanation(sorted(self, key=lambda layer: -getattr(layer, column)))

    def __str__(self) -> str:
        width = max([5, *(len(layer.name) for layer in self)])
        lines = [
            f"{'layer':<{width}} {'kind':<16}{'rows in':>10}{'rows':>10}{'channels':>12}"
            f"{'pairs':>12}{'map ms':>9}{'ms':>9}{'GFLOP':>9}{'roofline':>10}"
            "  plan"
        ]
        for layer in self:
            share = "" if layer.share is None else f"{100 * layer.share:.0f} %"
            lines.append(
                f"{layer.name:<{width}} {layer.kind:<16}{layer.rows_in:>10}{layer.rows:>10}"
                f"{f'{layer.channels_in}->{layer.channels}':>12}{layer.pairs or '':>12}"
                f"{f'{layer.map_ms:.3f}' if layer.map_ms else '':>9}"
                f"{layer.ms:>9.3f}{layer.gflop:>9.3f}{share:>10}"
                f"{'  ' + layer.plan if layer.plan else ''}"
            )
        gflop = sum(layer.gflop for layer in self)
        lines.append(
            f"all layers {self.ms:.3f} ms, their maps {self.map_ms:.3f} ms, {gflop:.3f} GFLOP"
        )
        for kind, of in self.by_kind().items():
            calls = f"{of.calls} call" if of.calls == 1 else f"{of.calls} calls"
            lines.append(
                f"  {kind:<{max(16, width - 1)}} {calls:>10} {of.ms:>9.3f} ms, maps {of.map_ms:.3f} ms, "
                f"{of.gflop:.3f} GFLOP"
            )
        return "\n".join(lines)


class Candidates(list[dict[str, Any]]):
    """The distinct problems of a pass, each with the plans that could run; prints as tables."""

    def __init__(self, report: str, table: str) -> None:
        super().__init__(json.loads(report))
        self._table = table

    def __str__(self) -> str:
        return self._table


def candidates(
    model: torch.nn.Module,
    x: Any,
    measure: bool = False,
    *,
    loss: Callable[[Any, Any], torch.Tensor] | None = None,
) -> Candidates:
    """Runs `model(x)` once and lists what could run in place of each convolution, and of each product of a sparse
    matrix that graph layers make: its plans, the predicted cost of each in parts of the first one's, and with
    `measure` its time. With `loss` their gradients too.

    Args:
        model: a network of sparse tensors or of graph layers, in the mode that is of interest.
        x: a sparse tensor, those of pumice.compat too, or `models.PointTensor`; of graph layers a tuple (features,
            graph or edge_index, …), which is all that `model` is called with, with numbers of nodes, None or
            dictionaries where its layers take them; or a graph.
        measure: whether to time every candidate, on numbers of its own.
        loss: a scalar from the output and `x`, as that of `tune`: gradients of a training step are listed too.
    Returns:
        A list of dictionaries (problem, rows, calls, name and plan of what runs, reason, is_stored, and candidates:
        name, plan, predicted, measured_s, refusal), which prints as tables.
    Raises:
        UserError: for another input, what the network refuses, a network without convolutions, and with a loss for one
            whose passes wait for other processes.
    Waits:
        For a GPU.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> found = pumice.candidates(nn.SubMConv3d(4, 8, 3), x)
        >>> found[0]["problem"], found[0]["name"] in [one["name"] for one in found[0]["candidates"]]
        ('forward f32 4>8 offsets 27', True)
    """
    check_input("candidates", x)
    check_model(model)
    check_loss(loss)
    if loss is not None:
        check_alone(model)
    with as_it_was(model), torch.set_grad_enabled(loss is not None):
        learn(model, x)

        def run(scan: int) -> None:
            if loss is None:
                called(model, x)
            else:
                step(model, x, x, loss)

        found = _C.explain_network(run, str(device_of(x)), measure)
    return Candidates(*found)


@torch.no_grad()
def explain(model: torch.nn.Module, x: Any) -> Explanation:
    """Runs `model(x)` twice (the first time unmeasured, so that kernels are ready; its maps are not
    kept) and says of every layer that is called what it did, by which plan, and how long it took: by
    the clock on the CPU, by events on a GPU, which is given a pause before each layer so that the
    host's own time does not count.

    Each layer runs by itself, where the network runs a convolution, its norm and its ReLU as one. What
    layers have no module for, as adding and joining, is not in it. The mode of the model stays as it
    is; statistics of norms and the state of random numbers are put back.

    Args:
        model: a network of sparse tensors, or of graph layers, each of which is a layer with all that is in it and
            has a plan for each of its products.
        x: a sparse tensor, or `models.PointTensor`; of graph layers a tuple (features, graph or edge_index, …), which
            is all that `model` is called with, with numbers of nodes, None or dictionaries where its layers take them;
            or a graph.
    Returns:
        A list of layers in the order of their calls, which prints as a table; `by_kind()` sums it up,
        `sorted_by("ms")` puts the slowest first.
    Raises:
        UserError: for another input, and what the network refuses.
    Waits:
        For a GPU, at each layer.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> found = pumice.explain(nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.ReLU()), x)
        >>> [(layer.name, layer.kind, layer.pairs) for layer in found]
        [('0', 'SubMConv3d', 4), ('1', 'ReLU', 0)]
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> found = pumice.explain(nn.graph.SAGEConv(4, 8), (torch.ones(3, 4), edges))
        >>> [(layer.kind, layer.plan.split("/")[0]) for layer in found]
        [('SAGEConv', 'csr')]
    """
    check_input("explain", x)
    check_model(model)
    if is_of_another_interface(x):
        raise _C.UserError(
            f"explain goes from layer to layer of pumice.nn, and got {kind_of(x)}: candidates(model, x, measure=True) "
            "shows the plans of such a network, and their times"
        )
    calls: list[LayerCall] = []
    running: list[LayerCall | None] = []
    handles = []
    with as_it_was(model):
        called(model, x)
        _C.record_plans(True)
        try:
            for name, module in _layers(model, "", set()):
                handles.append(module.register_forward_pre_hook(_started(calls, running, name), with_kwargs=True))
                handles.append(module.register_forward_hook(_ended(running)))
            called(model, x)
        finally:
            _C.record_plans(False)
            for handle in handles:
                handle.remove()
    device = device_of(x)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    counter = PairCounter()
    return Explanation(_layer(call, counter) for call in calls if call.result is not None)


def _layers(module: torch.nn.Module, name: str, seen: set[int]) -> Iterator[tuple[str, torch.nn.Module]]:
    """Those without layers inside, each once."""
    if id(module) in seen:
        return
    seen.add(id(module))
    if isinstance(module, Convolution) or is_graph_layer(module) or next(module.children(), None) is None:
        yield name, module
        return
    for child_name, child in module.named_children():
        yield from _layers(child, f"{name}.{child_name}" if name else child_name, seen)


def _started(calls: list[LayerCall], running: list[LayerCall | None], name: str) -> Callable[..., None]:
    def hook(module: torch.nn.Module, arguments: tuple[Any, ...], given: dict[str, Any]) -> None:
        if running:  # a layer that a layer of a graph has in it, as GINConv
            running.append(None)
            return
        calls.append(LayerCall(name, module, (*arguments, *given.values())))
        running.append(calls[-1])

    return hook


def _ended(running: list[LayerCall | None]) -> Callable[..., None]:
    def hook(module: torch.nn.Module, arguments: tuple[Any, ...], result: Any) -> None:
        call = running.pop()
        if call is not None:
            call.ended(result)

    return hook


def _layer(call: LayerCall, counter: PairCounter) -> Layer:
    out, ms = call.out, call.ms()
    pairs, products = counter.work(call)
    numbers = sum(p.numel() for p in call.module.parameters())
    moved = call.rows_in * call.channels_in * call.dtype.itemsize
    moved += (out.numel() + numbers) * out.element_size()
    return Layer(
        call.name,
        type(call.module).__name__,
        call.rows_in,
        out.shape[0],
        call.channels_in,
        out.shape[-1],
        pairs,
        call.map_ms,
        ms,
        2e-9 * products,
        None if is_graph_layer(call.module) else _share(out, ms, 2 * products, moved),
        *call.plan,
    )


def _share(out: torch.Tensor, ms: float, flop: float, moved: float) -> float | None:
    if not out.is_cuda or ms <= 0:
        return None
    device = torch.cuda.get_device_name(out.device)
    limits = next((known for name, known in _LIMITS.items() if name in device), None)
    if limits is None:
        return None
    tensor, plain, bandwidth = limits
    peak = tensor if out.element_size() == 2 else plain
    return max(flop / (1e9 * peak), moved / (1e9 * bandwidth)) / ms
