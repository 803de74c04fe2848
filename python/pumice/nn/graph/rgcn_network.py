"""Defines `RGCN`, a network of relational graph convolutions, which `pumice rgcn` runs without Python."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ... import _C
from ..._checks import kind_of, number_from, whole_number
from ...typed_graph import TypedGraph
from .rgcn import RGCNConv


class RGCN(torch.nn.Module):
    """Layers of `RGCNConv`, `convs.0`, `convs.1`, …, with ReLU between them. `pumice rgcn` takes what
    `pumice.save_weights` writes of it.

    Args:
        in_channels: of the features of nodes; of nodes without features their number.
        widths: what comes out of each layer; the last of them are scores.
        num_relations: how many matrices a layer has.
        num_bases: makes each of them a combination of so many.
        num_blocks: makes each of them block-diagonal, of so many blocks; not of nodes without features.
        aggr: "mean", "sum", "add" or "max", within a relation; relations are added up.
        root_weight: whether layers have a matrix for what a node brings itself.
        bias: whether a number is added to each channel.
        dropout: of what goes into each layer but the first, in training.
    Returns:
        Of a call with x [N, in_channels], or None of nodes without features, edge_index [2, E] and edge_type [E], or a
        TypedGraph: scores [N, the last width].
    Raises:
        UserError: for other shapes, and for edges of other nodes.
    Waits:
        On a GPU at the first call with a graph, for the number of segments.
    Example:
        >>> network = nn.graph.RGCN(8, (16, 4), num_relations=2)
        >>> network(torch.randn(3, 8), torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([0, 1, 1])).shape
        torch.Size([3, 4])
        >>> pumice.model_card(network)["widths"]
        '16,4'
    """

    def __init__(
        self,
        in_channels: int,
        widths: Sequence[int],
        num_relations: int,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        aggr: str = "mean",
        root_weight: bool = True,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.in_channels = whole_number("in_channels", in_channels, 1)
        if not isinstance(widths, (tuple, list)) or not widths:
            raise _C.UserError(f"widths is {kind_of(widths)}: give a number for each layer, one or more, as (16, 4)")
        self.widths = tuple(whole_number("widths", width, 1) for width in widths)
        self.dropout = number_from("dropout", dropout, 0.0, 1.0)
        self.convs = torch.nn.ModuleList(
            RGCNConv(before, width, num_relations, num_bases, num_blocks, aggr, root_weight, bias=bias)
            for before, width in zip((self.in_channels, *self.widths), self.widths)
        )

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for layer in self.convs:
            layer.reset_parameters()  # type: ignore[operator]

    def card(self) -> dict[str, str]:
        """What its file of weights says of it."""
        layer = self.convs[0]
        assert isinstance(layer, RGCNConv)
        card = {
            "network": "rgcn",
            "layers": str(len(self.widths)),
            "in_channels": str(self.in_channels),
            "widths": ",".join(map(str, self.widths)),
            "outputs": str(self.widths[-1]),
            "activation": "relu",
            "relations": str(layer.num_relations),
            "aggr": {"add": "sum"}.get(layer.aggr, layer.aggr),
        }
        if layer.num_bases is not None:
            card["bases"] = str(layer.num_bases)
        if layer.num_blocks is not None:
            card["blocks"] = str(layer.num_blocks)
        return card

    def forward(self, x: Tensor | None, edge_index: TypedGraph | Tensor, edge_type: Tensor | None = None) -> Tensor:
        """[N, in_channels] to [N, the last width]."""
        for place, layer in enumerate(self.convs):
            if place > 0:
                assert x is not None
                x = torch.nn.functional.dropout(x.relu(), self.dropout, self.training)
            x = layer(x, edge_index, edge_type)
        assert x is not None
        return x

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.widths}"
