"""Defines `RGATConv`, the relational graph attention layer (arXiv:1904.05811)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import number_from, true_or_false, whole_number
from ...graph import Graph
from ...typed_graph import TypedGraph, TypedRows
from .edges import as_typed_graph, check_attributes, check_features, check_size_of
from .parameters import block_diagonal, check_blocks, check_choice, check_input, glorot_

_MECHANISMS = ("across-relation", "within-relation")


class RGATConv(torch.nn.Module):
    """Neighbours' features W_r x_j, weighed in each head by softmax(leaky(q · W_r x_i + k · W_r x_j + e · W_edge e_ij)) over
    all edges that lead to a node, or over those of one relation. Of PyG's there are the additive attention, of dim 1,
    and no modulation (`mod`).

    Args:
        in_channels: of the features of nodes.
        out_channels: of each head.
        num_relations: how many matrices there are.
        num_bases: makes each of them a combination of so many.
        num_blocks: makes each of them block-diagonal, of so many blocks.
        mod: None.
        attention_mechanism: "across-relation" or "within-relation".
        attention_mode: "additive-self-attention".
        heads: how many there are.
        dim: 1.
        concat: whether heads come out beside each other; else their mean does.
        negative_slope: of the leaky part.
        dropout: of the weights of edges, in training.
        edge_dim: channels of features of edges.
        bias: whether a number is added to each channel.
    Returns:
        Of a call with x [N, in_channels], edge_index [2, E] and edge_type [E] or a TypedGraph, edge_attr [E, edge_dim] and
        size, which is (N, N): [N, heads · out_channels], or [N, out_channels] of means.
    Raises:
        UserError: for what there is not, other shapes, and edges of other nodes.
    Waits:
        On a GPU at the first call with a graph, for the number of segments.
    Example:
        >>> layer = nn.graph.RGATConv(8, 4, num_relations=2, heads=2)
        >>> layer(torch.randn(3, 8), torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([0, 1, 1])).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_relations: int,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        mod: str | None = None,
        attention_mechanism: str = "across-relation",
        attention_mode: str = "additive-self-attention",
        heads: int = 1,
        dim: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        edge_dim: int | None = None,
        bias: bool = True,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.in_channels = whole_number("in_channels", in_channels, 1)
        self.out_channels = whole_number("out_channels", out_channels, 1)
        self.num_relations = whole_number("num_relations", num_relations, 1, 65_535)
        self.heads = whole_number("heads", heads, 1)
        self.num_bases, self.num_blocks = num_bases, num_blocks
        if mod is not None:
            raise _C.UserError(f"mod = {mod!r}: there is attention without modulation here, mod=None")
        check_choice("attention_mechanism", attention_mechanism, _MECHANISMS)
        check_choice("attention_mode", attention_mode, ("additive-self-attention",))
        self.dim = whole_number("dim", dim, 1, 1)
        self.attention_mechanism = attention_mechanism
        true_or_false("concat", concat)
        self.concat = concat
        self.negative_slope = number_from("negative_slope", negative_slope, 0.0, 1e30)
        self.dropout = number_from("dropout", dropout, 0.0, 1.0)
        self.edge_dim = None if edge_dim is None else whole_number("edge_dim", edge_dim, 1)
        width = heads * out_channels
        check_blocks(num_bases, num_blocks, in_channels, width)
        self.q = torch.nn.Parameter(torch.empty(width, heads))
        self.k = torch.nn.Parameter(torch.empty(width, heads))
        self.bias = torch.nn.Parameter(torch.empty(width if concat else out_channels)) if bias else None
        self.lin_edge = None if edge_dim is None else torch.nn.Linear(edge_dim, width, bias=False)
        self.e = None if edge_dim is None else torch.nn.Parameter(torch.empty(width, heads))
        self._make_weights(width)
        self.reset_parameters()

    def _make_weights(self, width: int) -> None:
        if self.num_bases is not None:
            self.att = torch.nn.Parameter(torch.empty(self.num_relations, self.num_bases))
            self.basis = torch.nn.Parameter(torch.empty(self.num_bases, self.in_channels, width))
        else:
            blocks = self.num_blocks
            shape = (blocks, self.in_channels // blocks, width // blocks) if blocks else (self.in_channels, width)
            self.weight = torch.nn.Parameter(torch.empty(self.num_relations, *shape))
        # Of modulations, which PyG's layer has in any case: a state dict loads by name.
        channels = self.out_channels
        self.w = torch.nn.Parameter(torch.empty(channels))
        self.l1 = torch.nn.Parameter(torch.empty(1, channels))
        self.b1 = torch.nn.Parameter(torch.empty(1, channels))
        self.l2 = torch.nn.Parameter(torch.empty(channels, channels))
        self.b2 = torch.nn.Parameter(torch.empty(1, channels))

    def reset_parameters(self) -> None:
        """Draws new weights: uniform by Glorot, of the last two axes, and no bias."""
        weights = [self.basis, self.att] if self.num_bases is not None else [self.weight]
        if self.lin_edge is not None and self.e is not None:
            weights += [self.lin_edge.weight, self.e]
        for weight in (*weights, self.q, self.k):
            glorot_(weight)
        for parameter, value in ((self.w, 1), (self.l1, 1), (self.b1, 0), (self.l2, 1 / self.out_channels), (self.b2, 0)):
            torch.nn.init.constant_(parameter, value)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def matrices(self) -> Tensor:
        """[num_relations, in_channels, heads · out_channels], of bases and blocks too."""
        if self.num_bases is not None:
            return torch.einsum("rb,bio->rio", self.att, self.basis)
        return self.weight if self.num_blocks is None else block_diagonal(self.weight)

    def forward(
        self,
        x: Tensor,
        edge_index: TypedGraph | Tensor,
        edge_type: Tensor | None = None,
        edge_attr: Tensor | None = None,
        size: tuple[int, int] | None = None,
    ) -> Tensor:
        """[N, in_channels] to [N, heads · out_channels] or [N, out_channels]."""
        check_features("x", x)
        check_input("RGATConv", "x", x, self.q, self.in_channels)
        check_size_of(size, x.shape[0])
        graph = as_typed_graph(edge_index, edge_type, x.shape[0], x.shape[0], self.num_relations)
        sides = graph.gather.derived("sides", lambda _: _sides(graph))
        matrices = self.matrices()
        # q · (W x) is (W q) · x: rows of nodes become one number for each head.
        of_targets = ops.typed_linear(x[sides.target], matrices @ self.q, graph.segments)
        of_sources = ops.typed_linear(x[sides.source], matrices @ self.k, sides.by_source)
        scores = of_targets[sides.segment] + of_sources[sides.segment_by_source]
        of_edges = self._edge_scores(edge_attr, graph)
        if of_edges is not None:
            scores = scores + of_edges
        scores = torch.nn.functional.leaky_relu(scores, self.negative_slope)
        rows = graph.gather if self.attention_mechanism == "within-relation" else sides.edges
        shares = torch.nn.functional.dropout(ops.edge_softmax(rows, scores), self.dropout, self.training)
        messages = []
        for head, matrix in enumerate(matrices.split(self.out_channels, 2)):
            gathered = ops.spmm(graph.gather, x, shares[:, head])
            messages.append(ops.typed_linear(gathered, matrix, graph.segments))
        output = ops.spmm(graph.scatter, torch.stack(messages, 1))
        output = output.flatten(1) if self.concat else output.mean(1)
        return output if self.bias is None else output + self.bias.to(output.dtype)

    def _edge_scores(self, attributes: Tensor | None, graph: TypedGraph) -> Tensor | None:
        """[E, heads], without rows of heads · out_channels for edges."""
        if attributes is None:
            return None
        if self.lin_edge is None or self.e is None:
            raise _C.UserError("edge_attr is given to a layer without edge_dim: make it with their number of channels")
        attributes = check_attributes(attributes, graph.gather, self.edge_dim)
        check_input("RGATConv", "edge_attr", attributes, self.e, None)
        return torch.nn.functional.linear(attributes, self.e.t() @ self.lin_edge.weight)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, num_relations={self.num_relations}, heads={self.heads}"


class _Sides(NamedTuple):
    """Pairs of a relation and a target are the segments of a typed graph; those of a relation and a source are numbered
    in the same way, so that what a node brings to scores is computed once for each."""

    target: Tensor  # int64 [segments]
    segment: Tensor  # int64 [E]
    source: Tensor  # int64 [segments by source]
    segment_by_source: Tensor  # int64 [E]
    by_source: TypedRows
    edges: Graph  # of all relations, in the order they were given in


def _sides(graph: TypedGraph) -> _Sides:
    source, segment = graph.gather.edge_index
    target = graph.scatter.edge_index[1]
    to = target[segment]
    kind = graph.kind_of_segment()[segment]
    back = TypedGraph(torch.stack([to, source]), kind, (graph.rows, graph.columns), graph.relations)
    edges = Graph(torch.stack([source, to]), (graph.columns, graph.rows))
    by_source = back.gather.edge_index[1]
    return _Sides(target, segment, back.scatter.edge_index[1], by_source, back.segments, edges)
