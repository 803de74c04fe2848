"""Defines `RGATConv`, the relational graph attention layer (arXiv:1904.05811)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import number_from, true_or_false, whole_number
from ..._keywords import understands
from ...graph import Graph
from ...ops.relational import softmax_in_segments, through_segments
from ...typed_graph import Segmented, TypedGraph, over_edges
from .edges import as_typed_graph, check_attributes, check_features, check_size_of
from .parameters import PYG, block_diagonal, check_blocks, check_choice, check_input, glorot_, refuse_attention_weights

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

    @understands(PYG)
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
        return_attention_weights: bool | None = None,
    ) -> Tensor:
        """[N, in_channels] to [N, heads · out_channels] or [N, out_channels]; without PyG's return_attention_weights."""
        if return_attention_weights is not None:
            refuse_attention_weights("RGATConv", return_attention_weights)
        check_features("x", x)
        check_input("RGATConv", "x", x, self.q, self.in_channels)
        check_size_of(size, x.shape[0])
        graph = as_typed_graph(edge_index, edge_type, x.shape[0], x.shape[0], self.num_relations)
        sides = graph.derived("sides", _sides)
        matrices = self.matrices()
        # q · (W x) is (W q) · x: rows of nodes become one number for each head.
        of_targets = through_segments(sides.targets, x, matrices @ self.q)
        of_sources = through_segments(sides.sources, x, matrices @ self.k)
        scores = of_targets + of_sources
        of_edges = self._edge_scores(edge_attr, graph)
        if of_edges is not None:
            scores = scores + of_edges
        scores = torch.nn.functional.leaky_relu(scores, self.negative_slope)
        within = self.attention_mechanism == "within-relation"
        shares = softmax_in_segments(graph, scores) if within else ops.edge_softmax(sides.edges, scores)
        shares = torch.nn.functional.dropout(shares, self.dropout, self.training)
        of_heads = [
            ops.rgms(graph, x, matrix, shares[:, head])
            for head, matrix in enumerate(matrices.split(self.out_channels, 2))
        ]
        output = torch.stack(of_heads, 1)
        output = output.flatten(1) if self.concat else output.mean(1)
        return output if self.bias is None else output + self.bias.to(output.dtype)

    def _edge_scores(self, attributes: Tensor | None, graph: TypedGraph) -> Tensor | None:
        """[E, heads], without rows of heads · out_channels for edges."""
        if attributes is None:
            return None
        if self.lin_edge is None or self.e is None:
            raise _C.UserError("edge_attr is given to a layer without edge_dim: make it with their number of channels")
        attributes = check_attributes(attributes, graph, self.edge_dim)
        check_input("RGATConv", "edge_attr", attributes, self.e, None)
        return torch.nn.functional.linear(attributes, self.e.t() @ self.lin_edge.weight)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, num_relations={self.num_relations}, heads={self.heads}"


class _Sides(NamedTuple):
    """What gives each edge the numbers of its two nodes, computed once for each pair of a relation and a node."""

    targets: Segmented
    sources: Segmented
    edges: Graph  # of all relations, in the order they were given in


def _sides(graph: TypedGraph) -> _Sides:
    edge_index = graph.edge_index
    back = TypedGraph(edge_index.flip(0), graph.edge_type, (graph.rows, graph.columns), graph.relations)
    return _Sides(over_edges(graph), over_edges(back), Graph(edge_index, (graph.columns, graph.rows)))
