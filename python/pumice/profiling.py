"""Where the time of a network goes, layer by layer."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import torch

from . import _C
from .coords import Coordinates
from .nn.convolution import Convolution, sites_of
from .tensor import SparseTensor

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
    ms: float  # maps included where the layer makes them
    gflop: float
    share: float | None  # of the fastest possible; None where the device's limits are not known
    plan: str  # dataflow and kernel that ran, as `pumice run --json` names them; "" without a choice
    reason: str  # why the planner took it, in a sentence


class Explanation(list[Layer]):
    """A list of layers that prints as a table."""

    @property
    def ms(self) -> float:
        return sum(layer.ms for layer in self)

    def __str__(self) -> str:
        width = max([5, *(len(layer.name) for layer in self)])
        lines = [
            f"{'layer':<{width}} {'kind':<16}{'rows in':>10}{'rows':>10}{'channels':>12}"
            f"{'pairs':>12}{'ms':>9}{'GFLOP':>9}{'roofline':>10}"
            "  plan"
        ]
        for layer in self:
            share = "" if layer.share is None else f"{100 * layer.share:.0f} %"
            lines.append(
                f"{layer.name:<{width}} {layer.kind:<16}{layer.rows_in:>10}{layer.rows:>10}"
                f"{f'{layer.channels_in}->{layer.channels}':>12}{layer.pairs or '':>12}"
                f"{layer.ms:>9.3f}{layer.gflop:>9.3f}{share:>10}"
                f"{'  ' + layer.plan if layer.plan else ''}"
            )
        lines.append(f"all layers {self.ms:.3f} ms, {sum(layer.gflop for layer in self):.3f} GFLOP")
        return "\n".join(lines)


@torch.no_grad()
def explain(model: torch.nn.Module, x: SparseTensor) -> Explanation:
    """Runs `model(x)` twice (the first time unmeasured, so that kernels are ready; its maps are not
    kept) and says of every layer that is called what it did and how long it took, from the clock on
    the CPU and from events on a GPU, and by which plan. Each layer runs by itself, whose convolutions,
    norms and ReLUs are one in the network itself. What layers have no module for, as adding and joining, is not
    in it. The mode of the model stays as it is; statistics of norms are put back."""
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    model(_fresh(x))
    calls: list[_Call] = []
    handles = []
    _C.record_plans(True)
    try:
        for name, module in model.named_modules():
            if _is_layer(module):
                handles.append(module.register_forward_pre_hook(_started(calls, name)))
                handles.append(module.register_forward_hook(_ended(calls)))
        model(_fresh(x))
    finally:
        _C.record_plans(False)
        for handle in handles:
            handle.remove()
        for name, value in model.named_buffers():
            value.copy_(buffers[name])
    if x.features.is_cuda:
        torch.cuda.synchronize(x.device)
    known = _Counted()
    return Explanation(call.layer(known) for call in calls if call.result is not None)


def _fresh(x: SparseTensor) -> SparseTensor:
    """Without the maps that earlier calls have made."""
    coords = Coordinates(
        x.indices, spatial_shape=x.spatial_shape, batch_size=x.batch_size, stride=x.stride
    )
    return SparseTensor(coords, x.features.detach())


def _is_layer(module: torch.nn.Module) -> bool:
    return isinstance(module, Convolution) or next(module.children(), None) is None


class _Call:
    def __init__(self, name: str, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        self.name = name
        self.module = module
        self.arguments = arguments
        self.result: Any = None
        features = _features(arguments[0])
        self.in_shape = tuple(features.shape)
        self.dtype = features.dtype
        self.plan = ("", "")
        _C.recorded_plans()  # those of convolutions outside of layers
        self.stop = _clock(features)

    def layer(self, known: _Counted) -> Layer:
        ms = self.stop()
        out = _features(self.result)
        rows_in, channels_in = self.in_shape[0], self.in_shape[-1]
        pairs, products, numbers = 0, 0, sum(p.numel() for p in self.module.parameters())
        if isinstance(self.module, Convolution):
            pairs = known.pairs(self.module, self.arguments, self.result)
            products = pairs * channels_in * out.shape[1] // self.module.groups
        elif isinstance(self.module, torch.nn.Linear):
            products = rows_in * channels_in * out.shape[1]
        moved = rows_in * channels_in * self.dtype.itemsize
        moved += out.numel() * out.element_size() + numbers * out.element_size()
        return Layer(
            self.name,
            type(self.module).__name__,
            rows_in,
            out.shape[0],
            channels_in,
            out.shape[-1],
            pairs,
            ms,
            2e-9 * products,
            _share(out, ms, 2 * products, moved),
            *self.plan,
        )


def _started(calls: list[_Call], name: str) -> Callable[..., None]:
    def hook(module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        calls.append(_Call(name, module, arguments))

    return hook


def _ended(calls: list[_Call]) -> Callable[..., None]:
    def hook(module: torch.nn.Module, arguments: tuple[Any, ...], result: Any) -> None:
        call = calls[-1]  # layers do not call layers
        call.stop = call.stop()
        call.result = result
        plans = _C.recorded_plans()
        if plans:
            call.plan = plans[0]

    return hook


def _clock(features: torch.Tensor) -> Callable[[], Any]:
    """Started now; called once it stops, and what that returns gives the milliseconds."""
    if not features.is_cuda:
        begin = time.perf_counter()

        def stop() -> Callable[[], float]:
            spent = 1e3 * (time.perf_counter() - begin)
            return lambda: spent

        return stop
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()

    def stop_event() -> Callable[[], float]:
        last.record()
        return lambda: first.elapsed_time(last)

    return stop_event


def _features(value: Any) -> torch.Tensor:
    return value.features if isinstance(value, SparseTensor) else value


class _Counted:
    """Counts pairs. A GPU alone knows how many a map there has, so the same maps are made again
    on the CPU, from copies of the sites."""

    def __init__(self) -> None:
        self._copies: list[tuple[Coordinates, Coordinates]] = []

    def pairs(self, layer: Convolution, arguments: tuple[Any, ...], result: SparseTensor) -> int:
        x = arguments[0]
        like = sites_of(arguments[1]) if len(arguments) > 1 else None
        if x.coords.device.type == "cpu":
            return layer.find(x, like)[0].pairs
        here = self._copy(x.coords)
        empty = SparseTensor(here, torch.empty(len(here), 0))
        map, out = layer.find(empty, None if like is None else self._copy(like))
        self._remember(result.coords, out)
        return map.pairs

    def _copy(self, coords: Coordinates) -> Coordinates:
        for known, copy in self._copies:
            if known.is_same(coords):
                return copy
        return self._remember(coords, coords.to("cpu"))

    def _remember(self, coords: Coordinates, copy: Coordinates) -> Coordinates:
        if not any(known.is_same(coords) for known, _ in self._copies):
            self._copies.append((coords, copy))
        return copy


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
