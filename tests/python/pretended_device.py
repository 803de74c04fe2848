"""Buckets of compiled models on the CPU: a plan whose room is filled with sites that lie far from all others, and a
graph that runs its work again. Sites that follow from the input count those of the room too, so that outputs on the
sites of the input, and those that know nothing of sites, are what a GPU gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

import pumice
from pumice import _C
from pumice.planned.compiled import CompiledModel
from pumice.planned.outputs import Counted, Output, SitesOfRun
from pumice.planned.recorder import Recorder, Recording

FAR = 10_000


counts: list[tuple[_C.Sites, int]] = []  # of sites whose rows only a device would know
count_of_run = SitesOfRun._count


def pretended_count(self: SitesOfRun, coords: pumice.Coordinates) -> Any:
    counted = count_of_run(self, coords)
    for sites, rows in counts:
        if sites.is_same(coords.sites):
            counted.count.fill_(rows)
    return counted


SitesOfRun._count = pretended_count  # type: ignore[method-assign]


class PretendedPlan:
    def __init__(self, sites: _C.Sites, rows: int, recorder: Any) -> None:
        self.recorder = recorder
        self.batch_size = sites.batch_size
        self.stride = list(sites.stride)
        self.shape = sites.spatial_shape
        self.rows = rows

    def make(self, indices: torch.Tensor, count: torch.Tensor) -> _C.Sites:
        rows = int(count)
        cells = indices.clone()
        cells[rows:] = 0
        more = torch.arange(len(cells) - rows)
        cells[rows:, 1], cells[rows:, 2] = FAR + 8 * (more % 32), 8 * (more // 32)
        shape = self.shape if self.shape is None or min(self.shape) > FAR + 256 else None  # which far sites are not in
        return _C.create_sites(cells, self.stride, shape, self.batch_size, None, None)


    def make_of_points(self, points: torch.Tensor, batch: Any, count: torch.Tensor, size: Any, range: Any) -> Any:
        used = int(count)
        items = None if batch is None else batch[:used].contiguous()
        voxels, row_of = _C.voxel_sites(points[:used].contiguous(), items, size, range, self.shape, self.batch_size, None)
        cells = torch.zeros(self.rows, 4, dtype=torch.int32)
        rows = min(voxels.rows, self.rows)
        if rows < voxels.rows:
            self.recorder.text = f"voxels: rows: {voxels.rows} needed, capacity {self.rows}"
        cells[:rows] = voxels.coordinates()[:rows]
        row_of = torch.where(row_of < rows, row_of, -1)
        sites = self.make(cells, torch.tensor([rows]))
        counts[:] = [*counts[-20:], (sites, rows)]
        return sites, torch.cat([row_of, row_of.new_full((len(points) - used,), -1)])


class PretendedGraph:
    def __init__(self, work: Callable[[], Output]) -> None:
        self.work = work
        self.output = work()

    def replay(self) -> None:
        for held, made in zip(self.output.leaves, self.work().leaves):
            # A graph of a model that has changed since would still be the old one.
            if isinstance(held.values, torch.Tensor) and held.values.shape == made.values.shape:
                held.values.copy_(made.values)
            if isinstance(held.rows, Counted):
                held.rows.indices.copy_(made.rows.indices)
                held.rows.count.copy_(made.rows.count)


class PretendedRecorder(Recorder):
    plan_type = PretendedPlan

    def __init__(self, model: torch.nn.Module, call: Callable[[Any], Any], device: torch.device) -> None:
        self.model, self.call, self.device = model, call, device
        self.packed = {}
        self.text: str | None = None  # of what went wrong
        self.graphs = 0

    def begin(self) -> None:
        pass

    end = settle = begin

    @contextmanager
    def ordered(self) -> Iterator[None]:
        yield

    def wait(self) -> None:
        text, self.text = self.text, None
        if text is not None:
            raise pumice.UserError(text)

    def has_trouble(self) -> bool:
        return self.text is not None

    def handed_out(self, tensor: torch.Tensor, caller: Any) -> torch.Tensor:
        return tensor

    def stream_of_caller(self) -> Any:
        return None

    def bounds(self, sites: Any) -> tuple[list[int], list[int]]:
        return [0] * 3, [63] * 3

    def learn(self, sites: Any, rows: int, low: Any, high: Any, earlier: Any, margin: float = 1, points: int = 0) -> Any:
        plan = self.plan_type(sites, rows, self)
        plan.shape = plan.shape if earlier is None else earlier.shape  # of its own sites it is not known
        return plan

    def record(self, work: Callable[[], Any]) -> Recording:
        self.graphs += 1
        graph: Any = PretendedGraph(work)
        return Recording(graph, graph.output, 100)

    def drop(self, graph: Any) -> None:
        self.graphs -= 1

    def as_in_a_graph(self, gradients: bool = False) -> Any:
        return torch.set_grad_enabled(gradients)

    def refusing_waits(self) -> Any:
        return nullcontext()


class PretendedModel(CompiledModel):
    """As `pumice.compile` makes, with graphs on the CPU."""

    def _records(self, device: torch.device) -> bool:
        return True

    def _new_recorder(self, device: torch.device) -> Recorder:
        return PretendedRecorder(self.model, self._call, device)


def compile(model: torch.nn.Module, **options: Any) -> PretendedModel:
    """`pumice.compile` with its arguments."""
    return PretendedModel(model, pumice.compile(model, **options).options)
