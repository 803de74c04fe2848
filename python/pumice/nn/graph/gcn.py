"""Defines `GCNConv`, the graph convolution of Kipf and Welling (arXiv:1609.02907)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._checks import true_or_false, whole_number
from ..._keywords import understands
from ...graph import Graph
from ...ops import modes
from ...ops.graphs import biased
from .edges import as_graph, check_features, loop_of_edges, with_loops
from .parameters import PYG, check_inputs, glorot_, weights_of_edges


class GCNConv(torch.nn.Module):
    """D^-1/2 (A + I) D^-1/2 x W + b, where D is the diagonal of the sums of rows of A + I.

    With `add_self_loops` the last of several edges with weights from a node to itself counts and has a gradient, on every
    device (PyG takes any of them on a GPU, and gives all of them a gradient); without, all of them count.

    Args:
        in_channels: of the features of nodes.
        out_channels: of what comes out.
        improved: the edge of a node to itself weighs 2, where edges have weights (as PyG has it: without them it weighs 1).
        cached: as in PyG; norms without edge weights are kept with the graph in any case, and found for another graph.
        add_self_loops: whether nodes without an edge to themselves get one; None: where there is D.
        normalize: whether there is D; without it edges weigh what is given, or 1.
        bias: whether a number is added to each channel.
    Returns:
        Of a call with x [N, in_channels], edge_index [2, E] or a Graph, and edge_weight [E] or None: [N, out_channels].
    Raises:
        UserError: for other shapes, for edges of other nodes, and for edges to be added where there is no D.
    Waits:
        On a GPU at the first call with a graph at most.
    Example:
        >>> layer = nn.graph.GCNConv(8, 4)
        >>> layer(torch.randn(3, 8), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 4])
    """

    @understands(PYG)
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        improved: bool = False,
        cached: bool = False,
        add_self_loops: bool | None = None,
        normalize: bool = True,
        bias: bool = True,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.in_channels = whole_number("in_channels", in_channels, 1)
        self.out_channels = whole_number("out_channels", out_channels, 1)
        for name, value in (("improved", improved), ("cached", cached), ("normalize", normalize)):
            true_or_false(name, value)
        if add_self_loops is None:
            add_self_loops = normalize
        true_or_false("add_self_loops", add_self_loops)
        if add_self_loops and not normalize:
            raise _C.UserError(
                "add_self_loops = True and normalize = False: edges are added where there are norms; give one of the two"
            )
        self.improved = improved
        self.add_self_loops = add_self_loops
        self.normalize = normalize
        self.lin = torch.nn.Linear(in_channels, out_channels, bias=False)
        self.bias = torch.nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights: uniform by Glorot, and no bias."""
        glorot_(self.lin.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, edge_index: Graph | Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """[N, in_channels] to [N, out_channels]."""
        check_features("x", x)
        graph = as_graph(edge_index, x.shape[0], x.shape[0])
        graph, weights = self._weighted(graph, edge_weight, modes.sum_type(x.dtype))
        try:
            features = self.lin(x)
        except RuntimeError:
            check_inputs("GCNConv", x, (self.lin.weight, None))
            raise
        if weights is not None:
            weights = weights.to(features.dtype)
        return biased(graph, features, weights, "sum", self.bias)

    def _weighted(
        self, graph: Graph, edge_weight: Tensor | None, dtype: torch.dtype
    ) -> tuple[Graph, Tensor | None]:
        """The graph to go over, and what its entries weigh."""
        if edge_weight is not None:
            edge_weight = weights_of_edges(edge_weight, graph.entries)
        if not self.normalize:
            return graph, edge_weight
        call = (dtype, self.add_self_loops, self.improved)
        if edge_weight is not None:
            return _normalized(graph, edge_weight, *call)
        return graph.derived(("gcn", *call), lambda graph: _normalized(graph, None, *call))

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"


def _normalized(
    graph: Graph, edge_weight: Tensor | None, dtype: torch.dtype, add_self_loops: bool, improved: bool
) -> tuple[Graph, Tensor]:
    """Each weight over the roots of the sums of its source's row and its target's."""
    if edge_weight is None:
        weights = graph.edge_index.new_ones(graph.entries, dtype=dtype)
    else:
        weights = edge_weight.to(dtype)
    if add_self_loops:
        extended = with_loops(graph)
        loops = weights.new_ones(extended.graph.entries - graph.entries + 1)  # the last one: of no node
        if edge_weight is not None:
            # An edge from a node to itself that was there gives its weight to the one that was added.
            loops = loops.fill_(2.0 if improved else 1.0).scatter(0, loop_of_edges(graph), weights)
        weights = torch.cat([weights.masked_fill(extended.repeated, 0.0), loops[:-1]])
        graph, source, target = extended.graph, extended.source, extended.target
    else:
        source, target = graph.edge_index
    degrees = weights.new_zeros(graph.rows).index_add(0, target, weights)
    roots = degrees.pow(-0.5)
    roots = roots.masked_fill(degrees == 0, 0.0)
    return graph, roots[source] * weights * roots[target]
