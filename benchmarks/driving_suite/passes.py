"""Passes of a network, timed: alone, one after the other, what the device is busy for, memory and energy."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Iterable

import torch

from .energy import Meter


@dataclasses.dataclass
class Round:
    """Milliseconds a pass: the medians of passes that each begin on an idle device and are waited for, until they are
    done and until all is enqueued; and the mean of passes one after the other, so that the host may run ahead."""

    ms: float
    host_ms: float
    row_ms: float


@dataclasses.dataclass
class Extras:
    """Of a pass: kernels alone, the most memory in use, and energy; None where it cannot be measured."""

    busy_ms: float | None = None
    peak_mib: float | None = None
    energy_mj: float | None = None


class Passes:
    """`run(i)` enqueues pass i, of input i modulo the number of inputs; `begin` sets what holds for the process, before
    a series of passes; `held` lists the tensors that stay from pass to pass."""

    def __init__(
        self,
        run: Callable[[int], object],
        device: torch.device,
        begin: Callable[[], None],
        held: Callable[[], Iterable[torch.Tensor]],
    ) -> None:
        self.run, self.device, self.begin, self.held = run, device, begin, held

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def warm_up(self, passes: int) -> None:
        self.begin()
        for i in range(passes):
            self.run(i)
        self.wait()

    def round(self, passes: int) -> Round:
        self.begin()
        whole, host = [], []
        for i in range(passes):
            self.wait()
            start = time.perf_counter()
            self.run(i)
            host.append(time.perf_counter() - start)
            self.wait()
            whole.append(time.perf_counter() - start)
        start = time.perf_counter()
        for i in range(passes):
            self.run(i)
        self.wait()
        row = (time.perf_counter() - start) / passes
        return Round(statistics.median(whole) * 1e3, statistics.median(host) * 1e3, row * 1e3)

    def extras(self, passes: int, meter: Meter, seconds: float) -> Extras:
        """`seconds` of passes for the energy, whose counter moves some ten times a second; 0: it is not measured."""
        if self.device.type != "cuda":
            return Extras()
        self.begin()
        energy = None if meter.refused or seconds <= 0 else self._energy_mj(meter, seconds)
        return Extras(self._busy_ms(passes), self._peak_mib(), energy)

    def _busy_ms(self, passes: int) -> float | None:
        """The sum over kernels and copies, by CUPTI through PyTorch's profiler."""
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            for i in range(passes):
                self.run(i)
            self.wait()
        busy = sum(event.self_device_time_total for event in profile.key_averages())
        return busy / 1e3 / passes if busy > 0 else None

    def _peak_mib(self) -> float:
        """What a process would have in use that does nothing else: what a pass adds to what is in use before it, and
        what stays from pass to pass."""
        self.run(0)
        self.wait()
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        distinct = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in self.held()}
        self.run(0)
        self.wait()
        graphs = getattr(self.run, "graph_bytes", lambda: 0)()
        added = torch.cuda.max_memory_allocated(self.device) - before
        return (added + sum(distinct.values()) + graphs) / 2**20

    def _energy_mj(self, meter: Meter, seconds: float) -> float:
        self.wait()
        start = time.perf_counter()
        self.run(0)
        self.wait()
        passes = max(10, math.ceil(seconds / max(1e-6, time.perf_counter() - start)))
        before = meter.millijoules()
        for i in range(passes):
            self.run(i)
        self.wait()
        return (meter.millijoules() - before) / passes
