"""What layers make of the edges that they are given: graphs, and graphs with an edge from each node to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from ... import _C, ops
from ..._checks import kind_of, whole_number
from ..._edges import PLAIN, TYPED, plain, plain_edges
from ..._tensors import check_real
from ...graph import Graph, graphs_of_run
from ...typed_graph import TypedGraph

# Sorting edges takes as long as several products with them, and PyG's networks hand the same tensor to every layer in
# every pass: graphs are kept as long as the tensor that they were made of, and made anew where it was written into.
# Of each tensor, by the numbers of nodes and relations.
_made: Any = WeakTensorKeyDictionary()


def as_graph(edges: Graph | Tensor, sources: int, targets: int) -> Graph:
    """`edges` as a graph of as many nodes. Raises UserError where it has others."""
    if isinstance(edges, Graph):
        if (edges.columns, edges.rows) != (sources, targets):
            raise _C.UserError(
                f"the graph has {edges.columns} sources and {edges.rows} targets, and x {sources} and {targets} rows: "
                "give one row for each node"
            )
        return edges
    edges = checked_edges(edges, sources, targets)
    return kept(edges, (sources, targets), lambda: Graph(edges, (sources, targets)))


def as_typed_graph(
    edges: TypedGraph | Tensor, types: Tensor | None, sources: int, targets: int, relations: int
) -> TypedGraph:
    """`edges` and their `types` as a graph of as many nodes. Raises UserError where it has others."""
    if isinstance(edges, TypedGraph):
        if types is not None:
            raise _C.UserError(
                "edge_type is given beside a TypedGraph, which knows the relation of each of its edges: leave it out"
            )
        if (edges.columns, edges.rows, edges.relations) != (sources, targets, relations):
            raise _C.UserError(
                f"the graph has {edges.columns} sources, {edges.rows} targets and {edges.relations} relations, and x "
                f"{sources} and {targets} rows and the layer {relations} relations: they must agree"
            )
        return edges
    edges, types = checked_edges(edges, sources, targets, TYPED), plain(types)
    if types is None:
        raise _C.UserError("edge_type is None: give the relation of each edge, int64 [E], or a pumice.TypedGraph")
    call = (edges, types, (sources, targets), relations)
    if torch.compiler.is_compiling() or not isinstance(types, Tensor) or types.is_inference():
        return TypedGraph(*call)
    return kept(edges, (sources, targets, relations), lambda: TypedGraph(*call), types)


def checked_edges(edges: Any, sources: int, targets: int, taker: int = PLAIN, name: str = "edge_index") -> Tensor:
    """[2, E]. Raises UserError where it is none, and where it says that there are other numbers of nodes."""
    edges, known = plain_edges(edges, taker, name)
    if known[0] not in (None, sources) or known[1] not in (None, targets):
        raise _C.UserError(
            f"{name} has sparse_size {known}, and x {sources} and {targets} rows: give one row for each node"
        )
    return edges


class _Kept(NamedTuple):
    made: Any
    given: tuple[Tensor, ...]  # types; kept alive, so that their id stays their own
    state: tuple[tuple[int, int], ...]
    copies: tuple[Tensor, ...]


def kept(edges: Tensor, sizes: tuple[int, ...], make: Callable[[], Any], *types: Tensor) -> Any:
    """What `make` makes of `edges`, and of their `types`, for such sizes, kept with `edges`."""
    if torch.compiler.is_compiling() or type(edges) is not Tensor or edges.is_inference():
        return make()
    running = graphs_of_run()
    if running is not None and running.owns(edges):
        return running.once((id(edges), sizes, *map(id, types)), make)
    all_kept = _made.setdefault(edges, {})
    kept = all_kept.get(sizes)
    given = (edges, *types)
    state = tuple((id(tensor), tensor._version) for tensor in given)
    if kept is not None and kept.state == state and all(map(torch.equal, given[: len(kept.copies)], kept.copies)):
        return kept.made
    # NumPy, and whoever has the memory, can write into it without a word to PyTorch: on the CPU edges are compared.
    # Out of inference mode, whose tensors a later training step could not keep for its way back.
    with torch.inference_mode(False):
        copies = () if edges.is_cuda else tuple(tensor.clone() for tensor in given)
        kept = _Kept(make(), types, state, copies)
    if not (edges.is_cuda and torch.cuda.is_current_stream_capturing()):
        all_kept[sizes] = kept
    return kept.made


class WithLoops(NamedTuple):
    """The edges of a graph, and after them one from each node to itself: of sources and targets, where these are not
    the same nodes, as many as there are of both, which is what PyG adds. Those that led there before are `repeated`:
    they have to count nothing."""

    graph: Graph
    source: Tensor  # int64 [E + nodes]
    target: Tensor
    repeated: Tensor  # bool [E]


def with_loops(graph: Graph) -> WithLoops:
    """Made once for a graph, and kept with it."""
    return graph.derived("with loops", _with_loops)


def _with_loops(graph: Graph) -> WithLoops:
    edge_index = graph.edge_index
    nodes = torch.arange(min(graph.rows, graph.columns), device=edge_index.device)
    both = torch.cat([edge_index, nodes.expand(2, -1)], 1)
    extended = Graph(both, (graph.columns, graph.rows))
    return WithLoops(extended, both[0], both[1], edge_index[0] == edge_index[1])


def loop_of_edges(graph: Graph) -> Tensor:
    """int64 [E]: the node that an edge leads from and to, for the last such edge of each node; for all other edges the
    number of nodes. Made once for a graph, and kept with it. Whoever writes what edges bring to these places writes once to
    that of a node: of several writes a GPU keeps any."""
    return graph.derived("loop of edges", _loop_of_edges)


def _loop_of_edges(graph: Graph) -> Tensor:
    target = graph.edge_index[1]
    nodes, edges = min(graph.rows, graph.columns), graph.entries
    repeated = with_loops(graph).repeated
    numbers = torch.arange(edges, device=target.device)
    at = target.clamp(max=max(nodes - 1, 0))  # of edges that are no loop, too: they write -1, which changes nothing
    last = target.new_full((nodes,), -1).scatter_reduce(0, at, torch.where(repeated, numbers, -1), "amax")
    return torch.where(repeated & (last[at] == numbers), target, nodes)


def check_attributes(attributes: Any, graph: Graph | TypedGraph, channels: int | None) -> Tensor:
    """[E, channels]; a number for each edge is one channel. Raises UserError for other shapes."""
    if isinstance(attributes, Tensor) and attributes.dim() == 1:
        attributes = attributes.unsqueeze(1)
    check_features("edge_attr", attributes)
    if attributes.shape != (graph.entries, channels):
        raise _C.UserError(
            f"edge_attr has shape {tuple(attributes.shape)}: give [{graph.entries}, {channels}], a row for each edge"
        )
    return attributes


def attributes_with_loops(graph: Graph, extended: WithLoops, attributes: Tensor, fill: float | Tensor | str) -> Tensor:
    """Features of edges, and after them those of the loops that were added: `fill`, or what it makes of those that lead
    to a node from others."""
    loops = extended.graph.entries - graph.entries
    if isinstance(fill, str):
        collect = graph.derived("edges to targets", lambda _: _edges_to_targets(graph, extended))
        filled = ops.spmm(collect, attributes, reduce="sum" if fill == "add" else fill)[:loops]
    elif isinstance(fill, Tensor):
        filled = fill.to(attributes.device, attributes.dtype).expand(loops, attributes.shape[1])
    else:
        filled = attributes.new_full((loops, attributes.shape[1]), fill)
    return torch.cat([attributes, filled.to(attributes.dtype)])


def _edges_to_targets(graph: Graph, extended: WithLoops) -> Graph:
    """From edges to the nodes that they lead to; those that do not count lead to one more."""
    targets = torch.where(extended.repeated, graph.rows, extended.target[: graph.entries])
    edges = torch.arange(graph.entries, device=targets.device)
    return Graph(torch.stack([edges, targets]), (graph.entries, graph.rows + 1))


def check_features(name: str, x: Any) -> None:
    """Raises UserError unless `x` is a tensor of floats, [nodes, channels]."""
    if not isinstance(x, Tensor):
        raise _C.UserError(f"{name} is {kind_of(x)}: give a tensor, [nodes, channels]")
    check_real(name, x)
    if x.is_meta:
        raise _C.UserError(f"{name} has no memory: give a tensor on the CPU or on a CUDA device, not on meta")
    if x.dim() != 2:
        raise _C.UserError(f"{name} has shape {tuple(x.shape)}: give [nodes, channels]")


def is_matrix(x: Any) -> bool:
    """Whether `x` is an ordinary tensor of floats [nodes, channels]: of most calls, which need no further look."""
    kind = type(x)
    return (kind is Tensor or kind is torch.nn.Parameter) and x.dim() == 2 and x.is_floating_point()


def pair_of(x: Any) -> tuple[Any, Any]:
    """Features of sources and of targets, which a single tensor is both."""
    if not isinstance(x, (tuple, list)):
        return x, x
    if len(x) != 2:
        raise _C.UserError(f"x has {len(x)} parts: give features, or a pair of those of sources and of targets")
    return x[0], x[1]


def messages_of(
    x: Any, edges: Graph | Tensor, size: tuple[int | None, int | None] | None
) -> tuple[Graph, Tensor, Tensor | None]:
    """The graph that layers of sources and targets go over, and their features. Raises UserError for other shapes."""
    sources, targets = pair_of(x)
    check_features("x", sources)
    if targets is not None:
        check_features("x", targets)
    said = (None, None) if size is None else check_size(size)
    rows = sources.shape[0]
    if targets is not None:
        count = targets.shape[0]
    else:
        count = _targets_of(edges, said, rows)
    _check_said(said, rows, count)
    return as_graph(edges, rows, count), sources, targets


def check_size_of(size: Any, nodes: int) -> None:
    """Raises UserError where `size` says that there are other numbers of sources or targets than nodes."""
    if size is not None:
        _check_said(check_size(size), nodes, nodes)


def _check_said(said: tuple[int | None, int | None], sources: int, targets: int) -> None:
    if said[0] not in (None, sources) or said[1] not in (None, targets):
        raise _C.UserError(
            f"size = {said} where there are {sources} sources and {targets} targets: give these numbers, or leave it out"
        )


def check_size(size: Any) -> tuple[int | None, int | None]:
    """(sources, targets), each None where `size` does not say. Raises UserError for anything else."""
    if not isinstance(size, (tuple, list)):
        of_tensor = isinstance(size, Tensor)
        what = f"{kind_of(size)} of shape {tuple(size.shape)}" if of_tensor else kind_of(size)
        weights = "; weights of edges go to GCNConv or ops.spmm" if of_tensor else ""
        raise _C.UserError(f"size is {what}: give the numbers of nodes, (sources, targets){weights}")
    if len(size) != 2:
        raise _C.UserError(f"size has {len(size)} numbers: give two, (sources, targets)")
    if torch.compiler.is_compiling():  # which may not know them
        return size[0], size[1]
    sources, targets = (None if of is None else whole_number("size", of, 0) for of in size)
    return sources, targets


def _targets_of(edges: Any, said: tuple[int | None, int | None], sources: int) -> int:
    """How many targets there are where they have no features: what a graph, an EdgeIndex or `size` says, else as many as
    sources, as in PyG."""
    if isinstance(edges, Graph):
        return edges.rows
    edges, known = plain_edges(edges)
    if known[1] is not None:
        return known[1]
    if said[1] is not None:
        return said[1]
    if not torch.compiler.is_compiling() and not edges.is_cuda and edges.shape[1] > 0:
        most = int(edges[1].max())
        if most >= sources:
            raise _C.UserError(
                f"edge_index[1] has target {most}, and x has {sources} sources and no features of targets, of which there "
                f"are as many then: give size = ({sources}, number of targets)"
            )
    return sources
