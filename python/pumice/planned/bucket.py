"""One size of scans: static memory with room for so many voxels, what was learned of the model there, and the graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from .. import _C
from ..coords import Coordinates
from ..nn.kept import frozen_for
from .outputs import Output, SitesOfRun, hand_out, take_apart
from .scans import Grid, Kind, Scan

MARGIN = 1.25  # room of sets and maps that follow from the input, times what the learned scans had in proportion


class Recorder:
    """What the buckets of a model share: its stream, the memory of graphs, packed weights, and how it is called."""

    def __init__(self, model: torch.nn.Module, call: Any, device: torch.device) -> None:
        self.model = model
        self.call = call  # (a sparse tensor of any kind) -> what the model returns
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.packed: dict[Any, Any] = {}
        self._pool: Any = None
        self._graphs = 0

    @contextmanager
    def ordered(self) -> Iterator[None]:
        """Work on the stream of graphs, after what the caller's holds and before what it gets next."""
        caller = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(caller)
        try:
            with torch.cuda.stream(self.stream):
                yield
        finally:
            caller.wait_stream(self.stream)

    def wait(self) -> None:
        """Waits for all graphs, and raises what went wrong in one of them."""
        with torch.cuda.stream(self.stream):
            _C.wait(str(self.device))

    @contextmanager
    def recording(self, graph: torch.cuda.CUDAGraph) -> Iterator[None]:
        """Work in it becomes `graph`, whose memory all graphs share: only one runs at a time."""
        if self._graphs == 0:  # PyTorch gives up a pool with its last graph
            self._pool = torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=self._pool, stream=self.stream, capture_error_mode="thread_local"):
            yield
        self._graphs += 1

    def give_back(self) -> None:
        """A graph is gone."""
        self._graphs -= 1


@contextmanager
def as_in_a_graph() -> Iterator[None]:
    """Without gradients, and without autocast's memory of weights, which a graph must not read later."""
    if torch.is_autocast_enabled("cuda"):
        with torch.no_grad(), torch.autocast("cuda", torch.get_autocast_dtype("cuda"), cache_enabled=False):
            yield
    else:
        with torch.no_grad():
            yield


@contextmanager
def refusing_waits() -> Iterator[None]:
    """Raises UserError or RuntimeError where the host would wait for the device, for Pumice on this thread and for
    PyTorch on all: a recording that fails half way would leave PyTorch's allocator in disorder."""
    before = torch.cuda.get_sync_debug_mode()
    refused = _C.RefusedWaits()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
        del refused


class Bucket:
    """Static inputs [capacity, …], a plan of sites and maps, and a graph."""

    def __init__(self, recorder: Recorder, capacity: int, scan: Scan) -> None:
        self.recorder = recorder
        self.capacity = capacity
        self.calls = 0
        self.plan: _C.MapPlan | None = None
        self.kind: Kind = scan.kind
        self.grid: Grid = scan.grid
        self._seen: tuple[list[int], list[int]] | None = None  # bounds of the scans that were learned
        self._indices: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._output: Output | None = None
        self._read: list[Any] = []
        self._graph_bytes = 0

    @property
    def bytes(self) -> int:
        """Of the static inputs, and what recording the graph added to the shared memory."""
        held = 0
        if self._indices is not None:
            held = sum(t.numel() * t.element_size() for t in (self._indices, self._features, self._count))
        return held + self._graph_bytes

    @property
    def is_prepared(self) -> bool:
        """Whether the plan was run before."""
        return self._indices is not None

    @property
    def is_recorded(self) -> bool:
        """Whether there is a graph."""
        return self._graph is not None

    def learn(self, coords: Coordinates) -> None:
        """Learns from what an eager pass asked of the maps of `coords`. Waits."""
        low, high = coords.sites.bounds
        if self._seen is not None:
            low, high = list(map(min, low, self._seen[0])), list(map(max, high, self._seen[1]))
        self._seen = low, high
        self._learn(coords.sites)

    def _learn(self, sites: _C.Sites) -> None:
        assert self._seen is not None
        low, high = wide_bounds(self._seen, self.grid.spatial_shape)
        self.plan = _C.learn_map_plan(sites, self.capacity, low, high, MARGIN, self.plan)

    def prepare(self, scan: Scan, waits: bool) -> None:
        """Fills the static memory, and runs the plan until it holds what layers of this room ask for. Raises
        what `refusing_waits` does for what waits, unless `waits`."""
        with self.recorder.ordered(), as_in_a_graph(), self._frozen():
            self._fill(scan)
            self._learn(self._run()[0].sites)
            with nullcontext() if waits else refusing_waits():
                coords, _ = self._run()
            self._learn(coords.sites)

    def _fill(self, scan: Scan) -> None:
        rows = scan.indices.shape[0]
        if self._indices is None:
            features = scan.features
            self._indices = torch.zeros(
                (self.capacity, 1 + self.grid.dimension), dtype=torch.int32, device=features.device
            )
            self._features = features.new_zeros((self.capacity, features.shape[1]))
            self._count = torch.zeros(1, dtype=torch.int64, device=features.device)
        self._indices[:rows].copy_(scan.indices, non_blocking=True)  # type: ignore[index]
        self._features[:rows].copy_(scan.features, non_blocking=True)
        self._count.fill_(rows)

    def record(self) -> None:
        """Records sites, maps and layers as a graph."""
        recorder = self.recorder
        graph = torch.cuda.CUDAGraph()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved(recorder.device)
        with as_in_a_graph(), self._frozen():
            with recorder.recording(graph):
                _, output = self._run()
        self._graph, self._output = graph, output
        self._graph_bytes = max(0, torch.cuda.memory_reserved(recorder.device) - before)

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        read: list[Any] = []
        with frozen_for(self.recorder.model, self.recorder.packed, read):
            yield
        self._read = [*read, *self.recorder.packed.values()]

    def _run(self) -> tuple[Coordinates, Output]:
        assert self.plan is not None
        coords = Coordinates._of(self.plan.make(self._indices, self._count))
        output = self.recorder.call(self.kind.on(coords, self._indices, self._features))
        return coords, take_apart(output, SitesOfRun(coords, self.grid))

    def run(self, scan: Scan) -> Any:
        """What the model returns for the voxels, by the graph, or by the plan where none was recorded."""
        recorder = self.recorder
        caller = torch.cuda.current_stream(recorder.device)

        def copy(tensor: Tensor, rows: int | None) -> Tensor:
            made = (tensor if rows is None else tensor[:rows]).clone()
            made.record_stream(caller)  # its memory is of the stream of graphs
            return made

        with recorder.ordered():
            self._fill(scan)
            if self._graph is not None:
                self._graph.replay()
                output = self._output
            else:
                with as_in_a_graph(), self._frozen():
                    _, output = self._run()
            assert output is not None
            return hand_out(output, scan, copy, recorder.wait)

    def drop(self) -> None:
        """Gives up the graph."""
        if self._graph is None:
            return
        self._graph.reset()
        self._graph = self._output = None
        self._read, self._graph_bytes = [], 0
        self.recorder.give_back()


def wide_bounds(
    bounds: tuple[list[int], list[int]], spatial_shape: tuple[int, ...] | None
) -> tuple[list[int], list[int]]:
    """Where later scans may lie: the grid where one is declared, else the bounds of the first scan, wider by half
    their extent on either side."""
    if spatial_shape is not None:
        return [0] * len(spatial_shape), [extent - 1 for extent in spatial_shape]
    low, high = bounds
    more = [(most - least) // 2 + 1 for least, most in zip(low, high)]
    limit = 2**31 - 1
    return (
        [max(least - by, -limit - 1) for least, by in zip(low, more)],
        [min(most + by, limit) for most, by in zip(high, more)],
    )
