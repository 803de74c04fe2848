"""Buckets of compiled steps on the CPU: as in pretended_device.py, with rows that only a count says are in use. Norms,
dense layers and losses count them; convolutions, which here know nothing of counts, are handed zeros past them; and what
all of these leave there is NaN, as memory may be that nobody has written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from pretended_device import PretendedPlan, PretendedRecorder
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

import pumice
from pumice import _C, losses, nn, ops
from pumice.compat.spconv.pytorch.convolution import SparseConvolution
from pumice.coords import Coordinates
from pumice.nn import normalization as norms
from pumice.ops import counted, counted_functions
from pumice.ops import normalization as norm_operators
from pumice.planned.joint_step import JointStep
from pumice.planned.scans import kind_for
from pumice.planned.recorder import Recorder, Recording
from pumice.planned.step import CompiledStep

_CONVOLUTIONS = (nn.Convolution, SparseConvolution)
_COUNTING = (nn.BatchNorm, nn.LayerNorm, nn.Linear)
_running: list[tuple[_C.Sites, torch.Tensor]] = []  # sites with room for more rows, and how many are in use


def count_of(coords: Any) -> torch.Tensor | None:
    """How many rows of a run by a plan are in use; None of other sites."""
    if isinstance(coords, Coordinates) and coords._sites is not None:
        for sites, count in _running:
            if coords._sites.is_same(sites):
                return count
    return None


def use_counts(patch: pytest.MonkeyPatch) -> None:
    """Makes operators see the counts of runs by a plan."""
    handed, is_counted = counted.handed, counted.is_counted

    def handed_here(count: Any) -> Any:
        known = count_of(count)
        return handed(count) if known is None else known

    def is_counted_here(count: Any) -> bool:
        return count_of(count) is not None or is_counted(count)

    for module in (counted, counted_functions, norm_operators, norms, losses):
        for name, function in (("handed", handed_here), ("is_counted", is_counted_here)):
            if hasattr(module, name):
                patch.setattr(module, name, function)


class PlanWithCounts(PretendedPlan):
    def make(self, indices: torch.Tensor, count: torch.Tensor) -> _C.Sites:
        sites = super().make(indices, count)
        _running[:] = [(sites, count)]
        return sites


class PretendedStepGraph:
    """Runs its work at every launch, and not when it is recorded."""

    def __init__(self, work: Callable[[], torch.Tensor]) -> None:
        self.work = work
        self.loss = torch.full((), float("nan"))

    def replay(self) -> None:
        with as_in_a_graph():
            self.loss.copy_(self.work())


@contextmanager
def as_in_a_graph() -> Iterator[None]:
    def before(module: torch.nn.Module, given: tuple[Any, ...]) -> Any:
        x = given[0] if given else None
        kind = kind_for(x) if isinstance(module, _CONVOLUTIONS) else None
        if kind is None:
            return None
        coords, features = kind.parts(x)
        return None if count_of(coords) is None else (kind.replaced(x, ops.clear_tail(features, coords)), *given[1:])

    def after(module: torch.nn.Module, given: tuple[Any, ...], y: Any) -> Any:
        kind = kind_for(y) if isinstance(module, (*_CONVOLUTIONS, *_COUNTING)) else None
        if kind is None:
            return None
        coords, features = kind.parts(y)
        count = count_of(coords)
        if count is None:
            return None
        in_use = torch.arange(len(features))[:, None] < count
        return kind.replaced(y, torch.where(in_use, features, float("nan")))

    handles = [register_module_forward_pre_hook(before), register_module_forward_hook(after)]
    try:
        with torch.enable_grad():
            yield
    finally:
        for handle in handles:
            handle.remove()


class PretendedStepRecorder(PretendedRecorder):
    plan_type = PlanWithCounts
    drawn = 0

    def record(self, work: Callable[[], Any]) -> Recording:
        self.graphs += 1
        self.recordings = getattr(self, "recordings", 0) + 1
        graph: Any = PretendedStepGraph(work)
        return Recording(graph, graph.loss, 100)

    def trouble(self) -> torch.Tensor:
        return torch.tensor(0.0 if self.text is None else 1.0)

    def has_trouble(self) -> bool:
        return self.text is not None and self.host_knows

    host_knows = True  # what went wrong, before it has waited

    def as_in_a_graph(self, gradients: bool = False) -> Any:
        return as_in_a_graph() if gradients else torch.no_grad()

    def draws(self) -> int:
        return self.drawn

    def give_back_draws(self, draws: int) -> None:
        self.drawn -= draws


class PretendedStep(CompiledStep):
    """As `pumice.compile_step` makes, with graphs on the CPU, and with any optimiser."""

    def _records(self, device: torch.device) -> bool:
        return True

    def _new_recorder(self, device: torch.device) -> Recorder:
        return PretendedStepRecorder(self.model, self._call, device)

    @property
    def recordings(self) -> int:
        return getattr(self._recorder, "recordings", 0)


def compile_step(*given: Any, **options: Any) -> PretendedStep:
    """`pumice.compile_step` with its arguments."""
    real = pumice.compile_step(*given, **options)
    return PretendedStep(real.model, real._training, real.options)


class PretendedJointStep(JointStep):
    """As `pumice.compile_step` makes of a DistributedDataParallel, with graphs on the CPU."""

    _records = PretendedStep._records
    _new_recorder = PretendedStep._new_recorder
    recordings = PretendedStep.recordings


def compile_joint_step(*given: Any, **options: Any) -> PretendedJointStep:
    """`pumice.compile_step` with its arguments."""
    real = pumice.compile_step(*given, **options)
    return PretendedJointStep(real._processes, real._training, real.options)
