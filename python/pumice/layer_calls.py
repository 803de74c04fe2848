"""Records calls of layers for `pumice.explain`: input, output, and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from . import _C
from .coords import Coordinates
from .nn import graph as graph_layers
from .nn.convolution import Convolution, sites_of
from .tensor import SparseTensor

# Cycles that a GPU waits before a layer, about half a millisecond: long enough for the host to enqueue it.
_PAUSE = 1_000_000


_GRAPH_LAYERS = (
    graph_layers.GATConv,
    graph_layers.GATv2Conv,
    graph_layers.GCNConv,
    graph_layers.GINConv,
    graph_layers.HGTConv,
    graph_layers.RGATConv,
    graph_layers.RGCNConv,
    graph_layers.SAGEConv,
)


def is_graph_layer(module: torch.nn.Module) -> bool:
    """Whether `module` passes messages over the edges of a graph."""
    return isinstance(module, _GRAPH_LAYERS)


class LayerCall:
    """One call of one layer, whose clock starts when this object is made. `result` is None until `ended` is called."""

    def __init__(self, name: str, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        self.name = name
        self.module = module
        self.arguments = arguments
        self.result: Any = None
        features = _features(arguments[0]) if arguments else None
        if isinstance(features, torch.Tensor):  # numbers of nodes are one for each
            self.rows_in, self.channels_in = features.shape[0], features.shape[-1] if features.dim() > 1 else 0
        else:  # nodes that have none, for each of which the layer has a row
            self.rows_in, self.channels_in = getattr(module, "in_channels_l", 0), 0
            features = next(module.parameters(), torch.empty(0))
        self.dtype = features.dtype
        self.plan = ("", "")  # name and reason
        self.map_ms = _find_map(module, arguments) if isinstance(module, Convolution) else 0.0
        self.ms: Callable[[], float] = lambda: 0.0
        _C.recorded_plans()  # those of convolutions outside of layers
        self._stop = _clock(features)

    def ended(self, result: Any) -> None:
        self.ms = self._stop()
        self.result = result
        plans = _C.recorded_plans()
        if plans and is_graph_layer(self.module):
            self.plan = tuple(" + ".join(dict.fromkeys(texts)) for texts in zip(*plans, strict=True))
        elif plans:
            self.plan = plans[0]

    @property
    def out(self) -> torch.Tensor:
        """The features that came out."""
        return _features(self.result)


class PairCounter:
    """Counts the pairs of maps. The host does not know how many a map on a GPU has, so the same maps are made again
    on the CPU, from copies of the sites."""

    def __init__(self) -> None:
        self._copies: list[tuple[Coordinates, Coordinates]] = []

    def work(self, call: LayerCall) -> tuple[int, int]:
        """(pairs of rows that the call's map joins, multiplications)."""
        channels = call.channels_in * call.out.shape[-1]
        if isinstance(call.module, Convolution):
            pairs = self._pairs(call.module, call.arguments, call.result)
            return pairs, pairs * channels // call.module.groups
        return 0, call.rows_in * channels if isinstance(call.module, torch.nn.Linear) else 0

    def _pairs(self, layer: Convolution, arguments: tuple[Any, ...], result: SparseTensor) -> int:
        x, like = arguments[0], _like(arguments)
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


def _find_map(layer: Convolution, arguments: tuple[Any, ...]) -> float:
    """Finds the map before the layer does, and returns the milliseconds; 0 where the map was there before."""
    x = arguments[0]
    before = len(_C.maps_of(x.coords.sites))
    _wait(x.features)
    begin = time.perf_counter()
    layer.find(x, _like(arguments))
    _wait(x.features)
    spent = 1e3 * (time.perf_counter() - begin)
    return spent if len(_C.maps_of(x.coords.sites)) > before else 0.0


def _clock(features: torch.Tensor) -> Callable[[], Callable[[], float]]:
    """Starts a clock. The function that is returned stops it, and returns one that gives the milliseconds, which a
    GPU knows later."""
    if not features.is_cuda:
        begin = time.perf_counter()

        def stop() -> Callable[[], float]:
            spent = 1e3 * (time.perf_counter() - begin)
            return lambda: spent

        return stop
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(_PAUSE)
    first.record()

    def stop_event() -> Callable[[], float]:
        last.record()
        return lambda: first.elapsed_time(last)

    return stop_event


def _wait(features: torch.Tensor) -> None:
    if features.is_cuda:
        torch.cuda.synchronize(features.device)


def _features(value: Any) -> Any:
    if isinstance(value, dict) and value:
        value = next(iter(value.values()))  # of the first type of nodes
    if isinstance(value, (tuple, list)) and value:
        value = value[0]  # of the first side of a graph
    return value.features if isinstance(value, SparseTensor) else value


def _like(arguments: tuple[Any, ...]) -> Coordinates | None:
    return sites_of(arguments[1]) if len(arguments) > 1 else None
