"""One size of graphs in training: static memory for nodes, edges and labels, and the graph of a whole step.

Gradients of parameters are sums over all rows that there is room for. Those of rows that are not in use add nothing, since each
is 0 times a number:

  - the loss sees none of them, so that the gradient that begins there is 0, and edges lead from such rows to such rows alone;
  - they hold what rows in use hold, so that what a model makes of them are numbers where it makes numbers of these. No edge
    comes from a row that another leads to, and few lead to each, so that sums stay small, in half precision too;
  - batch norms, whose statistics are of rows in use, leave zeros there, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from ..ops.counted_functions import counting
from .graph_bucket import GraphBucket, naming_doubts
from .graph_call import EDGES, NODES, GraphCall
from .rows import first_with_strange_rows
from .step_bucket import Expected, StepBucket
from .tails import rows_of
from .training import Passed

_OTHER = -3.0  # times what a row in use holds, where nothing may come from such rows


class GraphStepBucket(StepBucket, GraphBucket):
    """One whose calls are given nodes and edges."""

    def _fill(self, scan: Any) -> None:
        super()._fill(scan)
        for value, used in self._with_rows(scan):
            _repeat_rows(value, used)

    def get_ready(self, scan: Any, *given: Any, **named: Any) -> None:
        """As of `StepBucket`."""
        with naming_doubts(scan):
            super().get_ready(scan, *given, **named)

    def _with_rows(self, call: GraphCall) -> list[tuple[Tensor, int]]:
        """The static tensors that have rows of nodes or edges, and how many a call uses."""
        return [
            (value, call.sizes[argument.at])
            for value, argument in zip(self._values, call.arguments)
            if argument.kind in (NODES, EDGES)
        ]

    def _taking(self, row: int, size: int, room: int) -> tuple[int, int]:
        """From the first half to the second, so that what edges bring is not taken further by others."""
        half = (room - size) // 2
        return (size, max(half, 1)) if row == 0 else (size + half, room - size - half)

    @contextmanager
    def _run_over(self, edges: list[Tensor]) -> Iterator[None]:
        """Goes on until the end of the pass back, which asks for what the pass there made of the edges."""
        self._until_back.enter_context(self._graphs.run(edges))
        yield

    @contextmanager
    def _around(self, sites: Any) -> Iterator[None]:
        with counting(lambda tensor: rows_of(tensor, sites), statistics_only=True):
            yield

    def _passed_from(self, sites: Any, run: Any) -> Passed:
        with ExitStack() as self._until_back:
            return super()._passed_from(sites, run)

    def _with_strange_rows(
        self, expected: Expected, rows: int, doubt: str
    ) -> tuple[torch.nn.Module | None, str | None]:
        """The first module whose rows in use are no numbers in a pass there in which all others are NaN; else how a pass there
        and back differs in which others are numbers unlike those in use, and the module whose gradient does."""
        with torch.no_grad(), ExitStack() as self._until_back:
            module, different = first_with_strange_rows(self.recorder.model, self._begun, expected.output, rows)
        if different is not None:
            return module, different
        with torch.no_grad():
            for value, used in self._with_rows_of_last():
                if value.is_floating_point():
                    _repeat_rows(value, used)
                    value[used:] *= _OTHER
        sites, passed = self._passed()
        return self._difference(expected, passed, sites, rows, doubt)

    def _with_rows_of_last(self) -> list[tuple[Tensor, int]]:
        return [(value, used) for value, used in zip(self._values, self._used()) if used is not None]


def _repeat_rows(tensor: Tensor, used: int) -> None:
    """Writes the rows in use again and again past them; zeros where there are none. Does not wait."""
    if used == 0:
        tensor.zero_()
        return
    while used < tensor.shape[0]:
        more = min(used, tensor.shape[0] - used)
        tensor[used : used + more].copy_(tensor[:more])
        used += more
