"""One size of scans: static memory with room for so many voxels, what was learned of the model there, and the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._sites import standing_on
from ..coords import Coordinates
from ..nn.kept import frozen_for
from .outputs import Output, SitesOfRun, hand_out, places_of_whole, take_apart, whole_at
from .recorder import Recorder
from .rows import disagreement, first_with_strange_rows, is_in_full
from .scans import Grid, Kind, Scan
from .watch import cannot_be_recorded, named_if_it_fails


class Bucket:
    """Static inputs [capacity, …], a plan of sites and maps, and a graph."""

    _features: Tensor

    def __init__(self, recorder: Recorder, capacity: int, scan: Scan) -> None:
        self.recorder = recorder
        self.capacity = capacity
        self.calls = 0
        self.plan: _C.MapPlan | None = None
        self.kind: Kind = scan.kind
        self.grid: Grid = scan.grid
        self._seen: tuple[list[int], list[int]] | None = None  # bounds of the scans that were learned
        self._indices: Tensor | None = None
        self._count: Tensor | None = None  # int64 [1], of the rows in use
        self._graph: torch.cuda.CUDAGraph | None = None
        self._output: Output | None = None
        self._whole_leaves: list[int] = []  # places of outputs that have rows of their own
        self._read: list[Any] = []
        self._graph_bytes = 0

    @property
    def bytes(self) -> int:
        """Of the static inputs, and what recording the graph added to the shared memory."""
        return sum(t.numel() * t.element_size() for t in self._static()) + self._graph_bytes

    def _static(self) -> list[Tensor]:
        return [] if self._indices is None or self._count is None else [self._indices, self._features, self._count]

    @property
    def row_rooms(self) -> list[int]:
        """Room for what goes with the rows of a call, by its sizes."""
        return [self.capacity]

    @property
    def is_prepared(self) -> bool:
        """Whether the plan was run before, and gave what the model does."""
        return self._output is not None

    @property
    def is_recorded(self) -> bool:
        """Whether there is a graph."""
        return self._graph is not None

    def learn(self, coords: Coordinates, scan: Scan) -> None:
        """Learns from what an eager pass asked of the maps of `coords`, the sites of `scan`. Waits."""
        low, high = self.recorder.bounds(coords.sites)
        if self._seen is not None:
            low, high = list(map(min, low, self._seen[0])), list(map(max, high, self._seen[1]))
        self._seen = low, high
        self._learn(coords.sites)

    def _learn(self, sites: _C.Sites) -> None:
        low, high = self._bounds()
        self.plan = self.recorder.learn(sites, self.capacity, low, high, self.plan)

    def _learn_again(self, coords: Coordinates) -> None:
        self._learn(coords.sites)

    def _bounds(self) -> tuple[list[int], list[int]]:
        assert self._seen is not None
        return wide_bounds(self._seen, self.grid.spatial_shape)

    def prepare(
        self, scan: Scan, expected: Output, waits: bool, few: tuple[Scan, Output] | None = None
    ) -> None:
        """Fills the static memory, and runs the plan until it holds what layers of this room ask for. Raises
        UserError, naming the module, for what waits, unless `waits`, and for a model that gives something else
        than what was `expected` of these voxels, which it did eagerly, or of a `few` of them. Waits."""
        recorder = self.recorder
        rows = scan.rows
        in_full = is_in_full(recorder.model, scan.features)
        self._whole_leaves = places_of_whole(expected)
        with recorder.ordered(), recorder.as_in_a_graph(), self._frozen():
            self._fill(scan)
            self._spoil(rows)

            def run() -> tuple[Coordinates, Output]:
                with nullcontext() if waits else recorder.refusing_waits():
                    return self._run()

            self._learn_again(named_if_it_fails(recorder.model, self._run)[0])
            # Layers do not write rows past the count, where a mean over zeros is off by little. Before the last run, which
            # is what will be recorded.
            module, watched = first_with_strange_rows(recorder.model, self._begun, expected, rows)
            if watched is None:
                watched = self._disagreement_of(few, in_full)
                self._fill(scan)
                self._spoil(rows)
            coords, output = named_if_it_fails(recorder.model, run)
            self._learn_again(coords)
            self._spare()
            different = watched or disagreement(expected, output, rows, in_full)
            if different is not None:
                raise cannot_be_recorded(recorder.model, module, different)
        self._output = output

    def _disagreement_of(self, few: tuple[Scan, Output] | None, in_full: bool) -> str | None:
        """What depends on the number of rows, and shows little where most of the room is in use."""
        if few is None:
            return None
        scan, expected = few
        self._fill(scan)
        self._spoil(scan.rows)
        return disagreement(expected, self._run()[1], scan.rows, in_full)

    def _spoil(self, rows: int) -> None:
        """Nothing may come from rows beyond the count, which hold those of earlier scans."""
        self._features[rows:] = float("nan")

    def _spare(self) -> None:
        """What comes next is no test."""

    def _fill(self, scan: Scan) -> None:
        rows = scan.rows
        if self._indices is None:
            features = scan.features
            self._indices = torch.zeros(
                (self.capacity, 1 + self.grid.dimension), dtype=torch.int32, device=features.device
            )
            self._features = features.new_zeros((self.capacity, features.shape[1]))
            self._count = torch.zeros(1, dtype=torch.int64, device=features.device)
        assert self._count is not None
        self._indices[:rows].copy_(scan.indices, non_blocking=True)
        self._features[:rows].copy_(scan.features, non_blocking=True)
        self._count.fill_(rows)

    def record(self) -> None:
        """Records sites, maps and layers as a graph. Waits."""
        with self.recorder.as_in_a_graph(), self._frozen():
            recording = self.recorder.record(lambda: self._run()[1])
        self._graph, self._output, self._graph_bytes = recording

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        read: list[Any] = []
        with frozen_for(self.recorder.model, self.recorder.packed, read):
            yield
        self._read = [*read, *self.recorder.packed.values()]

    def _begun(self) -> tuple[SitesOfRun, Callable[[], Any]]:
        """The sites of a run by the plan, and the run."""
        assert self.plan is not None
        coords = Coordinates._of(self.plan.make(self._indices, self._count), self._indices)
        coords._version = None  # each scan is written into them

        def run() -> Any:
            with standing_on(coords):
                return self.recorder.call(self.kind.on(coords, self._indices, self._features))

        return SitesOfRun(coords, self.grid), run

    def _run(self) -> tuple[Coordinates, Output]:
        sites, run = self._begun()
        return sites.coords, whole_at(take_apart(run(), sites), self._whole_leaves)

    def run(self, scan: Scan) -> Any:
        """What the model returns for the voxels, by the graph, or by the plan where none was recorded."""
        recorder = self.recorder
        if self._graph is not None:
            assert self._output is not None
            recorder.begin()
            self._fill(scan)
            self._graph.replay()
            made = hand_out(self._output, scan, _copied, recorder.wait)
            recorder.end()
            return made
        caller = recorder.stream_of_caller()
        with recorder.ordered():
            self._fill(scan)
            with recorder.as_in_a_graph(), self._frozen():
                _, output = self._run()
            return hand_out(output, scan, lambda t, rows: recorder.handed_out(_copied(t, rows), caller), recorder.wait)

    def drop(self) -> None:
        """Gives up the graph."""
        if self._graph is not None:
            self.recorder.drop(self._graph)
        self._graph = self._output = None
        self._read, self._graph_bytes = [], 0


def _copied(tensor: Tensor, rows: int | None) -> Tensor:
    return tensor.clone() if rows is None else tensor[:rows].clone()


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
