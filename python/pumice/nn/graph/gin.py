"""Defines `GINConv`, the layer of graph isomorphism networks (arXiv:1810.00826)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import kind_of, number_from, true_or_false
from ..._keywords import understands
from ...graph import Graph
from .edges import messages_of
from .parameters import PYG, check_inputs


class GINConv(torch.nn.Module):
    """nn((1 + eps) x + the sum of the neighbours' features).

    Args:
        nn: a layer or network on [N, C].
        eps: how much more a node counts than a neighbour.
        train_eps: whether eps is learnt.
    Returns:
        Of a call with x [N, C], or (of sources, of targets or None), edge_index [2, E] or a Graph, and size: what `nn`
        makes of [N, C].
    Raises:
        UserError: for other shapes, and edges of other nodes.
    Waits:
        Never.
    Example:
        >>> layer = nn.graph.GINConv(torch.nn.Linear(8, 4))
        >>> layer(torch.randn(3, 8), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 4])
    """

    eps: Tensor

    @understands(PYG)
    def __init__(self, nn: Callable[[Tensor], Tensor], eps: float = 0.0, train_eps: bool = False) -> None:
        """The arguments are those of the class."""
        super().__init__()
        if not callable(nn):
            raise _C.UserError(f"nn is {kind_of(nn)}: give a layer, as torch.nn.Linear(8, 4)")
        number_from("eps", eps, -1e30, 1e30)
        true_or_false("train_eps", train_eps)
        self.nn = nn
        self.initial_eps = eps
        start = torch.tensor([float(eps)])
        if train_eps:
            self.eps = torch.nn.Parameter(start)
        else:
            self.register_buffer("eps", start)

    def reset_parameters(self) -> None:
        """Draws new weights where `nn` can, and sets eps back."""
        reset = getattr(self.nn, "reset_parameters", None)
        if reset is not None:
            reset()
        self.eps.data.fill_(self.initial_eps)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Graph | Tensor,
        size: tuple[int, int] | None = None,
    ) -> Tensor:
        """[N, C] to what `nn` makes of it."""
        graph, sources, targets = messages_of(x, edge_index, size)
        if targets is not None and targets is not sources and targets.shape[1] != sources.shape[1]:
            raise _C.UserError(
                f"GINConv: x[0] has {sources.shape[1]} channels and x[1] {targets.shape[1]}: give as many, which it adds up"
            )
        output = ops.spmm(graph, sources)
        try:
            if targets is not None:
                output = output + (1 + self.eps).to(output.dtype) * targets
            return self.nn(output)
        except RuntimeError:
            self._check(x)
            raise

    def _check(self, x: Any) -> None:
        """Raises UserError for features that `nn` cannot take, as far as it tells."""
        first = self.nn
        while isinstance(first, torch.nn.Sequential) and len(first) > 0:
            first = first[0]
        if isinstance(first, torch.nn.Linear):
            check_inputs("GINConv", x, (first.weight, first.weight))
