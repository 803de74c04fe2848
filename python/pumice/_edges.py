"""Reads `edge_index` as other libraries hand it over, and says of what is no edges what to give instead. Needs none of
those libraries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _C
from ._checks import kind_of
from ._tensors import check_tensor, no_tensor

Sizes = tuple["int | None", "int | None"]
# Who takes edges: a layer without types, one with an edge_type beside them, and one by the types of nodes.
PLAIN, TYPED, BY_TYPE = range(3)
_PLAIN = (Tensor, torch.nn.Parameter)


def is_edge_index(value: Any) -> bool:
    """Whether `value` is PyG's EdgeIndex, or works like one: a subclass of tensors that keeps an ordinary one."""
    if not isinstance(value, Tensor) or type(value) in _PLAIN:
        return False
    return callable(getattr(value, "as_tensor", None)) and callable(getattr(value, "sparse_size", None))


def plain(value: Any) -> Any:
    """The ordinary tensor that PyG's EdgeIndex or Index keeps; everything else as it is."""
    if type(value) in _PLAIN or not isinstance(value, Tensor) or not callable(getattr(value, "as_tensor", None)):
        return value
    return value.as_tensor()


def plain_edges(edges: Any, taker: int = PLAIN, name: str = "edge_index") -> tuple[Any, Sizes]:
    """(edges as an ordinary tensor, how many sources and targets they say there are). Raises UserError, with a remedy for
    the `taker`, unless `edges` are a dense tensor [2, E] of int32 or int64."""
    known: Sizes = tuple(edges.sparse_size()) if is_edge_index(edges) else (None, None)
    edges = plain(edges)
    if not isinstance(edges, Tensor):
        raise _C.UserError(f"{name} is {_no_edges(edges, taker, name)}")
    if edges.layout is not torch.strided:
        raise _C.UserError(f"{name} is a tensor of layout {edges.layout}: {_of_matrix(taker, name)}")
    check_tensor(name, edges)
    if edges.dim() != 2 or edges.shape[0] != 2:
        remedy = f", as {name}.t() is" if edges.dim() == 2 and edges.shape[1] == 2 else ""
        raise _C.UserError(f"{name} has shape {tuple(edges.shape)}: give [2, edges], sources and targets{remedy}")
    if edges.dtype not in (torch.int32, torch.int64):
        raise _C.UserError(f"{name} is {edges.dtype}: give int32 or int64, as {name}.long() makes")
    if edges.is_meta:
        raise _C.UserError(f"{name} has no memory: give a tensor on the CPU or on a CUDA device, not on meta")
    return edges, known


# By who takes them.
_OF_MATRIX = (
    "which layers take instead",
    "whose graph.edge_index goes with edge_type",
    "whose graph.edge_index goes here",
)
_OF_PAIR = (
    "give its parts, as in layer(x, *pumice.Graph.of(matrix)), or the graph alone",
    "give the edge_index of that graph, and edge_type",
    "give the edge_index of that graph",
)
_OF_GRAPH = (
    "graph.edge_index is what it was made of",
    "its edges have no relations: give graph.edge_index and edge_type, or pumice.TypedGraph of these",
    "graph.edge_index is what it was made of",
)
_OF_TYPED_GRAPH = (
    "RGCNConv, RGATConv and ops.rgms take it, and this takes edges without relations: give [2, edges] or a pumice.Graph",
    "it is made of edge_index and edge_type already",
    "give the edges of one type, [2, edges]",
)


def _of_matrix(taker: int, name: str) -> str:
    return f"graph, values = pumice.Graph.of({name}) makes a graph of it, {_OF_MATRIX[taker]}"


def is_matrix(value: Any) -> bool:
    """Whether pumice.Graph.of takes `value`, which is no tensor."""
    ways = (("tocoo",), ("coo", "sparse_sizes"), ("adj_tensors",), ("to_directed", "edges"))
    return any(all(callable(getattr(value, name, None)) for name in way) for way in ways)


def _no_edges(value: Any, taker: int, name: str) -> str:
    """What to say of what is no tensor, after its name and "is"."""
    kind = kind_of(value)
    own = type(value).__name__ if type(value).__module__.startswith("pumice.") else ""
    if own in ("Graph", "TypedGraph"):
        return f"{kind}: {(_OF_GRAPH if own == 'Graph' else _OF_TYPED_GRAPH)[taker]}"
    if isinstance(value, (tuple, list)) and value and type(value[0]).__name__ == "Graph":
        return f"{kind} that begins with a Graph, as pumice.Graph.of returns it, (graph, values): {_OF_PAIR[taker]}"
    if is_matrix(value):
        return f"{kind}: {_of_matrix(taker, name)}"
    if hasattr(value, "edge_index_dict") or isinstance(value, dict):
        return f"{kind}: give the edges of one type, as data[source, relation, target].edge_index"
    if isinstance(getattr(value, "edge_index", None), Tensor):
        return f"{kind}: give data.edge_index"
    if isinstance(value, (tuple, list)) or hasattr(value, "__array__"):
        return no_tensor(name, value).removeprefix(f"{name} is ")
    return f"{kind}: give a tensor, int64 [2, edges], sources and targets"
