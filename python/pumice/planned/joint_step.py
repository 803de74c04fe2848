"""Compiled steps of several processes that train one network together, each on a device of its own.

NCCL takes a collective into a graph only where all processes record it together and replay it together, and here each
has buckets of its own. So collectives come between two graphs: that of a bucket ends with the gradients, and that of the
update, which all buckets share, begins with their sums. Passes that only learn or record enqueue no collectives.

What all processes do alike is decided by what all know: the update is a loop written by hand until all parameters have
been changed once, and the same guarded update afterwards, eager passes among graphs or not, so that parameters stay equal
bit for bit. That a process exceeded its room goes to all with the gradients, and all raise it in the same call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .calls import EAGER_CALLS, Options
from .data_parallel import Echoes, Processes
from .graph_call import GraphCall
from .guarded import GuardedUpdate
from .labels import Labels
from .recorder import Recording
from .scans import Scan
from .sizes import TooManyVoxels
from .step import CompiledStep
from .step_bucket import StepBucket
from .trained import TrainedState
from .training import Training


class JointStep(CompiledStep):
    """As `CompiledStep`, of a DistributedDataParallel."""

    def __init__(self, processes: Processes, training: Training, options: Options) -> None:
        super().__init__(processes.module, training, options)
        self._processes = processes
        self._update: Recording | None = None
        self._echoes: Echoes | None = None
        self._own_trouble: str | None = None  # of this process, which is raised when all know

    def _step(self, scan: Scan, labels: Labels) -> Tensor:
        self._processes.check()
        refused: _C.UserError | None = None
        try:
            bucket = self._bucket_of(scan, labels)
        except _C.UserError as error:  # which the other processes do not see
            bucket, refused = None, error
        if not self._records(scan.features.device):
            if refused is not None:
                raise refused
            self._check_reduced()
            return self._once(scan, labels, None, eager=True)
        self._recorder_for(scan.features.device)
        if self._echoes is None:
            self._echoes = Echoes(scan.features.device)
        if self._echoes.due():
            self._raise(first=True)
        self._look_for_changes()
        if self._state is None:  # else the parameters are those that were looked at before
            self._check_reduced()
        loss = self._once(scan, labels, bucket, eager=False, refused=refused)
        if self.options.falls_back and self._guarded is not None and self._echoes.drain():
            assert self._recorder is not None and self._training.tallies is not None
            self._settle()
            self._draws.give_back(self._recorder, self._training.tallies.exceeded)
            if self._own_trouble is not None and bucket is not None:
                bucket.drop()
            self._own_trouble = None
            loss = self._once(scan, labels, bucket, eager=True)  # in all processes
        return loss

    def _check_reduced(self) -> None:
        self._processes.check_reduced(self._training.parameters())

    def wait(self) -> None:
        """Waits for the GPU to be done with all steps. All processes call it after the same step.

        Raises:
            UserError: where one of them exceeded its room in a process, or had coordinates out of bounds; in all processes.
        """
        self._raise(first=False)

    def plan(self, *given: Any, **named: Any) -> int:
        """Raises UserError."""
        raise _C.UserError("plan() takes steps, which other processes do not take with it: call it for a model of one process")

    def _record(self, bucket: StepBucket, scan: Scan, labels: Labels) -> None:
        super()._record(bucket, scan, labels)
        self._processes.take_over()

    def _raise(self, first: bool) -> None:
        """What became of all steps so far."""
        known = first or self._own_trouble is not None
        found = [] if self._echoes is None else self._echoes.drain()
        self._settle()
        if not (known or found or self._own_trouble):
            return
        text, self._own_trouble = self._own_trouble, None
        if self._recorder is not None and self._training.tallies is not None:
            self._draws.give_back(self._recorder, self._training.tallies.exceeded)
        who = f"this is process {self._processes.rank} of {self._processes.size}"
        what = text if text is not None else "another process exceeded the room of its bucket, and says of what"
        raise _C.UserError(f"an earlier call of the {self._WHAT} in any process: {what}; {who}")

    def _settle(self) -> None:
        """Waits for this process, and keeps what it would raise until all processes do."""
        if self._recorder is None:
            return
        try:
            self._recorder.wait()
        except _C.UserError as error:
            self._own_trouble = str(error)

    def _once(
        self, scan: Scan, labels: Labels, bucket: StepBucket | None, eager: bool, refused: _C.UserError | None = None
    ) -> Tensor:
        """A step in which this process runs eagerly, where it has to or is told to, or by a plan; or one that it was
        `refused`, which it tells the others."""
        recorder, guarded, processes = self._recorder, self._guarded, self._processes
        planned = None if eager or guarded is None or bucket is None or bucket.calls < EAGER_CALLS else bucket
        if refused is None and recorder is not None and (planned is None or not planned.is_prepared):
            refused = _refused_edges(scan)
        if guarded is None:
            processes.share_buffers()
            loss = self._pass_eagerly(scan, labels, bucket, refused)
            processes.reduce()
            if recorder is not None and bool(processes.trouble()):  # known to all in this call
                self._training.drop_gradients()
                self._raise(first=True)
            processes.hand_out()
            if self._training.update() and recorder is not None:
                self._begin_guarding(scan.features.device)
            return loss
        assert recorder is not None and self._echoes is not None
        planned = None if refused is not None else planned
        if planned is not None and not planned.is_prepared:
            self._settle()  # what waits would raise it in this process alone
            try:
                self._record(planned, scan, labels)
            except TooManyVoxels as error:
                planned, refused = None, error
        recorder.begin()
        with self._draws.noting(recorder):
            guarded.rates.refresh()
            with torch.no_grad():
                guarded.begin()
            processes.share_buffers()
            if planned is not None:
                loss = planned.pass_only(scan, labels)
            else:
                loss = self._pass_eagerly(scan, labels, bucket, refused)
            processes.reduce()
            with torch.no_grad():
                if self._update is not None:
                    self._update.graph.replay()
                else:
                    self._updated(guarded)
                loss = torch.where(processes.trouble() != 0, torch.full_like(loss, float("nan")), loss)
        assert processes.exceeded is not None
        self._echoes.send(processes.exceeded)
        recorder.end()
        for tensor in self._written:
            torch.autograd.graph.increment_version(tensor)
        return loss

    def _pass_eagerly(
        self, scan: Scan, labels: Labels, bucket: StepBucket | None, refused: _C.UserError | None
    ) -> Tensor:
        if refused is None:
            coords, passed = self._passed(scan, scan.input() if bucket is None else scan.fresh(), labels)
            try:
                if bucket is not None:
                    bucket.learn(coords, scan)
                    bucket.calls += 1
                    bucket.has_changed_parameters = True
            except TooManyVoxels as error:
                refused = None if self.options.falls_back else error
            if refused is None:
                with torch.no_grad():
                    self._processes.fill(None)
                return passed.loss
        self._training.drop_gradients()
        self._own_trouble = str(refused)
        device = scan.features.device
        with torch.no_grad():
            self._processes.fill(torch.ones((), device=device))
        return torch.full((), float("nan"), device=device)

    def _updated(self, guarded: GuardedUpdate) -> Tensor:
        self._processes.hand_out()
        trouble = self._processes.trouble()
        guarded.update(trouble, trouble)
        return trouble

    def _begin_guarding(self, device: torch.device) -> None:
        """After the first step that changed the parameters, in all processes alike."""
        recorder, training = self._recorder, self._training
        assert recorder is not None
        self._guarded = guarded = GuardedUpdate(training, device)
        if not self.options.eager:
            with recorder.ordered(), recorder.as_in_a_graph(gradients=True), training.dry(device), torch.no_grad():
                guarded.begin()
                self._processes.hand_out()
                one = torch.ones((), device=device)
                guarded.update(one, one)
            with recorder.as_in_a_graph(gradients=True), torch.no_grad():
                self._update = recorder.record(lambda: self._updated(guarded))
        self._state = TrainedState(training)
        self._written = [*training.parameters(), *training.buffers()]

    def _forget_graphs(self) -> None:
        if self._update is not None:
            assert self._recorder is not None
            self._recorder.drop(self._update.graph)
            self._update = None
        super()._forget_graphs()


def _refused_edges(scan: Any) -> _C.UserError | None:
    """What is wrong with the edges of a call, which would be raised in this process alone where a pass looks at them. Waits."""
    try:
        if isinstance(scan, GraphCall):
            scan.check_edges()
    except _C.UserError as error:
        return error
    return None


def joint_step(ddp: Any, loss: Any, optimizer: Any, scaler: Any, clip_norm: Any, options: Options) -> JointStep:
    """The step of a DistributedDataParallel. Raises UserError for what it does that compiled steps do not."""
    processes = Processes(ddp)
    training = Training(processes.module, loss, optimizer, scaler, clip_norm)
    training.processes = processes
    processes.check_reduced(training.parameters())
    return JointStep(processes, training, options)
