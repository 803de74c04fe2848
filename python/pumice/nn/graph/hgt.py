"""Defines `HGTConv`, the layer of heterogeneous graph transformers (arXiv:2003.01332)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import kind_of, whole_number
from ..._edges import BY_TYPE
from ..._keywords import understands
from ...graph import Graph, graphs_of_run
from ...typed_graph import check_range
from .edges import check_features, checked_edges, kept
from .hetero_linear import HeteroLinear
from .parameters import PYG, check_input

EdgeType = tuple[str, str, str]


class HGTConv(torch.nn.Module):
    """Nodes and edges of several types: in each head neighbours' values V_r v_j, weighed by softmax(p_r · q_i · K_r k_j /
    √D) over all edges that lead to a node, then GELU, a layer for the type of the node, and what it was before in a
    share that is learnt. K_r and V_r go over nodes; of edges there is one number a head in memory.

    Args:
        in_channels: of the features of nodes, one number or a dict by their types.
        out_channels: of what comes out, of all heads.
        metadata: (types of nodes, types of edges), these as (of the source, name, of the target).
        heads: how many there are, a divisor of out_channels.
    Returns:
        Of a call with features of nodes by type and edges [2, E] by type: [N, out_channels] by type, for the types that
        edges of the metadata lead to.
    Raises:
        UserError: for other shapes, types that there are not, and edges of other nodes.
    Waits:
        On a GPU at the first call with such edges at most.
    Example:
        >>> layer = nn.graph.HGTConv(8, 4, (["paper", "author"], [("author", "writes", "paper")]), heads=2)
        >>> x = {"paper": torch.randn(3, 8), "author": torch.randn(2, 8)}
        >>> layer(x, {("author", "writes", "paper"): torch.tensor([[0, 1, 1], [0, 1, 2]])})["paper"].shape
        torch.Size([3, 4])
    """

    @understands(PYG)
    def __init__(
        self,
        in_channels: int | dict[str, int],
        out_channels: int,
        metadata: tuple[Sequence[str], Sequence[EdgeType]],
        heads: int = 1,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.node_types, self.edge_types = _checked(metadata)
        if not isinstance(in_channels, dict):
            in_channels = dict.fromkeys(self.node_types, in_channels)
        if set(in_channels) != set(self.node_types):
            raise _C.UserError(f"in_channels are of {list(in_channels)}: give those of {self.node_types}")
        self.in_channels = {name: whole_number("in_channels", width, 1) for name, width in in_channels.items()}
        self.out_channels = whole_number("out_channels", out_channels, 1)
        self.heads = whole_number("heads", heads, 1)
        if out_channels % heads:
            raise _C.UserError(f"{heads} heads of {out_channels} channels: give a divisor")
        width = out_channels // heads
        self.kqv_lin = _LinearByType(self.in_channels, 3 * out_channels)
        self.out_lin = _LinearByType(dict.fromkeys(self.node_types, out_channels), out_channels)
        self.k_rel = HeteroLinear(width, width, heads * len(self.edge_types), bias=False)
        self.v_rel = HeteroLinear(width, width, heads * len(self.edge_types), bias=False)
        # Optimizers keep what they know of parameters by their places, which are those of PyG: a ParameterDict sorts what
        # it is given as a dict, and keeps the order of what is put into it.
        self.skip = torch.nn.ParameterDict({name: torch.nn.Parameter(torch.ones(1)) for name in self.node_types})
        self.p_rel = torch.nn.ParameterDict()
        for kind in self.edge_types:
            self.p_rel["__".join(kind)] = torch.nn.Parameter(torch.ones(1, heads))

    def reset_parameters(self) -> None:
        """Draws new weights, and sets shares and factors back."""
        for layer in (*self.kqv_lin.lins.values(), *self.out_lin.lins.values(), self.k_rel, self.v_rel):
            layer.reset_parameters()  # type: ignore[operator]
        for parameter in (*self.skip.values(), *self.p_rel.values()):
            torch.nn.init.ones_(parameter)

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: dict[EdgeType, Tensor]) -> dict[str, Tensor]:
        """[N, in_channels] by type to [N, out_channels] by type."""
        edge_index_dict = self._checked(x_dict, edge_index_dict)
        heads, width = self.heads, self.out_channels // self.heads
        keys, queries, values = {}, {}, {}
        for name, x in x_dict.items():
            split = self._split(name, x).view(-1, 3, heads, width)
            keys[name], queries[name], values[name] = split.unbind(1)
        of_keys, of_values = [], []
        for kind in edge_index_dict:
            scale = self.p_rel["__".join(kind)].view(heads, 1, 1) / width**0.5
            of_keys.append(self._related(keys[kind[0]], self.k_rel.weight, kind, scale))
            of_values.append(self._related(values[kind[0]], self.v_rel.weight, kind))
        query = torch.cat(list(queries.values()))
        if of_keys:
            graph = self._graph(x_dict, edge_index_dict)
            shares = ops.edge_softmax(graph, ops.sddmm(graph, query, torch.cat(of_keys)))
            output = ops.spmm(graph, torch.cat(of_values), shares)
        else:
            output = torch.zeros_like(query)
        parts = output.flatten(1).split([x.shape[0] for x in x_dict.values()])
        reached = {kind[2] for kind in self.edge_types}
        return {name: self._after(name, part, x_dict[name]) for name, part in zip(x_dict, parts) if name in reached}

    def _split(self, name: str, x: Tensor) -> Tensor:
        """[N, 3 · out_channels]: keys, queries and values of nodes of a type."""
        layer = self.kqv_lin.lins[name]
        try:
            return layer(x)  # type: ignore[no-any-return]
        except RuntimeError:
            check_input("HGTConv", f"x_dict[{name!r}]", x, layer.weight, self.in_channels[name])  # type: ignore[arg-type]
            raise

    def _related(self, features: Tensor, weight: Tensor, kind: EdgeType, scale: Tensor | float = 1.0) -> Tensor:
        """[N, heads, D] of the nodes that edges of a type come from, times the matrices of that type, one a head."""
        count = len(self.edge_types)
        matrices = weight[self.edge_types.index(kind) :: count] * scale
        return torch.einsum("nhi,hio->nho", features, matrices)

    def _after(self, name: str, messages: Tensor, x: Tensor) -> Tensor:
        output = self.out_lin.lins[name](torch.nn.functional.gelu(messages))
        if output.shape[1] != x.shape[1]:
            return output
        share = self.skip[name].sigmoid()
        return share * output + (1 - share) * x

    def _graph(self, x_dict: dict[str, Tensor], edge_index_dict: dict[EdgeType, Tensor]) -> Graph:
        """From sources, which stand once for each type of edges that leave them, to all nodes."""
        targets, sources = {}, []
        rows = columns = 0
        for name, x in x_dict.items():
            targets[name] = rows
            rows += x.shape[0]
        for kind in edge_index_dict:
            sources.append(columns)
            columns += x_dict[kind[0]].shape[0]
        begins = [targets[kind[2]] for kind in edge_index_dict]
        given = list(edge_index_dict.values())

        def make() -> Graph:
            for kind, edges in edge_index_dict.items():
                _check_numbers(kind, edges, (x_dict[kind[0]].shape[0], x_dict[kind[2]].shape[0]))
            parts = [
                torch.stack([edges[0] + source, edges[1] + target])
                for edges, source, target in zip(map(Tensor.long, given), sources, begins)
            ]
            return Graph(torch.cat(parts, 1), (columns, rows))

        # -1 tells them from the sizes of other layers' graphs.
        return kept(given[0], (columns, rows, -1, *sources, *begins), make, *given[1:])  # type: ignore[no-any-return]

    def _checked(self, x_dict: Any, edge_index_dict: Any) -> dict[EdgeType, Tensor]:
        """The edges as ordinary tensors. Raises UserError for what does not fit."""
        for name, given in (("x_dict", x_dict), ("edge_index_dict", edge_index_dict)):
            if not isinstance(given, dict):
                raise _C.UserError(f"{name} is {kind_of(given)}: give a dict by type")
        if not x_dict:
            raise _C.UserError(f"x_dict is empty: give features of nodes of {self.node_types}")
        for name, x in x_dict.items():
            if name not in self.in_channels:
                raise _C.UserError(f"x_dict has {name!r}: there are nodes of {self.node_types}")
            check_features(f"x_dict[{name!r}]", x)
        checked = {}
        for kind, edges in edge_index_dict.items():
            if kind not in self.edge_types:
                raise _C.UserError(f"edge_index_dict has {kind!r}: there are edges of {self.edge_types}")
            for name in (kind[0], kind[2]):
                if name not in x_dict:
                    raise _C.UserError(f"edge_index_dict has {kind!r}, and x_dict no {name!r}: give their features")
            sizes = (x_dict[kind[0]].shape[0], x_dict[kind[2]].shape[0])
            checked[kind] = checked_edges(edges, *sizes, BY_TYPE, _name_of(kind))
        return checked

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"


class _LinearByType(torch.nn.Module):
    """Holds a layer for each type of nodes, under the names that PyG gives them."""

    def __init__(self, in_channels: dict[str, int], out_channels: int) -> None:
        super().__init__()
        self.lins = torch.nn.ModuleDict(
            {name: torch.nn.Linear(width, out_channels) for name, width in in_channels.items()}
        )


def _name_of(kind: EdgeType) -> str:
    return f"edge_index_dict[{kind!r}]"


def _check_numbers(kind: EdgeType, edges: Tensor, sizes: tuple[int, int]) -> None:
    """Raises UserError for edges that in a graph of all nodes would lead to nodes of another type; in a compiled function,
    and while a CUDA graph is recorded, PyTorch raises when it runs. Edges of a GraphsOfRun were looked at."""
    if graphs_of_run() is not None:
        return
    if not torch.compiler.is_compiling() and edges.shape[1] == 0:
        return
    for row, limit in enumerate(sizes):
        numbers = edges[row]
        if torch.compiler.is_compiling() or (edges.is_cuda and torch.cuda.is_current_stream_capturing()):
            are_inside = ((numbers >= 0) & (numbers < limit)).all()
            torch._assert_async(are_inside, f"{_name_of(kind)}[{row}] has numbers that are none of its nodes")
            continue
        check_range(f"{_name_of(kind)}[{row}]", numbers, torch.stack(torch.aminmax(numbers)).tolist(), limit)


def _checked(metadata: Any) -> tuple[list[str], list[EdgeType]]:
    """The types of nodes and of edges. Raises UserError where these are not such."""
    if not isinstance(metadata, (tuple, list)) or len(metadata) != 2:
        raise _C.UserError(f"metadata is {kind_of(metadata)}: give (types of nodes, types of edges)")
    nodes, edges = list(metadata[0]), [tuple(kind) if isinstance(kind, list) else kind for kind in metadata[1]]
    for name in nodes:
        if not isinstance(name, str) or "." in name or not name:
            raise _C.UserError(f"metadata[0] has {name!r}: give names without a point")
    for kind in edges:
        fits = isinstance(kind, tuple) and len(kind) == 3 and isinstance(kind[1], str) and "." not in kind[1]
        if not fits or kind[0] not in nodes or kind[2] not in nodes:
            raise _C.UserError(f"metadata[1] has {kind!r}: give (a type of nodes, a name without a point, a type of nodes)")
    if not nodes or not edges:
        raise _C.UserError(f"metadata has {len(nodes)} types of nodes and {len(edges)} of edges: give one of each at least")
    return nodes, edges
