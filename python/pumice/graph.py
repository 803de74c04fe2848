"""Defines `Graph`, which edges lead where: what products of sparse matrices and message passing go over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from . import _C, _framework  # noqa: F401  (connects PyTorch)
from ._checks import kind_of, whole_number
from ._edges import Sizes, is_edge_index, plain_edges
from ._entries import entries_of
from ._registry import define, fake_token
from ._tensors import no_tensor, numbered_device

_MOST_NODES = 2**31 - 1


class GraphsOfRun:
    """What layers make of edges that every replay of a CUDA graph writes anew. In a run of it graphs of these very edges are
    made once, whether it is recorded or not, and given up at its end; nothing waits to look at edges; and a TypedGraph has a
    segment for each relation and target, so that nobody has to count them."""

    def __init__(self) -> None:
        self.fixed: dict[Any, Any] = {}  # by key: what does not follow from edges, kept from run to run
        self.token = object()  # another one in every run
        self._edges: list[Tensor] = []
        self._made: dict[Any, Any] = {}

    @contextmanager
    def run(self, edges: list[Tensor]) -> Iterator[None]:
        """A run over `edges`, tensors that were made for it."""
        before, _running.graphs = _running.graphs, self
        self.token, self._edges, self._made = object(), edges, {}
        try:
            yield
        finally:
            _running.graphs = before
            self.token, self._edges, self._made = object(), [], {}

    def owns(self, edges: Tensor) -> bool:
        """Whether `edges` are those of this run."""
        return any(edges is own for own in self._edges)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` returns, made once in this run for each key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


class _Running(threading.local):
    graphs: GraphsOfRun | None = None


_running = _Running()


def graphs_of_run() -> GraphsOfRun | None:
    """Those of the run that goes on in this thread."""
    return _running.graphs


class Graph:
    """Edges, or the entries of a sparse matrix: entry e is at row `edge_index[1, e]`, its target, and at column
    `edge_index[0, e]`, its source. Immutable; values, features and gradients are apart from it. It is sorted once,
    when it is made, and its transpose when a gradient first asks for it, so make one graph and keep it.

    Args:
        edge_index: int32 or int64 [2, E], sources and targets in any order, as PyG has them, or PyG's EdgeIndex; edges
            may repeat. On the CPU or a GPU.
        num_nodes: how many there are, or (sources, targets) where these differ; default: what an EdgeIndex says, else
            the largest number in `edge_index`, and one.
    Raises:
        UserError: for a number that is none of the nodes. On a GPU the next call that waits raises it.
    Waits:
        On a GPU where `num_nodes` is not given; else never.
    Example:
        >>> graph = pumice.Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]]))
        >>> graph.rows, graph.columns, graph.entries
        (3, 3, 4)
        >>> ops.spmm(graph, torch.tensor([[1.0], [10.0], [100.0]]))
        tensor([[100.],
                [  1.],
                [ 11.]])
    """

    __slots__ = ("_derived", "_edges", "_graph", "_run", "_token", "columns", "entries", "rows")

    rows: int
    columns: int
    entries: int
    _derived: dict[Any, Any]
    _edges: Tensor | None
    _graph: _C.Graph | None
    _run: Any  # of the GraphsOfRun that it was made in
    _token: Tensor | None

    def __init__(self, edge_index: Tensor, num_nodes: int | tuple[int, int] | None = None) -> None:
        edge_index, known = plain_edges(edge_index)
        sources, targets = _sizes(edge_index, num_nodes, known)
        self._set(targets, sources, edge_index.shape[1])
        if torch.compiler.is_compiling():
            self._token = torch.ops.pumice.create_graph(edge_index, targets, sources)
            self._edges = edge_index.long()
        else:
            self._graph = _create(edge_index, targets, sources)

    def _set(self, rows: int, columns: int, entries: int) -> None:
        self.rows, self.columns, self.entries = rows, columns, entries
        self._derived = {}
        running = _running.graphs
        self._run = None if running is None else running.token
        self._edges = self._graph = self._token = None

    @classmethod
    def _of(cls, graph: _C.Graph) -> Graph:
        self = cls.__new__(cls)
        self._set(graph.rows, graph.columns, graph.entries)
        self._graph = graph
        return self

    @classmethod
    def _of_token(cls, token: Tensor, rows: int, columns: int, entries: int) -> Graph:
        self = cls.__new__(cls)
        self._set(rows, columns, entries)
        self._token = token
        return self

    @classmethod
    def of(cls, matrix: Any) -> tuple[Graph, Tensor | None]:
        """(graph, values) of what another library holds: rows of the matrix are targets, columns sources; None for a
        pattern without values. Values pass gradients on to the matrix.

        Args:
            matrix: a sparse tensor of PyTorch (COO, CSR, CSC, BSR, BSC; a COO tensor that wants a gradient is
                coalesced, so that entries that repeat become one), a sparse matrix or array of SciPy, a graph of
                NetworkX (an edge from u to v is an entry at row v and column u; where some edges have a `weight`, it
                is 1 of the others), one of DGL, a `SparseTensor` of torch_sparse (PyG's `adj_t`, whose rows are
                targets), or PyG's EdgeIndex.
        Raises:
            UserError: for anything else.
        Waits:
            On a GPU once, where PyTorch's conversion does.
        Example:
            >>> graph, values = pumice.Graph.of(torch.tensor([[0.0, 2.0], [1.0, 0.0]]).to_sparse_csr())
            >>> graph.edge_index, values
            (tensor([[1, 0],
                    [0, 1]]), tensor([2., 1.]))
        """
        if is_edge_index(matrix):
            return cls(matrix), None
        row, column, shape, values = entries_of(matrix)
        return cls(torch.stack([column, row]), (shape[1], shape[0])), values

    def to_torch(self, values: Tensor | None = None) -> Tensor:
        """Values [entries], by default ones, as a sparse COO tensor [rows, columns]; not coalesced, since entries
        may repeat and have an order. Raises UserError for another number of values."""
        row, column = self.edge_index.flip(0)
        if values is None:
            values = torch.ones(self.entries, device=row.device)
        elif not isinstance(values, Tensor):
            raise _C.UserError(no_tensor("values", values, "are"))
        elif values.shape != (self.entries,):
            raise _C.UserError(
                f"values have shape {tuple(values.shape)}: give [{self.entries}], one for each entry of the graph"
            )
        return torch.sparse_coo_tensor(
            torch.stack([row, column]), values, (self.rows, self.columns), check_invariants=False
        )

    @property
    def graph(self) -> _C.Graph:
        """The graph of the extension, for operators."""
        if self._graph is None:
            self._graph = _C.graph_of(self._token)
        return self._graph

    @property
    def token(self) -> Tensor:
        """int64 [1] that stands for the graph in operators of torch.library, which take tensors only."""
        if self._token is None:
            self._not_compiling()
            self._token = _C.graph_token(self._graph)
        return self._token

    def _not_compiling(self) -> None:
        """Raises UserError inside a compiled function, where what was not made before cannot be made."""
        if torch.compiler.is_compiling():
            raise _C.UserError("this graph was made outside of the compiled function: call graph.traceable() on it there")

    def traceable(self) -> Graph:
        """Makes what a compiled function can take but not make: the token, and `edge_index`, which is kept then.
        Returns the graph. A graph that a compiled function is called with needs it, unless it was made inside of
        one."""
        _ = self.token
        self._edges = self.edge_index
        return self

    @property
    def device(self) -> torch.device:
        """Where its lists lie, and features and values have to."""
        return torch.device(self.graph.device)

    @property
    def edge_index(self) -> Tensor:
        """int64 [2, E], sources and targets in the order of the entries; made anew each time, but for `traceable`."""
        if self._edges is not None:
            return self._edges
        self._not_compiling()
        row_begin, column, number = self.graph.lists()
        rows = torch.arange(self.rows, device=row_begin.device)
        targets = torch.repeat_interleave(rows, row_begin.diff(), output_size=self.entries)
        by_place = torch.stack([column.long(), targets])
        if number is None:
            return by_place
        by_number = torch.empty_like(by_place)
        by_number[:, number] = by_place
        return by_number

    def transposed(self) -> Graph:
        """The graph with sources and targets exchanged; entries have the same order."""
        return Graph._of(self.graph.transposed())

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device; itself where it is there already. Waits for a GPU that it comes from."""
        device = numbered_device(device)
        if device == self.device:
            return self
        return Graph._of(self.graph.copy_to(str(device)))

    def derived(self, key: Any, make: Callable[[Graph], Any]) -> Any:
        """What `make(self)` returns, made once for each key and kept with the graph; made anew inside a compiled
        function, and while a CUDA graph is recorded, but of graphs that are part of it."""
        if torch.compiler.is_compiling():
            return make(self)
        if key not in self._derived:
            running = _running.graphs
            of_this_run = running is not None and self._run is running.token
            if not of_this_run and self.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
                return make(self)
            with torch.inference_mode(False):  # whose tensors a later training step could not keep for its way back
                self._derived[key] = make(self)
        return self._derived[key]

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph, (self.edge_index, (self.columns, self.rows))

    def __repr__(self) -> str:
        return f"Graph({self.columns} sources, {self.rows} targets, {self.entries} entries, device={self.device})"


def check_graph(graph: Any) -> None:
    """Raises UserError unless `graph` is one."""
    if not isinstance(graph, Graph):
        remedy = "pumice.Graph(edge_index) makes one" if isinstance(graph, Tensor) else "give a pumice.Graph"
        raise _C.UserError(f"graph is {kind_of(graph)}: {remedy}")


def _sizes(edge_index: Tensor, num_nodes: Any, known: Sizes) -> tuple[int, int]:
    """(sources, targets). `known` is what the edges say themselves."""
    if num_nodes is None:
        return _counted(edge_index, known)
    if isinstance(num_nodes, (tuple, list, torch.Size)):
        if len(num_nodes) != 2:
            raise _C.UserError(f"num_nodes has {len(num_nodes)} numbers: give one, or (sources, targets)")
        sizes = _number(num_nodes[0]), _number(num_nodes[1])
    else:
        sizes = _number(num_nodes), _number(num_nodes)
    if any(said not in (None, size) for said, size in zip(known, sizes, strict=True)):
        raise _C.UserError(f"edge_index has sparse_size {known} where there are {sizes} sources and targets: they must agree")
    return sizes


def _counted(edge_index: Tensor, known: Sizes) -> tuple[int, int]:
    """(sources, targets) where nobody gives them."""
    if known[0] is not None and known[1] is not None:
        return known[0], known[1]
    if torch.compiler.is_compiling():
        raise _C.UserError("num_nodes = None inside a compiled function, which cannot look: give the number of nodes")
    if edge_index.shape[1] == 0:
        return known[0] or 0, known[1] or 0
    if known == (None, None):
        nodes = max(int(edge_index.max()) + 1, 0)
        return nodes, nodes
    largest = [max(int(numbers.max()) + 1, 0) if size is None else size for size, numbers in zip(known, edge_index, strict=True)]
    return largest[0], largest[1]


def _number(nodes: Any) -> int:
    if torch.compiler.is_compiling():  # which may not know it; the operator looks
        return nodes
    return whole_number("num_nodes", nodes, 0, _MOST_NODES)


def _create(edge_index: Tensor, rows: int, columns: int) -> _C.Graph:
    sources, targets = edge_index
    return _C.create_graph(targets, sources, rows, columns)


define(
    "create_graph(Tensor edge_index, SymInt rows, SymInt columns) -> Tensor",
    lambda edge_index, rows, columns: _C.graph_token(_create(edge_index, rows, columns)),
    lambda edge_index, rows, columns: fake_token(edge_index),
)

# torch.load reads graphs that torch.save wrote without `weights_only=False`.
torch.serialization.add_safe_globals([Graph])
