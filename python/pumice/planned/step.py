"""Defines what `compile_step` makes: training steps as graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._sites import standing_on
from ..coords import Coordinates
from .accumulate_grad import let_go_of_earlier_passes
from .calls import EAGER_CALLS, Options, Planned
from .draws import Draws
from .graph_call import GraphCall, is_graph_call
from .graph_step_bucket import GraphStepBucket
from .guarded import GuardedUpdate
from .labels import Labels
from .outputs import rows_of_pass, take_apart
from .recorder import Recorder
from .scans import Scan
from .sizes import TooManyVoxels
from .state import check_hooks
from .step_bucket import Expected, PointStepBucket, StepBucket, owner_of
from .trained import TrainedState
from .training import Passed, Training, check_recordable
from .trial import Trial
from .watch import cannot_be_recorded, first_line

_MOST_OVERFLOWS = 64  # of steps that `plan` takes: a scale of 2^64 is halved to 1
_LAST: Any = object()  # labels are the last argument that has no name
_MOST_CHANGES = 4  # of numbers of the optimiser, from one step to the next


class CompiledStep(Planned):
    """A training step as CUDA graphs: see `compile_step`.

    A call takes coords int32 or int64 [N, 1 + D], features, 2-D [N, C], and labels, a sparse tensor and labels, or with `voxelize`
    points [N, 3 or more], features or none, and labels:

        step(coords, features, labels, batch_size=1, spatial_shape=None, stride=None)
        step(x, labels)
        step(points, features, labels, batch=None, batch_size=1)
        step(features of nodes, edges, more, labels, name=more)

    Labels are last, or named (labels=…). They are a tensor, or tuples, lists and dictionaries of tensors: those of N rows in
    every call go with the voxels or points, others have the same shape in every call of a bucket. Forward and loss run under the
    autocast of the caller. It returns the loss, detached, in memory of its own.

    Models on graphs are given what a `CompiledModel` is. Labels go with nodes or edges then; a tensor of classes that is shorter
    than there are nodes, and than all else, is of the first of them, and the others have the loss's `ignore_index`.

    A step beyond the room of its bucket changes nothing: parameters, the optimiser, the scaler, running statistics and
    random numbers stay, and its loss is NaN. So do those after it that were enqueued before somebody raised it: `wait()`
    does, and later calls as soon as the GPU has come to it.

    The learning rates of the optimiser are read in every call, so that schedules work. Other numbers of the optimiser,
    what it keeps (as `load_state_dict` changes it), modules and tensors that are replaced are noticed, and graphs
    recorded anew after one eager step.

    Of a DistributedDataParallel, a step beyond the room of a process changes nothing in any, and its loss is NaN in all.
    All raise that in the same call, 8 steps later, so that their steps still match; `wait()` is called in all after the same
    step. Parameters that have no gradient in a process count as zeros there, and in all where no process has one.

    Args:
        model: as `compile_step` takes it.
        training: the loss, the optimiser, the scaler and the norm, which it has checked.
        options: its other arguments.
    Raises:
        UserError: in calls, for arguments that are none, for what went wrong in an earlier call, and where a module
            cannot be recorded, by its name.
    Waits:
        The first three calls of a bucket, and two after a change; later ones never, but with fallback="eager". On the CPU
        nothing waits. Of a DistributedDataParallel, calls wait for the step 8 calls earlier, and on the CPU for the other
        processes.
    Example:
        >>> net = nn.SubMConv3d(4, 2, 3)
        >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
        >>> step = pumice.compile_step(net, losses.cross_entropy, sgd, clip_norm=1.0)
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> before = step(x, torch.tensor([0, 1]))
        >>> bool(step(x, torch.tensor([0, 1])) < before), int(step.overflows), int(step.exceeded)
        (True, 0, 0)
    """

    _WHAT = "compiled step, which has changed nothing"
    _TRAINS = True

    def __init__(self, model: torch.nn.Module, training: Training, options: Options) -> None:
        super().__init__(model, options)
        self._training = training
        self._state: TrainedState | None = None
        self._guarded: GuardedUpdate | None = None
        self._written: list[Tensor] = []  # what graphs write, which PyTorch does not see
        self._changes = 0  # of numbers of the optimiser, one after another
        self._draws = Draws()

    def __call__(
        self,
        *given: Any,
        labels: Any = _LAST,
        batch_size: int | None = None,
        spatial_shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        batch: Tensor | None = None,
        **named: Any,
    ) -> Tensor:
        """Trains by one step, and returns its loss."""
        scan, labels = self._given(given, labels, batch_size, spatial_shape, stride, batch, named)
        with self._turn():
            return self._step(scan, labels)

    def plan(
        self,
        *given: Any,
        labels: Any = _LAST,
        batch_size: int | None = None,
        spatial_shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        batch: Tensor | None = None,
        **named: Any,
    ) -> int:
        """Learns and records what steps with such scans need, and returns how many bytes that holds. Takes what a call does.
        Steps that are taken for it are taken back: parameters, the optimiser, the scaler, running statistics and random numbers
        are what they were, of which there is a copy meanwhile. Before the first step of an optimiser the graph is given up
        again with what the optimiser has made, so that the first two steps run eagerly all the same.

        Returns:
            The bytes of the bucket's inputs and labels, and what its graph added to the memory that all graphs share; 0 on
            the CPU and for steps that run eagerly.
        Raises:
            UserError: as a call, and where gradients of a scaled loss are not finite in any of some steps.
        Waits:
            For the GPU.
        """
        scan, labels = self._given(given, labels, batch_size, spatial_shape, stride, batch, named)
        with self._turn():
            bucket = self._bucket_of(scan, labels)
            if bucket is None:
                return 0
            self._raise_trouble()
            self._look_for_changes()
            if bucket.is_prepared:
                return bucket.bytes
            calls = bucket.calls
            with Trial(self._training, scan.features.device) as trial:
                self._learn_all(bucket, scan, labels)
                self._record(bucket, scan, labels)
                held = bucket.bytes
            if trial.has_made_anew:
                self._forget_graphs()
                bucket.calls = calls
            return held

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """That of one call. What autocast has converted by its end are weights of before an update."""
        with self._lock:
            try:
                yield
            finally:
                torch.clear_autocast_cache()

    def _learn_all(self, bucket: StepBucket, scan: Scan, labels: Labels) -> None:
        for _ in range(_MOST_OVERFLOWS):
            if bucket.calls >= EAGER_CALLS and bucket.has_changed_parameters:
                return
            self._learning_from(scan, labels, bucket)
        raise _C.UserError(
            f"gradients of the scaled loss were not finite in {_MOST_OVERFLOWS} steps: begin with a smaller init_scale of the scaler"
        )

    @property
    def grad_norm(self) -> Tensor | None:
        """The norm of all gradients in the last step, before they were clipped: a scalar on the device that nobody waited
        for. None without `clip_norm`, and before the first step."""
        tallies = self._training.tallies
        return None if tallies is None or tallies.norm is None else tallies.norm.clone()

    @property
    def overflows(self) -> Tensor | int:
        """How many steps changed no parameter since gradients of the scaled loss were not finite: a whole number on the
        device that nobody waited for; 0 before the first step."""
        tallies = self._training.tallies
        return 0 if tallies is None else tallies.overflows.clone()

    @property
    def exceeded(self) -> Tensor | int:
        """How many steps changed nothing since one of them exceeded the room of its bucket, as `overflows`."""
        tallies = self._training.tallies
        return 0 if tallies is None else tallies.exceeded.clone()

    def wait(self) -> None:
        """Waits for the GPU to be done with all steps.

        Raises:
            UserError: where one of them exceeded its room, or had coordinates out of bounds.
        """
        try:
            super().wait()
        except _C.UserError:
            if self._recorder is not None and self._training.tallies is not None:
                self._draws.give_back(self._recorder, self._training.tallies.exceeded)
            raise

    def _given(
        self,
        given: tuple[Any, ...],
        labels: Any,
        batch_size: int | None,
        spatial_shape: Sequence[int] | None,
        stride: Sequence[int] | None,
        batch: Tensor | None,
        named: dict[str, Any],
    ) -> tuple[Any, Labels]:
        if labels is not _LAST:
            given = (*given, labels)
        if self.options.voxelizer is None and is_graph_call(given[:-1]):
            return self._with_labels(self._scan(given[:-1], batch_size, spatial_shape, stride, batch, named), given[-1])
        if self.options.voxelizer is None and is_graph_call(given):
            raise _C.UserError("a compiled step was given nodes and edges alone: give labels after them, or as labels=…")
        if len(given) not in (2, 3):
            wanted = "coords, features and labels, or a sparse tensor and labels"
            if self.options.voxelizer is not None:
                wanted = "points and labels, or points, features and labels"
            raise _C.UserError(f"a compiled step was given {len(given)} arguments: give {wanted}")
        return self._with_labels(self._scan(given[:-1], batch_size, spatial_shape, stride, batch, named), given[-1])

    def _with_labels(self, scan: Any, labels: Any) -> tuple[Any, Labels]:
        return scan, Labels.of(labels, scan, self._seen, self._training.loss.ignore_index)

    def _step(self, scan: Scan, labels: Labels) -> Tensor:
        bucket = self._bucket_of(scan, labels)
        self._raise_trouble()
        if bucket is None:
            self._raise_before_eager_step()
            return self._by_hand(scan, labels)
        self._look_for_changes()
        try:
            if bucket.calls < EAGER_CALLS or not bucket.has_changed_parameters:
                self._raise_before_eager_step()
                return self._learning_from(scan, labels, bucket)
            return self._by_plan(bucket, scan, labels)
        except TooManyVoxels:
            self._training.drop_gradients()
            if not self.options.falls_back:
                raise
            return self._by_hand(scan, labels)

    def _raise_before_eager_step(self) -> None:
        """No flag guards the update of such a step: waits, and raises what went wrong in those that were enqueued before."""
        if self._guarded is not None:
            self.wait()

    def _bucket_of(self, scan: Scan, labels: Labels) -> StepBucket | None:
        return self._bucket_for(scan, labels.key, self._new_bucket) if labels.is_clear else None

    def _new_bucket(self, recorder: Recorder, capacity: int, scan: Any) -> StepBucket:
        if isinstance(scan, GraphCall):
            return GraphStepBucket(recorder, capacity, scan, self._training)
        if self.options.voxelizer is None:
            return StepBucket(recorder, capacity, scan, self._training)
        bucket = PointStepBucket(recorder, capacity, scan, self._training)
        bucket.max_voxels = self.options.max_voxels
        return bucket

    def _new_recorder(self, device: torch.device) -> Recorder:
        check_recordable(self._training.optimizer)
        return super()._new_recorder(device)

    def _passed(self, scan: Any, x: Any, labels: Labels) -> tuple[Coordinates, Passed]:
        coords = scan.coords_of(x)
        if isinstance(scan, GraphCall):  # before running statistics change
            scan.check_edges()
        if self._is_at_points and not self._seen_outputs:
            with self._training.dry(scan.features.device), torch.no_grad(), standing_on(coords):
                self._call(x)  # which tells what rows of the output follow

        def run() -> Any:
            with standing_on(coords):
                return self._call(x)

        passed = self._training.passed(run, labels.given, None, lambda: standing_on(coords))
        self._seen.keep(labels.sightings)
        if isinstance(scan, GraphCall):
            self._seen.keep(scan.sightings)
        return coords, passed

    def _by_hand(self, scan: Scan, labels: Labels) -> Tensor:
        """A step as a loop written by hand does it."""
        loss = self._passed(scan, scan.input(), labels)[1].loss
        self._training.update()
        return loss

    def _learning_from(self, scan: Scan, labels: Labels, bucket: StepBucket) -> Tensor:
        # Of a sparse tensor that was given, other maps may be known than this model's.
        coords, passed = self._passed(scan, scan.fresh(), labels)
        bucket.learn(coords, scan)
        bucket.calls += 1
        bucket.has_changed_parameters |= self._training.update()
        return passed.loss

    def _expected(self, scan: Scan, labels: Labels, bucket: StepBucket) -> Expected:
        """Of an eager pass that changes nothing, from which the bucket learns."""
        with self._training.dry(scan.features.device):
            coords, passed = self._passed(scan, scan.fresh(), labels)
            bucket.learn(coords, scan)
            gradients = [parameter.grad for parameter in self._training.parameters()]
        return Expected(take_apart(passed.output, rows_of_pass(scan, coords)), passed.loss, gradients)

    def _by_plan(self, bucket: StepBucket, scan: Scan, labels: Labels) -> Tensor:
        if not bucket.is_prepared:
            self._record(bucket, scan, labels)
        assert self._guarded is not None and self._recorder is not None
        with self._draws.noting(self._recorder):
            loss = bucket.step(scan, labels, self._guarded)
        for tensor in self._written:
            torch.autograd.graph.increment_version(tensor)
        if self.options.falls_back:
            try:
                self.wait()
            except _C.UserError:
                loss = self._learning_from(scan, labels, bucket)
                bucket.drop()
                return loss
        return loss

    def _record(self, bucket: StepBucket, scan: Scan, labels: Labels) -> None:
        check_hooks(self.model)
        expected = self._expected(scan, labels, bucket)  # this very scan has room in any case
        held = let_go_of_earlier_passes(self._training.parameters())
        if held:
            owner, name = owner_of(self.model, held[0])
            raise cannot_be_recorded(
                self.model, owner, f"a pass made before is referred to, which its {name} led to: let go of its output and its loss"
            )
        if self._guarded is None:
            self._guarded = GuardedUpdate(self._training, scan.features.device)
        bucket.get_ready(scan, labels, expected, self._guarded, waits=self.options.eager)
        if not self.options.eager:
            try:
                bucket.record_step(self._guarded)
            except torch.cuda.OutOfMemoryError:
                bucket.drop()
                raise
            except (_C.Error, ValueError, RuntimeError) as error:
                bucket.drop()  # is tried again, and does not run without a graph from here on
                raise cannot_be_recorded(self.model, None, first_line(error)) from error
        if self._state is None:
            self._state = TrainedState(self._training)
            self._written = [*self._training.parameters(), *self._training.buffers()]
        for dropped in self._buckets.shrink():
            dropped.drop()

    def _look_for_changes(self) -> None:
        """Gives up all graphs where what they train is another, before they write into it."""
        if self._state is None:
            return
        if self._state.holds():
            self._changes = 0
            return
        self._changes += 1
        self._forget_graphs()
        if self._changes >= _MOST_CHANGES:
            self._changes = 0
            raise _C.UserError(
                f"what is trained has changed {_MOST_CHANGES} times, each time in the step after a recording, and graphs are "
                "recorded anew after every change: a schedule may change learning rates alone (OneCycleLR and CyclicLR "
                "with cycle_momentum=False)"
            )

    def _forget_graphs(self) -> None:
        self._state = self._guarded = None
        super()._forget_graphs()
        for bucket in self._buckets:  # the optimiser may have to make what it keeps
            bucket.has_changed_parameters = False
