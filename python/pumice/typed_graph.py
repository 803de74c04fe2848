"""Defines `TypedRows`, rows that are grouped by type, and `TypedGraph`, whose edges have types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import _C, _framework  # noqa: F401  (connects PyTorch)
from ._checks import kind_of, whole_number
from ._edges import TYPED, plain, plain_edges
from ._registry import define, fake_token, unknown_size
from ._tensors import check_tensor, no_tensor, numbered_device
from .graph import Graph, _sizes, graphs_of_run


class TypedRows:
    """Rows that are grouped by type, as operators take them that have a matrix for each type.

    Args:
        begin: int64 [types + 1], where the rows of each type begin, and the end; or a list.
        device: where the rows are.
    Raises:
        UserError: for bounds that descend.
    Waits:
        Where `begin` is on a GPU.
    Example:
        >>> types = pumice.TypedRows([0, 2, 2, 5])
        >>> types.types, types.rows
        (3, 5)
    """

    __slots__ = ("_rows", "_token", "rows", "types")

    rows: int
    types: int
    _rows: _C.TypedRows | None
    _token: Tensor | None

    def __init__(self, begin: Tensor | list[int], device: torch.device | str | None = None) -> None:
        if device is None:
            device = begin.device if isinstance(begin, Tensor) else "cpu"
        if isinstance(begin, Tensor):
            check_tensor("begin", begin)
            if begin.dtype not in (torch.int32, torch.int64) or begin.dim() != 1:
                raise _C.UserError(f"begin is {begin.dtype}, {tuple(begin.shape)}: give int64 [types + 1]")
            bounds = begin.to("cpu", torch.int64)
        elif isinstance(begin, (list, tuple)):
            bounds = torch.tensor([whole_number("begin", bound, 0, 2**31 - 1) for bound in begin], dtype=torch.int64)
        else:
            raise _C.UserError(f"begin is {kind_of(begin)}: give where each type begins, and the end, as [0, 2, 5]")
        self._rows = _C.create_typed_rows(bounds, str(numbered_device(device)))
        self._token = None
        self.rows, self.types = self._rows.rows, self._rows.types

    @classmethod
    def _of_token(cls, token: Tensor, rows: int, types: int) -> TypedRows:
        self = cls.__new__(cls)
        self._rows, self._token, self.rows, self.types = None, token, rows, types
        return self

    @property
    def typed_rows(self) -> _C.TypedRows:
        """Those of the extension, for operators."""
        if self._rows is None:
            self._rows = _C.typed_rows_of(self._token)
        return self._rows

    @property
    def token(self) -> Tensor:
        """int64 [1] that stands for them in operators of torch.library, which take tensors only."""
        if self._token is None:
            self._token = _C.typed_rows_token(self._rows)
        return self._token

    def __copy__(self) -> TypedRows:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedRows:
        return self

    def __repr__(self) -> str:
        return f"TypedRows({self.rows} rows, {self.types} types)"


Parts = tuple[Graph, TypedRows, Graph]
Tokens = tuple[Tensor, Tensor, Tensor]


class TypedGraph:
    """Edges of several relations. Those of one relation that lead to one target are a *segment*: what they bring is
    added up first (`gather`), then multiplied with the matrix of the relation (`segments`), then added up for each
    target (`scatter`). Made once for a graph, to be kept.

    Args:
        edge_index: int32 or int64 [2, E], sources and targets in any order, or PyG's EdgeIndex.
        edge_type: int32 or int64 [E], the relation of each edge.
        num_nodes: how many there are, or (sources, targets); default: what an EdgeIndex says, else the largest number
            in `edge_index`, and one.
        num_relations: default: the largest number in `edge_type`, and one.
    Raises:
        UserError: for numbers that are none of the nodes or relations.
    Waits:
        On a GPU: for the range of the numbers, how many segments there are and where those of each relation begin.
    Example:
        >>> edge_index = torch.tensor([[0, 1, 2, 0], [2, 2, 2, 1]])
        >>> graph = pumice.TypedGraph(edge_index, torch.tensor([0, 0, 1, 1]))
        >>> graph.relations, graph.segments.rows
        (2, 3)
    """

    __slots__ = ("_begin", "_edges", "_parts", "_tokens", "columns", "entries", "relations", "rows")

    rows: int
    columns: int
    entries: int
    relations: int
    _begin: Tensor
    _edges: tuple[Tensor, Tensor] | None
    _parts: Parts | None
    _tokens: Tokens | None

    def __init__(
        self,
        edge_index: Tensor,
        edge_type: Tensor,
        num_nodes: int | tuple[int, int] | None = None,
        num_relations: int | None = None,
    ) -> None:
        edge_index, known = plain_edges(edge_index, TYPED)
        edge_type = plain(edge_type)
        sources, targets = _sizes(edge_index, num_nodes, known)
        relations = _relations(edge_index, edge_type, num_relations)
        self._set(targets, sources, edge_index.shape[1], relations)
        if torch.compiler.is_compiling():
            *tokens, self._begin = torch.ops.pumice.create_typed_graph(edge_index, edge_type, targets, sources, relations)
            self._tokens = (tokens[0], tokens[1], tokens[2])
            self._edges = edge_index.long(), edge_type.long()
        else:
            cut = _cut if graphs_of_run() is None else _cut_in_run
            self._parts, self._begin = cut(edge_index, edge_type, targets, sources, relations)

    def _set(self, rows: int, columns: int, entries: int, relations: int) -> None:
        self.rows, self.columns, self.entries, self.relations = rows, columns, entries, relations
        self._edges = self._parts = self._tokens = None

    @property
    def parts(self) -> Parts:
        """(gather, segments, scatter). In a function that is compiled, of a graph that was made there, it asks how many
        segments there are: PyTorch compiles that into one graph with `fullgraph=True`, and else into two."""
        if self._parts is None:
            assert self._edges is not None and self._tokens is not None
            edge_index, _ = self._edges
            of_edge, target = torch.ops.pumice.segments_of(self._tokens[0], self._tokens[2], edge_index)
            count = target.shape[0]
            gather = Graph._of_token(self._tokens[0], count, self.columns, self.entries)
            gather._edges = torch.stack([edge_index[0], of_edge])
            segments = TypedRows._of_token(self._tokens[1], count, self.relations)
            scatter = Graph._of_token(self._tokens[2], self.rows, count, count)
            scatter._edges = torch.stack([torch.arange(count, device=target.device), target])
            self._parts = gather, segments, scatter
        return self._parts

    @property
    def gather(self) -> Graph:
        """From sources to segments, whose entries are the edges."""
        return self.parts[0]

    @property
    def segments(self) -> TypedRows:
        """Their relations."""
        return self.parts[1]

    @property
    def scatter(self) -> Graph:
        """From segments to targets."""
        return self.parts[2]

    @property
    def tokens(self) -> Tokens:
        """What stands for the parts in operators of torch.library."""
        if self._tokens is None:
            gather, segments, scatter = self.parts
            self._tokens = gather.token, segments.token, scatter.token
        return self._tokens

    @property
    def edge_index(self) -> Tensor:
        """int64 [2, E], sources and targets in the order they were given in; made anew each time."""
        if self._edges is not None:
            return self._edges[0]
        source, segment = self.gather.edge_index
        return torch.stack([source, self.scatter.edge_index[1][segment]])

    @property
    def edge_type(self) -> Tensor:
        """int64 [E], the relation of each edge; made anew each time."""
        return self._edges[1] if self._edges is not None else self.kind_of_segment()[self.gather.edge_index[1]]

    def kind_of_segment(self) -> Tensor:
        """int64 [segments], the relation of each."""
        kinds = torch.arange(self.relations, device=self._begin.device)
        return torch.repeat_interleave(kinds, self._begin.diff(), output_size=self.segments.rows)

    def derived(self, key: Any, make: Callable[[TypedGraph], Any]) -> Any:
        """What `make(self)` returns, kept with the graph as `Graph.derived` keeps it."""
        return make(self) if torch.compiler.is_compiling() else self.gather.derived(key, lambda _: make(self))

    def traceable(self) -> TypedGraph:
        """Makes what a compiled function can take but not make; returns the graph."""
        self.gather.traceable()
        self.scatter.traceable()
        _ = self.tokens
        return self

    @property
    def device(self) -> torch.device:
        """Where its lists lie, and features and weights have to."""
        return self.gather.device

    def to(self, device: torch.device | str) -> TypedGraph:
        """The same graph on another device; itself where it is there already. Waits for a GPU that it comes from."""
        device = numbered_device(device)
        if device == self.device:
            return self
        made = TypedGraph.__new__(TypedGraph)
        made._set(self.rows, self.columns, self.entries, self.relations)
        begin = self._begin.cpu()
        made._parts = self.gather.to(device), TypedRows(begin, device), self.scatter.to(device)
        made._begin = begin.to(device)
        return made

    def __copy__(self) -> TypedGraph:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedGraph:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedGraph, (self.edge_index, self.edge_type, (self.columns, self.rows), self.relations)

    def __repr__(self) -> str:
        return (
            f"TypedGraph({self.columns} sources, {self.rows} targets, {self.entries} entries of {self.relations} "
            f"relations, device={self.gather.device})"
        )


class Segmented:
    """What a relational product goes over where it is no graph of typed edges: rows are gathered to segments, which have
    types, and are scattered to rows. It has `parts`, or in a compiled function the `tokens` of such."""

    __slots__ = ("parts", "rows", "tokens")

    def __init__(self, rows: int, parts: Parts | None, tokens: Tokens | None) -> None:
        self.rows = rows
        if parts is not None:
            self.parts = parts
        if tokens is not None:
            self.tokens = tokens


def over_edges(graph: TypedGraph) -> Segmented:
    """From targets by way of segments to edges: a product over it gives each edge what its relation makes of its target,
    which is computed once for a segment."""
    if torch.compiler.is_compiling():
        gather, segments, scatter = graph.tokens
        pick, expand = torch.ops.pumice.create_over_edges(gather, scatter)
        return Segmented(graph.entries, None, (pick, segments, expand))
    pick, expand = _over_edges(graph.gather, graph.scatter)
    return Segmented(graph.entries, (pick, graph.segments, expand), None)


def from_matrices(graph: TypedGraph) -> Segmented:
    """The segments of `graph`, gathered from rows of matrices [relations · sources] instead of from features."""
    size = graph.relations * graph.columns
    if torch.compiler.is_compiling():  # which would not know how many segments there are
        (source, target), kind = graph.edge_index, graph.edge_type
        edges = torch.stack([kind * graph.columns + source, target])
        return Segmented(graph.rows, None, TypedGraph(edges, kind, (size, graph.rows), graph.relations).tokens)
    source, segment = graph.gather.edge_index
    row = graph.kind_of_segment()[segment] * graph.columns + source
    gather = Graph(torch.stack([row, segment]), (size, graph.segments.rows))
    return Segmented(graph.rows, (gather, graph.segments, graph.scatter), None)


def _over_edges(gather: Graph, scatter: Graph) -> tuple[Graph, Graph]:
    """(from targets to segments, from segments to edges)"""
    of_edge = gather.edge_index[1]
    own = torch.arange(gather.entries, device=of_edge.device)
    return scatter.transposed(), Graph(torch.stack([of_edge, own]), (gather.rows, gather.entries))


def check_typed_rows(types: Any) -> None:
    """Raises UserError unless `types` are such."""
    if not isinstance(types, TypedRows):
        raise _C.UserError(f"types is {kind_of(types)}: give pumice.TypedRows(begin)")


def check_typed_graph(graph: Any) -> None:
    """Raises UserError unless `graph` is one."""
    if not isinstance(graph, TypedGraph):
        raise _C.UserError(f"graph is {kind_of(graph)}: give pumice.TypedGraph(edge_index, edge_type)")


def _relations(edge_index: Tensor, edge_type: Any, num_relations: Any) -> int:
    if not isinstance(edge_type, Tensor):
        raise _C.UserError(no_tensor("edge_type", edge_type))
    check_tensor("edge_type", edge_type)
    if edge_type.dtype not in (torch.int32, torch.int64) or edge_type.shape != edge_index.shape[1:]:
        raise _C.UserError(
            f"edge_type is {edge_type.dtype}, {tuple(edge_type.shape)}: give int64 [{edge_index.shape[1]}], the "
            "relation of each edge"
        )
    if num_relations is not None:
        return num_relations if torch.compiler.is_compiling() else whole_number("num_relations", num_relations, 0, 65_535)
    if torch.compiler.is_compiling():
        raise _C.UserError("num_relations = None inside a compiled function, which cannot look: give their number")
    return int(edge_type.max()) + 1 if edge_type.shape[0] > 0 else 0


def _cut(edge_index: Tensor, edge_type: Tensor, rows: int, columns: int, relations: int) -> tuple[Parts, Tensor]:
    """(parts, where each relation's segments begin). Segments are in the order of their relations, then of their targets."""
    source, target = edge_index.long()
    kind = edge_type.long()
    if kind.shape[0] > 0:
        ranges = torch.stack([*torch.aminmax(kind), *torch.aminmax(target)]).tolist()
        check_range("edge_type", kind, ranges[:2], relations)
        check_range("edge_index[1]", target, ranges[2:], rows)
    segment, of_edge = torch.unique(kind * max(rows, 1) + target, return_inverse=True)
    count = segment.shape[0]
    bounds = torch.arange(relations + 1, device=segment.device) * max(rows, 1)
    begin = torch.searchsorted(segment, bounds)
    gather = Graph(torch.stack([source, of_edge]), (columns, count))
    own = torch.arange(count, device=segment.device)
    scatter = Graph(torch.stack([own, segment % max(rows, 1)]), (count, rows))
    return (gather, TypedRows(begin, edge_index.device), scatter), begin


def _cut_in_run(edge_index: Tensor, edge_type: Tensor, rows: int, columns: int, relations: int) -> tuple[Parts, Tensor]:
    """`_cut` without a look at the edges: each relation and target has a segment, whether edges lead there or not."""
    running = graphs_of_run()
    assert running is not None
    source, target = edge_index.long()
    kind = edge_type.long()
    count = relations * rows
    is_inside = (kind >= 0) & (kind < relations) & (target >= 0) & (target < rows)
    of_edge = torch.where(is_inside, kind * rows + target, count)  # which is reported as no row
    gather = Graph(torch.stack([source, of_edge]), (columns, count))
    key = (relations, rows, edge_index.device)
    if key not in running.fixed:
        own = torch.arange(count, device=edge_index.device)
        scatter = Graph(torch.stack([own, own % max(rows, 1)]), (count, rows))
        bounds = [relation * rows for relation in range(relations + 1)]
        begin = torch.tensor(bounds, device=edge_index.device)
        running.fixed[key] = TypedRows(bounds, edge_index.device), scatter, begin
    segments, scatter, begin = running.fixed[key]
    return (gather, segments, scatter), begin


def check_range(name: str, numbers: Tensor, range: list[int], limit: int) -> None:
    """Raises UserError, naming the first of them, unless numbers from range[0] to range[1] are below `limit`."""
    if range[0] >= 0 and range[1] < limit:
        return
    at = int(((numbers < 0) | (numbers >= limit)).nonzero()[0])
    raise _C.UserError(f"{name}[{at}] = {int(numbers[at])} where there are {limit}: give numbers from 0 on")


def _create_typed_graph(
    edge_index: Tensor, edge_type: Tensor, rows: int, columns: int, relations: int
) -> tuple[Tensor, ...]:
    (gather, segments, scatter), begin = _cut(edge_index, edge_type, rows, columns, relations)
    return gather.token, segments.token, scatter.token, begin


def _fake_create_typed_graph(
    edge_index: Tensor, edge_type: Tensor, rows: Any, columns: Any, relations: Any
) -> tuple[Tensor, ...]:
    begin = edge_index.new_empty((relations + 1,), dtype=torch.int64)
    return fake_token(edge_index), fake_token(edge_index), fake_token(edge_index), begin


def _segments_of(gather: Tensor, scatter: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    of_edge, target = (Graph._of(_C.graph_of(token)).edge_index[1] for token in (gather, scatter))
    return of_edge.clone(), target.clone()


def _fake_segments_of(gather: Tensor, scatter: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    of_edge = edge_index.new_empty((edge_index.shape[1],), dtype=torch.int64)
    return of_edge, edge_index.new_empty((unknown_size(),), dtype=torch.int64)


def _create_over_edges(gather: Tensor, scatter: Tensor) -> tuple[Tensor, Tensor]:
    pick, expand = _over_edges(Graph._of(_C.graph_of(gather)), Graph._of(_C.graph_of(scatter)))
    return pick.token, expand.token


define(
    "create_typed_graph(Tensor edge_index, Tensor edge_type, SymInt rows, SymInt columns, SymInt relations) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
    _create_typed_graph,
    _fake_create_typed_graph,
)
define("segments_of(Tensor gather, Tensor scatter, Tensor edge_index) -> (Tensor, Tensor)", _segments_of, _fake_segments_of)
define(
    "create_over_edges(Tensor gather, Tensor scatter) -> (Tensor, Tensor)",
    _create_over_edges,
    lambda gather, scatter: (fake_token(gather), fake_token(gather)),
)

# torch.load reads graphs that torch.save wrote without `weights_only=False`.
torch.serialization.add_safe_globals([TypedGraph, TypedRows])
