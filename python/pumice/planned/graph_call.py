"""Features of nodes and edges as a call of a compiled model is given them: numbers of nodes and of edges differ from call to
call, and a graph has room for more of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from .. import _C
from .._checks import kind_of
from .._edges import is_edge_index, plain_edges
from .._tensors import check_floating
from ..graph import Graph
from ..typed_graph import TypedGraph, check_range
from .rows_seen import ALONE, RowsSeen, Sighting, rows_in
from .scans import OWN, Kind, check_matrix, kind_for
from .sizes import STEP, capacity_for, capacity_for_edges

_EDGES_OF_STEP = 1 << 17  # that share another STEP nodes of room in training, where sums of their features have to be numbers
SPARE = 64  # nodes of room at least, to which edges lead that are not in use: as many rows share them

NODES, EDGES, WHOLE_TENSOR, CONSTANT, GRAPH = "nodes", "edges", "whole", "constant", "graph"


class Edges(NamedTuple):
    """Edges of a call, and what the model gets them as."""

    ends: Tensor  # int64 or int32 [2, E]
    types: Tensor | None  # [E], of a TypedGraph
    columns: int  # which nodes they come from, by place in the sizes of the call
    rows: int  # and lead to
    relations: int  # of a TypedGraph; else 0
    kind: type  # Tensor, Graph or TypedGraph
    label: str = "Graph"  # in errors


class Argument(NamedTuple):
    """What one value of a call is."""

    kind: str
    at: int = 0  # of NODES, EDGES and GRAPH: which
    key: Any = None  # what a graph takes for granted


class Arguments(NamedTuple):
    """What a model is called with."""

    given: tuple[Any, ...]
    named: dict[str, Any]


class GraphCall(NamedTuple):
    """A call; a scan as `Scan` is, whose rows are those of nodes."""

    features: Tensor  # [N, C], of the first nodes
    sizes: list[int]  # how many nodes of each kind there are, then how many edges
    rooms: list[int]  # a graph's, for these
    edges: list[Edges]
    values: list[Any]  # of the call, flat
    arguments: list[Argument]
    rebuild: Callable[[list[Any]], Arguments]
    key: tuple[Any, ...]
    is_clear: bool  # whether shapes tell what belongs to nodes and what to edges
    layout: Any  # what places in the sizes mean
    sightings: list[Sighting]  # of tensors that may belong to them
    doubtful: list[str]  # tensors that have as many rows as there are nodes or edges, so far in each call as many
    kind: Kind = OWN
    grid: None = None
    given: None = None
    point_rows: None = None

    @property
    def rows(self) -> int:
        """How many nodes have features."""
        return self.features.shape[0]

    @property
    def nodes(self) -> int:
        """How many kinds of nodes there are."""
        return len(self.sizes) - len(self.edges)

    def fresh(self) -> Arguments:
        """The call as it was given."""
        return self.rebuild(self.values)

    def input(self) -> Arguments:
        """The call as it was given."""
        return self.rebuild(self.values)

    def coords_of(self, x: Arguments) -> None:
        """There are no sites."""

    def check_edges(self) -> None:
        """Raises UserError for an edge of a node that there is not. Waits."""
        for one in self.edges:
            for row, nodes in enumerate((one.columns, one.rows)):
                if one.ends.shape[1] > 0:
                    range = torch.stack(torch.aminmax(one.ends[row])).tolist()
                    check_range(f"{one.label}: edge_index[{row}]", one.ends[row], range, self.sizes[nodes])


class OfGraph(NamedTuple):
    """The rows of a leaf that are those of nodes or edges of a call."""

    at: int
    count: Tensor | None  # int64 [1] of a graph; None where all rows are in use


class RowsOfGraph:
    """What the rows of outputs are, in a run with room for so many nodes and edges."""

    coords = None

    def __init__(self, sizes: list[int], counts: Tensor | None) -> None:
        self._sizes = sizes
        self._counts = counts

    def rows_of(self, coords: Any) -> Any:
        """Raises UserError: the sites of a sparse tensor are none of a graph's nodes."""
        raise _C.UserError("the output of a model that is given edges holds a sparse tensor: return its features")

    def rows_like(self, tensor: Tensor) -> Any:
        """Those of a plain tensor; None for one that has other rows."""
        rows = tensor.shape[0] if tensor.dim() > 0 else -1
        if rows not in self._sizes:
            return None
        at = self._sizes.index(rows)
        return OfGraph(at, None if self._counts is None else self._counts[at : at + 1])


def is_graph_call(given: tuple[Any, ...]) -> bool:
    """Whether a call is one of features of nodes and of edges."""
    if len(given) >= 2 and isinstance(given[0], dict) and isinstance(given[1], dict):
        return all(isinstance(kind, tuple) and len(kind) == 3 for kind in given[1])
    if len(given) < 2 or not isinstance(given[0], Tensor) or not given[0].is_floating_point():
        return False
    edges = given[1]
    if isinstance(edges, (list, tuple)) and edges:
        edges = edges[0]
    if isinstance(edges, (Graph, TypedGraph)):
        return True
    return isinstance(edges, Tensor) and (
        is_edge_index(edges) or (edges.dim() == 2 and edges.shape[0] == 2 and edges.dtype in (torch.int32, torch.int64))
    )


def graph_call_of(
    given: tuple[Any, ...], named: dict[str, Any], ratio: float, most: int | None, seen: RowsSeen, trains: bool = False
) -> GraphCall:
    """A call of (features [N, C], edges, more), where edges are [2, E], a Graph, a TypedGraph, or several of these, or of
    dictionaries: features by types of nodes, and edges by (type, relation, type). More tensors belong to nodes or edges
    where they have as many rows, in this call and in all that `seen` remembers."""
    nodes: list[int] = []
    for value in given[0].values() if isinstance(given[0], dict) else [given[0]]:
        if not isinstance(value, Tensor):
            raise _C.UserError(f"features of nodes are {kind_of(value)}: give a tensor [nodes, channels]")
        check_matrix("features", value, "nodes")
        check_floating(value)
        _place(value.shape[0], nodes)
    if not nodes:
        raise _C.UserError("features of nodes are an empty dictionary: give some")
    if isinstance(given[1], Tensor):
        given = (given[0], plain_edges(given[1])[0], *given[2:])
    elif isinstance(given[1], (list, tuple)):
        items = [plain_edges(one)[0] if isinstance(one, Tensor) else one for one in given[1]]
        given = (given[0], tuple(items) if isinstance(given[1], tuple) else items, *given[2:])
    elif isinstance(given[1], dict):
        given = (given[0], {kind: plain_edges(index)[0] for kind, index in given[1].items()}, *given[2:])
    values, structure = tree_flatten((given, named))
    features = values[0]
    ends = _ends(given, nodes)
    edges: list[Edges] = []
    for at, value in enumerate(values):
        if at in ends:
            edges.append(Edges(value, None, *ends[at], 0, Tensor))
        elif isinstance(value, (Graph, TypedGraph)):
            edges.append(_edges_of(value, nodes))
        elif kind_for(value) is not None:
            raise _C.UserError(f"a model that is given edges is given {kind_of(value)}: give its features and its indices")
        if isinstance(value, (Tensor, Graph, TypedGraph)) and value.device != features.device:
            raise _C.UserError(
                f"features of nodes are on {features.device} and {kind_of(value)} on {value.device}: .to() brings one to the other"
            )
    if len(edges) > 1:
        kinds = given[1] if isinstance(given[1], dict) else range(len(edges))
        edges = [one._replace(label=f"edges {kind}") for one, kind in zip(edges, kinds)]
    names = _names_of(given, named)
    of_nodes = len(given[0]) if isinstance(given[0], dict) else 1
    sizes = [*nodes, *(one.ends.shape[1] for one in edges)]
    arguments, clear, graphs = [], True, 0
    sightings, doubtful = [], []
    layout = str(structure), len(nodes), tuple((one.columns, one.rows) for one in edges)
    for at, value in enumerate(values):
        if at in ends or isinstance(value, (Graph, TypedGraph)):
            arguments.append(Argument(GRAPH, graphs))
            graphs += 1
            continue
        if not isinstance(value, Tensor):
            arguments.append(_constant(value))
            continue
        if at < of_nodes:
            arguments.append(_of_rows(value, nodes.index(value.shape[0]), len(nodes)))
            continue
        sighting = seen.look((layout, at), rows_in(value), sizes)
        sightings.append(sighting)
        argument, sure = _argument_of(value, sighting, len(nodes), names[at])
        arguments.append(argument)
        clear = clear and sure
        if argument.kind != WHOLE_TENSOR and ALONE in sighting.possible:
            doubtful.append(f"{names[at] or f'tensor {at}'} has {value.shape[0]} rows, as {argument.kind} do")
    if max(len(nodes), len(edges)) >= SPARE:
        raise _C.UserError(f"a compiled model was given {len(edges)} graphs: give fewer than {SPARE}")
    of_edges = [capacity_for_edges(one.ends.shape[1] + at) - at for at, one in enumerate(edges)]
    # No two are the same, so that rows of outputs tell what they belong to.
    spare = SPARE + (STEP * (max(of_edges, default=0) // _EDGES_OF_STEP) if trains else 0)
    rooms = [(capacity_for(size, ratio, most if at == 0 else None) or size) + spare - at for at, size in enumerate(nodes)]
    rooms += of_edges
    key = (
        "edges",
        str(structure),
        tuple(rooms),
        tuple((one.types is not None, one.columns, one.rows, one.relations, one.kind) for one in edges),
        tuple(arguments),
    )

    def rebuild(made: list[Any]) -> Arguments:
        return Arguments(*tree_unflatten(made, structure))

    return GraphCall(features, sizes, rooms, edges, values, arguments, rebuild, key, clear, layout, sightings, doubtful)


def _names_of(given: tuple[Any, ...], named: dict[str, Any]) -> list[str]:
    """Of each value, flat: the name of its argument, or ""."""
    names = [""] * len(tree_flatten(given)[0])
    for name in named:
        names += [name] * len(tree_flatten(named[name])[0])
    return names


def _ends(given: tuple[Any, ...], nodes: list[int]) -> dict[int, tuple[int, int]]:
    """Of each tensor of edges, by its place in the call, flat: which nodes they come from, and lead to."""
    if isinstance(given[1], Tensor):
        return {1: (0, 0)}
    if isinstance(given[1], (list, tuple)):
        return {1 + at: (0, 0) for at, one in enumerate(given[1]) if isinstance(one, Tensor)}
    if not isinstance(given[1], dict):
        return {}
    of_types = {name: nodes.index(x.shape[0]) for name, x in given[0].items()}
    ends = {}
    for at, (source, relation, target) in enumerate(given[1]):
        if source not in of_types or target not in of_types:
            raise _C.UserError(f"edges {(source, relation, target)!r} are of nodes without features: there are {list(of_types)}")
        ends[len(given[0]) + at] = of_types[source], of_types[target]
    return ends


def _place(count: int, nodes: list[int]) -> int:
    """Of so many nodes in the sizes of a call: who are as many share a place, and a bucket of such calls."""
    if count not in nodes:
        nodes.append(count)
    return nodes.index(count)


def _edges_of(graph: Graph | TypedGraph, nodes: list[int]) -> Edges:
    columns, rows = _place(graph.columns, nodes), _place(graph.rows, nodes)
    if isinstance(graph, TypedGraph):
        return Edges(graph.edge_index, graph.edge_type, columns, rows, graph.relations, TypedGraph)
    return Edges(graph.edge_index, None, columns, rows, 0, Graph)


def _constant(value: Any) -> Argument:
    if value is None or isinstance(value, (bool, int, float, str)):
        return Argument(CONSTANT, key=(type(value), value))
    raise _C.UserError(
        f"a compiled model was given {kind_of(value)}: give tensors, graphs, numbers, and tuples, lists and dictionaries of them"
    )


def _argument_of(value: Tensor, sighting: Sighting, nodes: int, name: str) -> tuple[Argument, bool]:
    """What a tensor is, and whether it is sure which nodes or edges it goes with, if it goes with any."""
    places = sighting.places
    if not places:
        return Argument(WHOLE_TENSOR, key=(value.dtype, tuple(value.shape))), True
    if name.startswith("edge_") and places[-1] >= nodes:
        places = [at for at in places if at >= nodes]
    return _of_rows(value, places[0], nodes), len(places) == 1


def _of_rows(value: Tensor, place: int, nodes: int) -> Argument:
    return Argument(NODES if place < nodes else EDGES, place, (value.dtype, tuple(value.shape[1:])))
