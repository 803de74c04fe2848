"""Defines `GATConv`, the layer of graph attention networks (arXiv:1710.10903)."""

from __future__ import annotations

import torch
from torch import Tensor

from ... import ops
from ..._checks import number_from, true_or_false, whole_number
from ...graph import Graph
from .edges import WithLoops, messages_of, with_loops
from .parameters import channel_pair, glorot_


class GATConv(torch.nn.Module):
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
        bias: whether a number is added to each channel.
        residual: whether a layer of x is added.
    Returns:
        Of a call with x [N, in_channels], or (of sources, of targets or None), edge_index [2, E] or a Graph, and size:
        [N, heads · out_channels], or [N, out_channels] of means.
    Raises:
        UserError: for other shapes, and edges of other nodes.
    Waits:
        On a GPU at the first call with a graph at most.
    Example:
        >>> layer = nn.graph.GATConv(8, 4, heads=2)
        >>> layer(torch.randn(3, 8), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        bias: bool = True,
        residual: bool = False,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        is_pair = isinstance(in_channels, (tuple, list))
        of_sources, of_targets = channel_pair(in_channels)
        self.in_channels = in_channels
        self.out_channels = whole_number("out_channels", out_channels, 1)
        self.heads = whole_number("heads", heads, 1)
        for name, value in (("concat", concat), ("add_self_loops", add_self_loops), ("residual", residual)):
            true_or_false(name, value)
        self.concat = concat
        self.negative_slope = number_from("negative_slope", negative_slope, 0.0, 1e30)
        self.dropout = number_from("dropout", dropout, 0.0, 1.0)
        self.add_self_loops = add_self_loops
        width = heads * out_channels
        if is_pair:
            self.lin_src = torch.nn.Linear(of_sources, width, bias=False)
            self.lin_dst = torch.nn.Linear(of_targets, width, bias=False)
        else:
            self.lin = torch.nn.Linear(of_sources, width, bias=False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        width = width if concat else out_channels
        self.res = torch.nn.Linear(of_targets, width, bias=False) if residual else None
        self.bias = torch.nn.Parameter(torch.empty(width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights: uniform by Glorot, and no bias."""
        for weight in (*(layer.weight for layer in self.children()), self.att_src, self.att_dst):
            glorot_(weight)  # type: ignore[arg-type]
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Graph | Tensor,
        size: tuple[int, int] | None = None,
    ) -> Tensor:
        """[N, in_channels] to [N, heads · out_channels] or [N, out_channels]."""
        graph, sources, targets = messages_of(x, edge_index, size)
        features, of_sources, of_targets = self._scores(sources, targets)
        scores = None
        if self.add_self_loops:
            extended = with_loops(graph)
            scores = extended.graph.derived("repeated", lambda _: _silent(extended))
            graph = extended.graph
        if scores is not None:
            scores = scores.to(of_sources.dtype).expand(-1, self.heads)
        shares = ops.edge_softmax(
            graph, scores, target=of_targets, source=of_sources, negative_slope=self.negative_slope
        )
        shares = torch.nn.functional.dropout(shares, self.dropout, self.training)
        output = ops.spmm(graph, features, shares)
        output = output.flatten(1) if self.concat else output.mean(1)
        if self.res is not None and targets is not None:
            output = output + self.res(targets)
        return output if self.bias is None else output + self.bias.to(output.dtype)

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

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"


def _silent(extended: WithLoops) -> Tensor | None:
    """[E + nodes, 1]: minus infinity for edges that count nothing; None where there are none, which a compiled function
    does not look for."""
    repeated = extended.repeated
    if not torch.compiler.is_compiling() and not bool(repeated.any()):
        return None
    zeros = torch.zeros(extended.graph.entries, device=repeated.device)
    zeros[: repeated.shape[0]].masked_fill_(repeated, float("-inf"))
    return zeros.unsqueeze(1)
