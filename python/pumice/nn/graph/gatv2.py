"""Defines `GATv2Conv`, the layer of graph attention networks whose attention depends on both nodes (arXiv:2105.14491)."""

from __future__ import annotations

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import true_or_false
from ..._keywords import understands
from ...graph import Graph
from .attention import AttentionConv
from .edges import messages_of, pair_of
from .parameters import PYG, check_inputs, refuse_attention_weights


class GATv2Conv(AttentionConv):
    """Neighbours' features W_l x_j, weighed in each head by softmax(att · leaky(W_l x_j + W_r x_i + W_edge e)). Without
    features of edges there is one number an edge and head in memory, and never a row of features; with them
    W_edge e is one, [E, heads · out_channels], and so is its gradient.

    Args:
        in_channels: of the features of nodes, or (of sources, of targets).
        out_channels: of each head.
        heads: how many there are.
        concat: whether heads come out beside each other; else their mean does.
        negative_slope: of the leaky part.
        dropout: of the weights of edges, in training.
        add_self_loops: whether every node is its own neighbour too, once.
        edge_dim: channels of features of edges.
        fill_value: such features of a loop that is added: a number, a tensor, or "mean", "sum", "add", "max" or "min" of
            those that lead to the node.
        bias: whether numbers are added to each channel, of W_l x, of W_r x, and of what comes out.
        share_weights: whether W_r is W_l.
        residual: whether a layer of x is added.
    Returns:
        Of a call with x [N, in_channels], or (of sources, of targets), edge_index [2, E] or a Graph, and edge_attr [E,
        edge_dim]: [N, heads · out_channels], or [N, out_channels] of means.
    Raises:
        UserError: for other shapes, and edges of other nodes.
    Waits:
        On a GPU at the first call with a graph at most.
    Example:
        >>> layer = nn.graph.GATv2Conv(8, 4, heads=2)
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
        share_weights: bool = False,
        residual: bool = False,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        of_sources, of_targets = self._take(
            in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim, fill_value,
            residual,
        )  # fmt: skip
        true_or_false("share_weights", share_weights)
        if share_weights and of_sources != of_targets:
            raise _C.UserError(
                f"share_weights with {of_sources} channels of sources and {of_targets} of targets: give as many"
            )
        self.share_weights = share_weights
        width = heads * out_channels
        self.lin_l = torch.nn.Linear(of_sources, width, bias=bias)
        self.lin_r = self.lin_l if share_weights else torch.nn.Linear(of_targets, width, bias=bias)
        self.att = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self._make_rest(of_targets, residual, bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights: uniform by Glorot, and no bias behind the sum."""
        self._reset_rest(self.att)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor],
        edge_index: Graph | Tensor,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor:
        """[N, in_channels] to [N, heads · out_channels] or [N, out_channels]; without PyG's return_attention_weights."""
        if return_attention_weights is not None:
            refuse_attention_weights("GATv2Conv", return_attention_weights)
        if isinstance(x, tuple) and pair_of(x)[1] is None:
            raise _C.UserError("features of targets are None: scores are made of those of both sides")
        graph, sources, targets = messages_of(x, edge_index, None)
        try:
            features, mine = self._sides(sources, targets)
        except RuntimeError:
            check_inputs("GATv2Conv", x, (self.lin_l.weight, self.lin_r.weight))
            raise
        graph, silent, attributes = self._extended(graph, edge_attr)
        of_edges = None
        if attributes is not None and self.lin_edge is not None:
            of_edges = self.lin_edge(attributes).unflatten(1, (self.heads, self.out_channels))
        attention = self.att[0].to(features.dtype)
        scores = ops.edge_scores(graph, mine, features, attention, of_edges, negative_slope=self.negative_slope)
        if silent is not None:
            scores = scores + silent.to(scores.dtype)
        return self._combined(graph, features, ops.edge_softmax(graph, scores), targets)

    def _sides(self, sources: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor]:
        """W_l x of sources and W_r x of targets, [.., heads, C]."""
        shape = (-1, self.heads, self.out_channels)
        features = self.lin_l(sources).view(shape)
        if targets is sources and self.lin_r is self.lin_l:
            return features, features
        return features, self.lin_r(targets).view(shape)
