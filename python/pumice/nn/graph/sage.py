"""Defines `SAGEConv`, the layer of GraphSAGE (arXiv:1706.02216)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from ... import ops
from ..._checks import true_or_false, whole_number
from ..._keywords import understands
from ...graph import Graph
from ...ops import modes
from ...ops.graphs import biased
from ...ops.neighbours import neighbour_layer
from .edges import messages_of
from .parameters import PYG, channel_pair, check_aggr, check_inputs, is_plain

_REDUCTIONS = {"mean": "mean", "max": "max", "min": "min", "sum": "sum", "add": "sum"}
_LINEAR = ("mean", "sum", "add")


class SAGEConv(torch.nn.Module):
    """W_l · (mean, sum, max or min of the neighbours' features) + W_r x + b.

    Args:
        in_channels: of the features of nodes, or (of sources, of targets).
        out_channels: of what comes out.
        aggr: "mean", "max", "min", "sum" or "add".
        normalize: whether rows that come out have length 1.
        root_weight: whether there is W_r.
        project: whether features of sources go through a layer and ReLU first (the pooling of GraphSAGE, with "max").
        bias: whether a number is added to each channel.
    Returns:
        Of a call with x [N, in_channels], or (of sources, of targets or None), edge_index [2, E] or a Graph, and size:
        [N, out_channels].
    Raises:
        UserError: for another `aggr`, other shapes, and edges of other nodes.
    Waits:
        Never.
    Example:
        >>> layer = nn.graph.SAGEConv(8, 4, aggr="max")
        >>> layer(torch.randn(3, 8), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 4])
    """

    @understands(PYG)
    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        aggr: str = "mean",
        normalize: bool = False,
        root_weight: bool = True,
        project: bool = False,
        bias: bool = True,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        of_sources, of_targets = channel_pair(in_channels)
        self.in_channels = in_channels
        self.out_channels = whole_number("out_channels", out_channels, 1)
        check_aggr(aggr, _REDUCTIONS)
        for name, value in (("normalize", normalize), ("root_weight", root_weight), ("project", project)):
            true_or_false(name, value)
        self.aggr = aggr
        self.normalize = normalize
        self.root_weight = root_weight
        self.project = project
        if project:
            self.lin = torch.nn.Linear(of_sources, of_sources)
        self.lin_l = torch.nn.Linear(of_sources, out_channels, bias=bias)
        if root_weight:
            self.lin_r = torch.nn.Linear(of_targets, out_channels, bias=False)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for layer in self.children():
            layer.reset_parameters()  # type: ignore[operator]

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Graph | Tensor,
        size: tuple[int, int] | None = None,
    ) -> Tensor:
        """[N, in_channels] to [N, out_channels]."""
        graph, sources, targets = messages_of(x, edge_index, size)
        try:
            output = self._summed(graph, sources, targets)
        except RuntimeError:
            check_inputs("SAGEConv", x, (self.lin_l.weight, self.lin_r.weight if self.root_weight else None))
            raise
        return torch.nn.functional.normalize(output, dim=-1) if self.normalize else output

    def _summed(self, graph: Graph, sources: Tensor, targets: Tensor | None) -> Tensor:
        """What neighbours bring, and the node itself."""
        if self.project:
            sources = self.lin(sources).relu()
        with_root = self.root_weight and targets is not None
        reduce = _REDUCTIONS[self.aggr]
        if not self._weighs_first(sources):
            output = self.lin_l(ops.spmm(graph, sources, reduce=reduce))
            return output + self.lin_r(targets) if with_root else output
        of_sources = self.lin_l
        if with_root and self.lin_r.bias is None and is_plain(self.lin_r) and not modes.traced(sources):
            weights = (of_sources.weight, self.lin_r.weight, of_sources.bias)
            return neighbour_layer(graph, sources, None if targets is sources else targets, *weights, reduce)
        output = biased(graph, linear(sources, of_sources.weight), None, reduce, of_sources.bias)
        return output + self.lin_r(targets) if with_root else output

    def _weighs_first(self, sources: Tensor) -> bool:
        """Whether lin_l goes before the sum. Sums and means are linear: the narrower side goes over the edges, and of equal
        sides what is summed last is not kept for the way back."""
        return self.aggr in _LINEAR and self.out_channels <= sources.shape[1] and is_plain(self.lin_l)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, aggr={self.aggr}"
