"""Defines `GATConv`, the layer of graph attention networks (arXiv:1710.10903)."""

from __future__ import annotations

import torch
from torch import Tensor

from ... import ops
from ..._keywords import understands
from ...graph import Graph
from .attention import AttentionConv
from .edges import messages_of
from .parameters import PYG, check_inputs, refuse_attention_weights


class GATConv(AttentionConv):
    """Neighbours' features times W, weighed in each head by softmax(leaky(a_src · W x_j + a_dst · W x_i)). Of edges
    there is one number a head in memory, and never a row of features.

    Args:
        in_channels: of the features of nodes, or (of sources, of targets).
        out_channels: of each head.
        heads: how many there are.
        concat: whether heads come out beside each other; else their mean does.
        negative_slope: of the leaky part.
        dropout: of the weights of edges, in training.
        add_self_loops: whether every node is its own neighbour too, once.
        edge_dim: channels of features of edges, which add to scores: a_edge · W_edge e.
        fill_value: such features of a loop that is added: a number, a tensor, or "mean", "sum", "add", "max" or "min" of
            those that lead to the node.
        bias: whether a number is added to each channel.
        residual: whether a layer of x is added.
    Returns:
        Of a call with x [N, in_channels], or (of sources, of targets or None), edge_index [2, E] or a Graph, edge_attr [E,
        edge_dim] and size: [N, heads · out_channels], or [N, out_channels] of means.
    Raises:
        UserError: for other shapes, and edges of other nodes.
    Waits:
        On a GPU at the first call with a graph at most.
    Example:
        >>> layer = nn.graph.GATConv(8, 4, heads=2)
        >>> layer(torch.randn(3, 8), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 8])
    """

    @understands(PYG)
    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | Tensor | str = "mean",
        bias: bool = True,
        residual: bool = False,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        is_pair = isinstance(in_channels, (tuple, list))
        of_sources, of_targets = self._take(
            in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim, fill_value,
            residual,
        )  # fmt: skip
        width = heads * out_channels
        if is_pair:
            self.lin_src = torch.nn.Linear(of_sources, width, bias=False)
            self.lin_dst = torch.nn.Linear(of_targets, width, bias=False)
        else:
            self.lin = torch.nn.Linear(of_sources, width, bias=False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_edge = None if edge_dim is None else torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self._make_rest(of_targets, residual, bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights: uniform by Glorot, and no bias."""
        self._reset_rest(self.att_src, self.att_dst, *([] if self.att_edge is None else [self.att_edge]))

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Graph | Tensor,
        edge_attr: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor:
        """[N, in_channels] to [N, heads · out_channels] or [N, out_channels]; without PyG's return_attention_weights."""
        if return_attention_weights is not None:
            refuse_attention_weights("GATConv", return_attention_weights)
        graph, sources, targets = messages_of(x, edge_index, size)
        try:
            features, of_sources, of_targets = self._scores(sources, targets)
        except RuntimeError:
            of_source, of_target = (self.lin, self.lin) if hasattr(self, "lin") else (self.lin_src, self.lin_dst)
            check_inputs("GATConv", x, (of_source.weight, of_target.weight))
            raise
        graph, silent, attributes = self._extended(graph, edge_attr)
        scores = None if silent is None else silent.to(of_sources.dtype).expand(-1, self.heads)
        if attributes is not None:
            of_edges = self._edge_scores(attributes)
            scores = of_edges if scores is None else scores + of_edges
        shares = ops.edge_softmax(
            graph, scores, target=of_targets, source=of_sources, negative_slope=self.negative_slope
        )
        return self._combined(graph, features, shares, targets)

    def _edge_scores(self, attributes: Tensor) -> Tensor:
        """[E, heads]. a · (W e) is (a · W) e: features of edges have no more than edge_dim channels."""
        shape = (self.heads, self.out_channels, -1)
        weight = (self.lin_edge.weight.view(shape) * self.att_edge.view(shape)).sum(1)
        return torch.nn.functional.linear(attributes, weight)

    def _scores(self, sources: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """(features [N, heads, C] of sources, and [.., heads] what sources and targets add to a score)"""
        shape = (-1, self.heads, self.out_channels)
        of_source, of_target = (self.lin, self.lin) if hasattr(self, "lin") else (self.lin_src, self.lin_dst)
        features = of_source(sources).view(shape)
        of_sources = (features * self.att_src.to(features.dtype)).sum(-1)
        if targets is None:
            return features, of_sources, None
        mine = features if targets is sources and of_source is of_target else of_target(targets).view(shape)
        return features, of_sources, (mine * self.att_dst.to(mine.dtype)).sum(-1)
