"""Defines `RGCNConv`, the relational graph convolution of Schlichtkrull et al. (arXiv:1703.06103)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import true_or_false, whole_number
from ..._keywords import understands
from ...ops import modes
from ...ops.relational import relational_layer, through_segments
from ...typed_graph import TypedGraph, from_matrices
from .edges import as_typed_graph, check_features, is_matrix, pair_of
from .node_numbers import check_numbers, is_numbers
from .parameters import PYG, block_diagonal, channel_pair, check_aggr, check_blocks, check_input, glorot_

_REDUCTIONS = {"mean": "mean", "max": "max", "sum": "sum", "add": "sum"}


class RGCNConv(torch.nn.Module):
    """W_root x + the sum over relations of W_r · (the mean of the neighbours' features through relation r) + b.

    Args:
        in_channels: of the features of nodes, or (of sources, of targets); of nodes without features their number.
        out_channels: of what comes out.
        num_relations: how many matrices there are.
        num_bases: makes each of them a combination of so many.
        num_blocks: makes each of them block-diagonal, of so many blocks.
        aggr: "mean", "sum", "add" or "max", within a relation; relations are added up.
        root_weight: whether there is W_root.
        is_sorted: as in PyG; edges may come in any order in any case.
        bias: whether a number is added to each channel.
    Returns:
        Of a call with x [N, in_channels], or int32 or int64 [N] numbers of embeddings, or None for one each, or a pair; edge_index
        [2, E] and edge_type [E], or a TypedGraph: [N, out_channels].
    Raises:
        UserError: for other shapes, and for edges of other nodes.
    Waits:
        On a GPU at the first call with a graph, for the number of segments.
    Example:
        >>> layer = nn.graph.RGCNConv(8, 4, num_relations=2)
        >>> layer(torch.randn(3, 8), torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([0, 1, 1])).shape
        torch.Size([3, 4])
    """

    @understands(PYG)
    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        num_relations: int,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        aggr: str = "mean",
        root_weight: bool = True,
        is_sorted: bool = False,
        bias: bool = True,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        of_sources, of_targets = channel_pair(in_channels)
        self.in_channels = in_channels
        self.in_channels_l = of_sources
        self.out_channels = whole_number("out_channels", out_channels, 1)
        self.num_relations = whole_number("num_relations", num_relations, 1, 65_535)
        check_blocks(num_bases, num_blocks, of_sources, out_channels)
        self.num_bases, self.num_blocks = num_bases, num_blocks
        check_aggr(aggr, _REDUCTIONS)
        true_or_false("root_weight", root_weight)
        self.aggr = aggr
        shape: tuple[int, ...] = (num_relations, of_sources, out_channels)
        if num_bases is not None:
            shape = (num_bases, of_sources, out_channels)
        elif num_blocks is not None:
            shape = (num_relations, num_blocks, of_sources // num_blocks, out_channels // num_blocks)
        self.weight = torch.nn.Parameter(torch.empty(shape))
        self.comp = torch.nn.Parameter(torch.empty(num_relations, num_bases)) if num_bases is not None else None
        self.root = torch.nn.Parameter(torch.empty(of_targets, out_channels)) if root_weight else None
        self.bias = torch.nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights: uniform by Glorot, of the last two axes, and no bias."""
        for weight in (self.weight, self.comp, self.root):
            if weight is not None:
                glorot_(weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def matrices(self) -> Tensor:
        """[num_relations, in_channels, out_channels], of bases and blocks too."""
        weight = self.weight
        if self.comp is not None:
            return (self.comp @ weight.flatten(1)).unflatten(1, weight.shape[1:])
        return weight if self.num_blocks is None else block_diagonal(weight)

    def forward(
        self,
        x: Tensor | None | tuple[Tensor | None, Tensor],
        edge_index: TypedGraph | Tensor,
        edge_type: Tensor | None = None,
    ) -> Tensor:
        """[N, in_channels] to [N, out_channels]."""
        sources, targets = pair_of(x)
        if sources is None:
            sources = torch.arange(self.in_channels_l, device=self.weight.device)
        if targets is None:
            targets = sources
        reduce = _REDUCTIONS[self.aggr]
        of_features = is_matrix(sources) and (targets is sources or is_matrix(targets))
        if not of_features or modes.traced(sources):
            self._check_sides(x, sources, targets)
            graph = as_typed_graph(edge_index, edge_type, sources.shape[0], targets.shape[0], self.num_relations)
            if sources.is_floating_point():
                output = ops.rgms(graph, sources, self.matrices(), reduce=reduce)
            else:
                output = self._of_numbers(graph, sources, reduce)
            return self._with_root(output, targets)
        graph = as_typed_graph(edge_index, edge_type, sources.shape[0], targets.shape[0], self.num_relations)
        try:
            own = None if targets is sources else targets
            return relational_layer(graph, sources, self.matrices(), own, self.root, self.bias, reduce)
        except (_C.UserError, RuntimeError):
            self._check_sides(x, sources, targets)  # which takes a tenth of the layer's time
            raise

    def _check_sides(self, x: Any, sources: Any, targets: Any) -> None:
        """Raises UserError, by the names of the arguments, unless both go with the weights."""
        is_pair = isinstance(x, (tuple, list))
        self._check("x[0]" if is_pair else "x", sources, self.in_channels_l, self.weight)
        if self.root is not None:
            self._check("x[1]" if is_pair else "x", targets, self.root.shape[0], self.root)

    def _check(self, name: str, x: Any, channels: int, weight: Tensor) -> None:
        """Raises UserError unless `x` are features or numbers of nodes that go with `weight`."""
        if is_numbers(x):
            return check_numbers(name, x, channels)
        if isinstance(x, Tensor) and not x.is_floating_point() and x.layout is torch.strided:
            raise _C.UserError(
                f"{name} is {x.dtype}: give floats [nodes, channels], or int64 [nodes], numbers of nodes from 0 to {channels - 1}"
            )
        check_features(name, x)
        check_input("RGCNConv", name, x, weight, channels)
        return None

    def _with_root(self, output: Tensor, targets: Tensor) -> Tensor:
        """Adds what a node brings itself, and the bias: in one product where there are both."""
        bias = None if self.bias is None else self.bias.to(output.dtype)
        if self.root is None:
            return output if bias is None else output + bias
        if targets.is_floating_point():
            return output + torch.nn.functional.linear(targets, self.root.t(), self.bias)
        output = output + self.root[targets.long()].to(output.dtype)
        return output if bias is None else output + bias

    def _of_numbers(self, graph: TypedGraph, numbers: Tensor, reduce: str) -> Tensor:
        """Rows of the matrices are what sources bring."""
        if self.num_blocks is not None:
            raise _C.UserError("block-diagonal weights take features, and x is numbers of nodes: give num_bases")
        of_sources = self.matrices()[:, numbers.long()].flatten(0, 1)
        return through_segments(graph.derived("from rows of matrices", from_matrices), of_sources, None, None, reduce)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, num_relations={self.num_relations}"
