"""One size of scans in training: static memory for voxels and labels, and the graph of a whole step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _C
from .._sites import standing_on
from ..ops.counted_functions import counting
from .bucket import Bucket
from .guarded import GuardedUpdate
from .labels import Labels, RoomForLabels
from .outputs import Output, SitesOfRun, take_apart
from .point_bucket import PointBucket
from .recorder import Recorder
from .rows import disagreement, disagreement_of_gradients, has_strange_rows, spoiling
from .scans import Scan
from .tails import rows_of, with_tails
from .training import Passed, Training
from .watch import cannot_be_recorded, named_if_it_fails


class Expected(NamedTuple):
    """What the model gave eagerly for the voxels of a bucket that gets ready."""

    output: Output
    loss: Tensor
    gradients: list[Tensor | None]


class StepBucket(Bucket):
    """A bucket whose graph holds maps, the pass there, the loss, the pass back, and the update."""

    def __init__(self, recorder: Recorder, capacity: int, scan: Scan, training: Training) -> None:
        super().__init__(recorder, capacity, scan)
        self._training = training
        self._room: RoomForLabels | None = None
        self._made: Tensor | None = None  # the loss, as the graph writes it
        self._ready = False
        self.has_changed_parameters = False  # so that the optimiser has made all that it keeps

    @property
    def bytes(self) -> int:
        """Of the static inputs, and what recording the graph added to the shared memory."""
        return super().bytes + (0 if self._room is None else self._room.bytes)

    @property
    def is_prepared(self) -> bool:
        """Whether a step by the plan was tried, and gave what the model does."""
        return self._ready

    def get_ready(self, scan: Scan, labels: Labels, expected: Expected, guarded: GuardedUpdate, waits: bool) -> None:
        """`Bucket.prepare`, of a step. It changes nothing that is trained. Waits."""
        recorder, model = self.recorder, self.recorder.model
        rows = scan.rows
        with recorder.ordered(), recorder.as_in_a_graph(gradients=True), self._training.dry(recorder.device):
            self._fill_all(scan, labels)
            self._spoil(rows)
            sites, _ = named_if_it_fails(model, self._passed)
            self._learn_again(sites.coords)
            module, different = self._with_strange_rows(expected, rows, labels.doubt)
            if different is None:
                nothing_changes = torch.ones((), device=recorder.device)

                def whole() -> tuple[SitesOfRun, Tensor, Tensor]:
                    with nullcontext() if waits else recorder.refusing_waits():
                        return self._whole(guarded, lambda: nothing_changes)

                sites, loss, _ = named_if_it_fails(model, whole)
                self._learn_again(sites.coords)
                different = _other_loss(expected, loss, sites, labels.doubt)
            self._spare()
        if different is not None:
            raise cannot_be_recorded(model, module, different)
        self._ready = True

    def record_step(self, guarded: GuardedUpdate) -> None:
        """Records a whole step as a graph. Waits."""
        recorder = self.recorder
        whole = self._gradients_only if self._training.processes is not None else lambda: self._whole(guarded, recorder.trouble)[2]
        with recorder.as_in_a_graph(gradients=True):
            recording = recorder.record(whole)
        self._graph, self._made, self._graph_bytes = recording

    def step(self, scan: Scan, labels: Labels, guarded: GuardedUpdate) -> Tensor:
        """The loss of a step by the graph, or by the plan where none was recorded."""
        recorder = self.recorder
        if self._graph is not None:
            assert self._made is not None
            recorder.begin()
            self._fill_all(scan, labels)
            guarded.rates.refresh()
            self._graph.replay()
            loss = self._made.clone()
            recorder.end()
            return loss
        caller = recorder.stream_of_caller()
        with recorder.ordered():
            self._fill_all(scan, labels)
            guarded.rates.refresh()
            with recorder.as_in_a_graph(gradients=True):
                return recorder.handed_out(self._whole(guarded, recorder.trouble)[2], caller)

    def pass_only(self, scan: Scan, labels: Labels) -> Tensor:
        """The loss of a pass there and back by the graph, or by the plan, whose gradients are what the processes send each
        other."""
        recorder = self.recorder
        if self._graph is not None:
            assert self._made is not None
            self._fill_all(scan, labels)
            self._graph.replay()
            return self._made
        caller = recorder.stream_of_caller()
        with recorder.ordered():
            self._fill_all(scan, labels)
            with recorder.as_in_a_graph(gradients=True):
                return recorder.handed_out(self._gradients_only(), caller)

    def drop(self) -> None:
        """Gives up the graph."""
        super().drop()
        self._made, self._ready = None, False

    def _fill_all(self, scan: Scan, labels: Labels) -> None:
        with torch.no_grad():
            self._fill(scan)
            if self._room is None:
                self._room = RoomForLabels(labels, self.row_rooms, self._training.loss.ignore_index)
            self._room.fill(labels)

    def _begun(self) -> tuple[SitesOfRun, Callable[[], Any]]:
        """As of a model; modules of torch.nn with parameters are told how many rows are in use, for their gradients."""
        sites, run = super()._begun()

        def counted() -> Any:
            with self._around(sites):
                return run()

        return sites, counted

    @contextmanager
    def _around(self, sites: SitesOfRun) -> Iterator[None]:
        """In it modules of torch.nn count rows, and sites that the model makes are those of the call."""
        with standing_on(sites.coords), counting(lambda tensor: rows_of(tensor, sites)):
            yield

    def _passed_from(self, sites: SitesOfRun, run: Callable[[], Any]) -> Passed:
        assert self._room is not None
        return self._training.passed(run, self._room.labels, sites, lambda: self._around(sites))

    def _passed(self) -> tuple[SitesOfRun, Passed]:
        """A pass there and back by the plan, and its sites."""
        sites, run = self._begun()
        return sites, self._passed_from(sites, run)

    def _gradients_only(self) -> Tensor:
        assert self._training.processes is not None
        loss = self._passed()[1].loss
        with torch.no_grad():
            self._training.processes.fill(self.recorder.trouble())
        return loss

    def _whole(self, guarded: GuardedUpdate, trouble: Callable[[], Tensor]) -> tuple[SitesOfRun, Tensor, Tensor]:
        """A step: its sites, its loss, and the loss with what `trouble` there was."""
        guarded.begin()
        sites, passed = self._passed()
        loss = passed.loss
        del passed
        processes = self._training.processes
        with torch.no_grad():
            if processes is not None:  # as the two graphs do it, but that nothing is sent
                processes.fill(trouble())
                processes.hand_out()
            return sites, loss, guarded.update(loss, trouble())

    def _with_strange_rows(
        self, expected: Expected, rows: int, doubt: str
    ) -> tuple[torch.nn.Module | None, str | None]:
        """The first module whose rows in use are no numbers in a pass in which all others are NaN, whatever module made
        them, or that has a parameter of such a gradient; and how the pass differs from what was `expected`."""
        model = self.recorder.model
        members = {id(module) for module in model.modules()}
        found: list[torch.nn.Module] = []
        running: list[SitesOfRun] = []
        spoil = spoiling(model, rows)

        def look(module: torch.nn.Module, _: Any, output: Any) -> Any:
            if id(module) not in members:
                return None
            try:
                leaves = take_apart(output, running[0]).leaves
            except _C.UserError:  # something of the model's own, which is no output
                return None
            if not found and has_strange_rows(leaves, rows):
                found.append(module)
            return with_tails(output, running[0], spoil)

        sites, run = self._begun()
        running.append(sites)
        handle = torch.nn.modules.module.register_module_forward_hook(look)
        try:
            passed = self._passed_from(sites, run)
        finally:
            handle.remove()
        return self._difference(expected, passed, sites, rows, doubt, found[0] if found else None)

    def _difference(
        self, expected: Expected, passed: Passed, sites: Any, rows: int, doubt: str, found: torch.nn.Module | None = None
    ) -> tuple[torch.nn.Module | None, str | None]:
        """How a pass by the plan differs from what was `expected`, and the module: `found`, where its output does, else that of
        a parameter whose gradient does; (None, None) where nothing does. Waits."""
        with torch.no_grad():
            different = disagreement(expected.output, take_apart(passed.output, sites), rows)
            if different is not None:
                return found, different
            different = _other_loss(expected, passed.loss, sites, doubt)
            if different is not None:
                return None, different
            parameters = self._training.parameters()
            at, different = disagreement_of_gradients(expected.gradients, [one.grad for one in parameters])
        if different is None:
            return None, None
        owner, name = owner_of(self.recorder.model, parameters[at])
        return owner, f"the gradient of its {name} {different}"


class PointStepBucket(StepBucket, PointBucket):
    """One whose calls are given points, and labels that go with them."""


def _other_loss(expected: Expected, loss: Tensor, sites: SitesOfRun, doubt: str) -> str | None:
    one, other = (take_apart(value, sites) for value in (expected.loss, loss))
    different = disagreement(one, other, 0)
    return None if different is None else f"the loss is another: {different}{doubt}"


def owner_of(model: torch.nn.Module, parameter: Tensor) -> tuple[torch.nn.Module | None, str]:
    """The module of `model` that has a parameter, and its name there; None where none has."""
    for module in model.modules():
        for name, own in module.named_parameters(recurse=False):
            if own is parameter:
                return module, name
    return None, "parameter"
