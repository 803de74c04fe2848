"""What layers of graph attention share: the arguments of heads, loops with features of edges, and the sum of messages."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import number_from, true_or_false, whole_number
from ...graph import Graph, graphs_of_run
from ...ops.graphs import biased
from .edges import WithLoops, attributes_with_loops, check_attributes, with_loops
from .parameters import channel_pair, check_fill, check_input, glorot_


class AttentionConv(torch.nn.Module):
    """Heads whose messages are weighed by shares of edges."""

    lin_edge: torch.nn.Linear | None
    res: torch.nn.Linear | None
    bias: torch.nn.Parameter | None

    def _take(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int,
        concat: bool,
        negative_slope: float,
        dropout: float,
        add_self_loops: bool,
        edge_dim: int | None,
        fill_value: float | Tensor | str,
        residual: bool,
    ) -> tuple[int, int]:
        """Keeps the arguments that fit; returns the channels of sources and of targets."""
        pair = channel_pair(in_channels)
        self.in_channels = in_channels
        self.out_channels = whole_number("out_channels", out_channels, 1)
        self.heads = whole_number("heads", heads, 1)
        for name, value in (("concat", concat), ("add_self_loops", add_self_loops), ("residual", residual)):
            true_or_false(name, value)
        self.concat = concat
        self.negative_slope = number_from("negative_slope", negative_slope, 0.0, 1e30)
        self.dropout = number_from("dropout", dropout, 0.0, 1.0)
        self.add_self_loops = add_self_loops
        self.edge_dim = None if edge_dim is None else whole_number("edge_dim", edge_dim, 1)
        check_fill(fill_value)
        self.fill_value = fill_value
        return pair

    def _make_rest(self, of_targets: int, residual: bool, bias: bool) -> None:
        """Layers of edges and of what is added behind, and the bias."""
        width = self.heads * self.out_channels
        self.lin_edge = None if self.edge_dim is None else torch.nn.Linear(self.edge_dim, width, bias=False)
        width = width if self.concat else self.out_channels
        self.res = torch.nn.Linear(of_targets, width, bias=False) if residual else None
        self.bias = torch.nn.Parameter(torch.empty(width)) if bias else None

    def _reset_rest(self, *weights: Tensor) -> None:
        """Draws new weights: uniform by Glorot, and no bias."""
        for layer in self.children():
            layer.reset_parameters()  # type: ignore[operator]
            glorot_(layer.weight)  # type: ignore[arg-type]
        for weight in weights:
            glorot_(weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def _extended(self, graph: Graph, attributes: Any) -> tuple[Graph, Tensor | None, Tensor | None]:
        """(graph, scores that silence repeated loops, features of edges), with loops where they are wanted."""
        if attributes is not None:
            if self.lin_edge is None:
                raise _C.UserError("edge_attr is given to a layer without edge_dim: make it with their number of channels")
            attributes = check_attributes(attributes, graph, self.edge_dim)
            check_input(type(self).__name__, "edge_attr", attributes, self.lin_edge.weight, None)
        if not self.add_self_loops:
            return graph, None, attributes
        extended = with_loops(graph)
        silent = extended.graph.derived("repeated", lambda _: _silent(extended))
        if attributes is not None:
            attributes = attributes_with_loops(graph, extended, attributes, self.fill_value)
        return extended.graph, silent, attributes

    def _combined(self, graph: Graph, features: Tensor, shares: Tensor, targets: Tensor | None) -> Tensor:
        """What comes out, of features [sources, heads, C] and shares [E, heads]."""
        shares = torch.nn.functional.dropout(shares, self.dropout, self.training)
        has_more = self.res is not None and targets is not None
        if self.concat and not has_more:
            return biased(graph, features.flatten(1), shares, "sum", self.bias)
        output = ops.spmm(graph, features, shares)
        output = output.flatten(1) if self.concat else output.mean(1)
        if self.res is not None and targets is not None:
            output = output + self.res(targets)
        return output if self.bias is None else output + self.bias.to(output.dtype)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"


def _silent(extended: WithLoops) -> Tensor | None:
    """[E + nodes, 1]: minus infinity for edges that count nothing; None where there are none, which neither a compiled function
    nor a recorded run looks for."""
    repeated = extended.repeated
    if not torch.compiler.is_compiling() and graphs_of_run() is None and not bool(repeated.any()):
        return None
    zeros = torch.zeros(extended.graph.entries, device=repeated.device)
    zeros[: repeated.shape[0]].masked_fill_(repeated, float("-inf"))
    return zeros.unsqueeze(1)
