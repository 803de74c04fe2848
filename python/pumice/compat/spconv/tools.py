"""Times of what runs, by names that may lie in one another."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch

from .cppconstants import CPU_ONLY_BUILD

__all__ = ["CPU_ONLY_BUILD", "CUDAKernelTimer", "nullcontext"]


class CUDAKernelTimer:
    """Milliseconds between the ends of `with timer.record(name)`: of the GPU where there is one, else
    of the clock. `with timer.namespace(name)` puts `name.` before the names inside. Layers of this
    package record nothing."""

    def __init__(self, enable: bool = True) -> None:
        self.enable = enable
        self._within: list[str] = []
        self._pairs: list[tuple[str, object, object]] = []

    def namespace(self, name: str) -> AbstractContextManager[None]:
        return self._inside(name) if self.enable else nullcontext()

    def record(self, name: str, stream: int = 0) -> AbstractContextManager[None]:
        """`stream` is taken and changes nothing: the current one is asked."""
        return self._record(name) if self.enable else nullcontext()

    def get_all_pair_time(self) -> dict[str, float]:
        """Milliseconds by name; of one that was recorded several times, their sum. Waits."""
        times: dict[str, float] = {}
        for name, start, stop in self._pairs:
            times[name] = times.get(name, 0.0) + _between(start, stop)
        return times

    @staticmethod
    def collect_by_name(name: str, res: dict[str, float]) -> dict[str, float]:
        """Those whose names have `name` between their dots."""
        return {key: value for key, value in res.items() if name in key.split(".")}

    @contextlib.contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        self._within.append(name)
        try:
            yield
        finally:
            self._within.pop()

    @contextlib.contextmanager
    def _record(self, name: str) -> Iterator[None]:
        with self._inside(name):
            whole, start = ".".join(self._within), _now()
            yield
            self._pairs.append((whole, start, _now()))


def _now() -> object:
    if not torch.cuda.is_available():
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between(start: object, stop: object) -> float:
    if isinstance(start, torch.cuda.Event) and isinstance(stop, torch.cuda.Event):
        stop.synchronize()
        return start.elapsed_time(stop)
    assert isinstance(start, float) and isinstance(stop, float)
    return (stop - start) * 1e3
