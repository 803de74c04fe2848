"""One size of calls with edges: static memory for nodes and edges, and a graph that sorts the edges of each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor

from .. import _C
from ..graph import Graph, GraphsOfRun
from ..typed_graph import TypedGraph
from .bucket import Bucket
from .graph_call import CONSTANT, GRAPH, WHOLE_TENSOR, Edges, GraphCall, RowsOfGraph
from .outputs import Output
from .recorder import Recorder


class GraphBucket(Bucket):
    """Static inputs with room for so many nodes and edges. Edges that are not in use lead from nodes that are not in use to
    such nodes, so that nodes in use have the entries they have without them, in the same order."""

    def __init__(self, recorder: Recorder, capacity: int, call: GraphCall) -> None:
        super().__init__(recorder, capacity, call)  # type: ignore[arg-type]
        self._call = call._replace(values=[], edges=[one._replace(ends=None, types=None) for one in call.edges])  # type: ignore[arg-type]
        self._rooms = call.rooms
        self._graphs = GraphsOfRun()
        self._values: list[Any] = []  # of the call, flat; None where the model gets edges
        self._index: list[Tensor] = []  # of edges
        self._types: list[Tensor | None] = []

    def learn(self, coords: Any, scan: Any) -> None:
        """There is nothing to learn."""

    def _learn_again(self, coords: Any) -> None:
        """There is nothing to learn."""

    @property
    def row_rooms(self) -> list[int]:
        """Room for what goes with the rows of a call, by its sizes."""
        return self._rooms

    def _static(self) -> list[Tensor]:
        if self._count is None:
            return []
        kept = [*self._values, *self._index, *self._types, self._count, self._places]
        return [tensor for tensor in kept if isinstance(tensor, Tensor)]

    def _make_room(self, call: GraphCall) -> None:
        device = call.features.device
        self._count = torch.zeros(len(call.sizes), dtype=torch.int64, device=device)
        self._places = torch.arange(max(self._rooms[call.nodes :]), device=device)
        for value, argument in zip(call.values, call.arguments):
            if argument.kind in (GRAPH, CONSTANT):
                self._values.append(value if argument.kind == CONSTANT else None)
            elif argument.kind == WHOLE_TENSOR:
                self._values.append(torch.empty_like(value, requires_grad=False))
            else:
                self._values.append(value.new_zeros((self._rooms[argument.at], *value.shape[1:])))
        for at, one in enumerate(call.edges):
            room = self._rooms[call.nodes + at]
            self._index.append(torch.zeros((2, room), dtype=torch.int64, device=device))
            typed = one.types is not None
            self._types.append(torch.zeros(room, dtype=torch.int64, device=device) if typed else None)

    def _fill(self, scan: Any) -> None:
        call: GraphCall = scan
        if self._count is None:
            self._make_room(call)
        assert self._count is not None
        for at, size in enumerate(call.sizes):
            self._count[at].fill_(size)
        for to, value, argument in zip(self._values, call.values, call.arguments):
            if argument.kind == WHOLE_TENSOR:
                to.copy_(value.detach(), non_blocking=True)
            elif argument.kind not in (GRAPH, CONSTANT):
                to[: value.shape[0]].copy_(value.detach(), non_blocking=True)
                if not value.is_floating_point():  # types of edges: such as there are, whatever an earlier call was given
                    to[value.shape[0] :].zero_()
        for at, one in enumerate(call.edges):
            self._fill_edges(at, one, call)

    def _fill_edges(self, at: int, one: Edges, call: GraphCall) -> None:
        index, used, types = self._index[at], one.ends.shape[1], self._types[at]
        index[:, :used].copy_(one.ends, non_blocking=True)
        if types is not None and one.types is not None:
            types[:used].copy_(one.types, non_blocking=True)
            types[used:].zero_()  # one that there is, whatever an earlier call was given
        # Shared out, so that no row is long.
        for row, nodes in enumerate((one.columns, one.rows)):
            rest = index[row, used:]
            begin, count = self._taking(row, call.sizes[nodes], self._rooms[nodes])
            torch.remainder(self._places[: rest.shape[0]], count, out=rest)
            rest += begin

    def _taking(self, row: int, size: int, room: int) -> tuple[int, int]:
        """The nodes, from the first on, that edges which are not in use come from (row 0) and lead to (row 1)."""
        return size, room - size

    def _spoil(self, rows: int) -> None:
        """Nothing may come from nodes and edges that are not in use. Whole numbers there are the largest of those in use, which
        whatever looks up rows by them has."""
        for value, used in zip(self._values, self._used()):
            if used is not None and value.is_floating_point():
                value[used:] = float("nan")
            elif used is not None and used > 0:
                value[used:] = value[:used].amax(0) if value.dtype != torch.bool else True

    def _used(self) -> list[int | None]:
        assert self._count is not None
        sizes = self._count.tolist()
        kinds = (GRAPH, CONSTANT, WHOLE_TENSOR)
        return [None if argument.kind in kinds else sizes[argument.at] for argument in self._call.arguments]

    def prepare(self, scan: Any, expected: Output, waits: bool, few: Any = None) -> None:
        """As of `Bucket`."""
        with naming_doubts(scan):
            super().prepare(scan, expected, waits, few)

    def _begun(self) -> tuple[Any, Callable[[], Any]]:
        """The rows of a run, and the run."""

        def run() -> Any:
            edges = [self._checked(at) for at in range(len(self._index))]
            with self._run_over(edges):
                values = [
                    self._handed(edges[argument.at], argument.at) if argument.kind == GRAPH else value
                    for value, argument in zip(self._values, self._call.arguments)
                ]
                return self.recorder.call(self._call.rebuild(values))

        return RowsOfGraph(self._rooms, self._count), run

    def _run_over(self, edges: list[Tensor]) -> AbstractContextManager[None]:
        """A run in which graphs of `edges` are made once."""
        return self._graphs.run(edges)

    def _checked(self, at: int) -> Tensor:
        """Edges, of which those in use that lead to nodes that are not are reported with the numbers of the call. A new
        tensor, since layers keep what they make of edges with the tensor."""
        one = self._call.edges[at]
        return _C.edges_in_use(self._index[at], self._count, self._call.nodes + at, one.columns, one.rows, one.label)

    def _handed(self, index: Tensor, at: int) -> Any:
        one = self._call.edges[at]
        sizes = self._rooms[one.columns], self._rooms[one.rows]
        if one.kind is Graph:
            return Graph(index, sizes)
        if one.kind is TypedGraph:
            types = self._types[at]
            assert types is not None
            return TypedGraph(index, types, sizes, one.relations)
        return index


@contextmanager
def naming_doubts(call: GraphCall) -> Iterator[None]:
    """A refusal in it names tensors of which it is not known yet whether they go with nodes or edges."""
    try:
        yield
    except _C.UserError as error:
        if not call.doubtful:
            raise
        raise _C.UserError(
            f"{error}; {', '.join(call.doubtful)} and may be taken for one row of each: if it is none, call once with another "
            "number of nodes and of edges"
        ) from error
