"""Defines `HeteroLinear`, a linear layer for each type of rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import kind_of, true_or_false, whole_number
from ..._edges import plain
from ..._keywords import understands
from ...typed_graph import TypedGraph
from .edges import check_features, kept
from .node_numbers import check_numbers
from .parameters import PYG, check_input


class HeteroLinear(torch.nn.Module):
    """W of its type times each row, and the bias of its type.

    Args:
        in_channels: of the rows.
        out_channels: of what comes out.
        num_types: how many layers there are.
        is_sorted: as in PyG; types may come in any order in any case.
        bias: whether a number is added to each channel.
    Returns:
        Of a call with x [N, in_channels] and type_vec int64 [N]: [N, out_channels].
    Raises:
        UserError: for other shapes, and types that there are not.
    Waits:
        On a GPU at the first call with such types, for their range and numbers.
    Example:
        >>> layer = nn.graph.HeteroLinear(8, 4, num_types=2)
        >>> layer(torch.randn(3, 8), torch.tensor([1, 0, 1])).shape
        torch.Size([3, 4])
    """

    @understands(PYG)
    def __init__(
        self, in_channels: int, out_channels: int, num_types: int, is_sorted: bool = False, bias: bool = True
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.in_channels = whole_number("in_channels", in_channels, 1)
        self.out_channels = whole_number("out_channels", out_channels, 1)
        self.num_types = whole_number("num_types", num_types, 1, 65_535)
        for name, value in (("is_sorted", is_sorted), ("bias", bias)):
            true_or_false(name, value)
        self.weight = torch.nn.Parameter(torch.empty(num_types, in_channels, out_channels))
        self.bias = torch.nn.Parameter(torch.empty(num_types, out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights and biases, uniform up to 1 / √in_channels."""
        bound = self.in_channels**-0.5
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(self, x: Tensor, type_vec: Tensor) -> Tensor:
        """[N, in_channels] to [N, out_channels]."""
        check_features("x", x)
        check_input("HeteroLinear", "x", x, self.weight, self.in_channels)
        type_vec = plain(type_vec)
        _check_types(type_vec, x.shape[0])
        # A relational product whose edges lead from each row to itself: it sorts, multiplies and puts back.
        graph = kept(type_vec, (x.shape[0], self.num_types), lambda: self._loops(type_vec))
        output = ops.rgms(graph, x, self.weight)
        return output if self.bias is None else output + self.bias[type_vec].to(output.dtype)

    def _loops(self, type_vec: Tensor) -> TypedGraph:
        check_numbers("type_vec", type_vec, self.num_types, "types", "types")
        rows = torch.arange(type_vec.shape[0], device=type_vec.device).expand(2, -1)
        return TypedGraph(rows, type_vec, type_vec.shape[0], self.num_types)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, num_types={self.num_types}, bias={self.bias is not None}"


def _check_types(type_vec: Any, rows: int) -> None:
    if not isinstance(type_vec, Tensor):
        raise _C.UserError(f"type_vec is {kind_of(type_vec)}: give a tensor, int64 [{rows}]")
    if type_vec.dtype not in (torch.int32, torch.int64) or type_vec.shape != (rows,):
        raise _C.UserError(
            f"type_vec is {type_vec.dtype}, {tuple(type_vec.shape)}: give int64 [{rows}], the type of each row"
        )
