"""Random numbers that steps have drawn: those of steps that changed nothing are given back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from .recorder import Recorder

_MOST_IN_FLIGHT = 4096  # steps that may run when somebody learns what became of them; a stream holds some thousand launches


class Draws:
    """How many numbers each of the last steps has drawn. A graph draws as many at every launch, whatever comes of it."""

    def __init__(self) -> None:
        self._last: deque[int] = deque(maxlen=_MOST_IN_FLIGHT)
        self._exceeded = 0  # as far as somebody has looked

    @contextmanager
    def noting(self, recorder: Recorder) -> Iterator[None]:
        """Around a step."""
        before = recorder.draws()
        yield
        self._last.append(recorder.draws() - before)

    def give_back(self, recorder: Recorder, exceeded: Tensor) -> None:
        """Those of the steps that were counted in `exceeded` since the last time, which are the last ones. Waits."""
        total = int(exceeded.item())
        steps, self._exceeded = total - self._exceeded, total
        last = list(self._last)
        draws = sum(last[max(0, len(last) - steps) :])
        if draws > 0:
            recorder.give_back_draws(draws)
        self._last.clear()
