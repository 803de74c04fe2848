"""Scores entries by additive attention, as GATv2 does, without rows of features for entries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._checks import number_from
from .._tensors import check_real
from ..graph import Graph, check_graph
from . import modes
from .library.scores import NO_SECOND

_ops = torch.ops.pumice


def edge_scores(
    graph: Graph,
    target: Tensor,
    source: Tensor,
    attention: Tensor,
    entry: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
) -> Tensor:
    """The score of each entry by additive attention: the sum over channels of attention · leaky(target[row] +
    source[column] + entry), where leaky(z) is z above 0 and negative_slope · z below, and minus infinity itself. The
    sums inside are computed once more on the way back: in memory there is a number for each entry and head.

    Args:
        graph: the entries, on the device of the features.
        target: [rows, C], or [rows, heads, C].
        source: [columns, C], or [columns, heads, C].
        attention: [C], or [heads, C].
        entry: [entries, C], or [entries, heads, C], in the order of `edge_index`; default: zeros.
        negative_slope: from 0 on.
    Returns:
        [entries], or [entries, heads]; differentiable once.
    Raises:
        UserError: for other shapes, types and devices.
    Waits:
        Never.
    Example:
        >>> graph = pumice.Graph(torch.tensor([[0, 1], [1, 1]]), num_nodes=2)
        >>> x = torch.tensor([[1.0, -3.0], [2.0, 1.0]])
        >>> ops.edge_scores(graph, x, x, torch.ones(2), negative_slope=0.5)
        tensor([2., 6.])
    """
    check_graph(graph)
    for name, tensor in (("target", target), ("source", source), ("attention", attention)):
        if not _is_plain(tensor):
            modes.look(name, tensor)
            check_real(name, tensor)
    check_real("entry", entry)
    slope = number_from("negative_slope", negative_slope, 0.0, 1e30)
    dtype = modes.autocast_dtype(target)
    if dtype is not None:
        target, source, attention = target.to(dtype), source.to(dtype), attention.to(dtype)
        entry = None if entry is None else entry.to(dtype)
    shape = attention.shape
    if len(shape) not in (1, 2) or target.shape[1:] != shape or source.shape[1:] != shape:
        raise _C.UserError(
            f"target has shape {tuple(target.shape)}, source {tuple(source.shape)} and attention "
            f"{tuple(attention.shape)}: give [rows, heads, C], [columns, heads, C] and [heads, C]"
        )
    if entry is not None and entry.shape[1:] != shape:
        raise _C.UserError(
            f"entry has shape {tuple(entry.shape)} and target {tuple(target.shape)}: give a row of as many channels "
            "for each entry"
        )
    is_flat = len(shape) == 1
    given = (
        target.flatten(1),
        source.flatten(1),
        attention.unsqueeze(0) if is_flat else attention,
        None if entry is None else entry.flatten(1),
    )
    if modes.traced(target, "target"):
        scores = _ops.edge_scores(graph.token, *given, graph.entries, slope)
    elif modes.wants_gradient(*given):
        scores = _scores(*given, graph.graph, slope)
    else:
        scores = _C.edge_scores(graph.graph, *given, slope)
    return scores.squeeze(1) if is_flat else scores


def _is_plain(tensor: Any) -> bool:
    """Whether it is a dense tensor of floats without a look at what else it could be, a third of the time of one."""
    kind = type(tensor)
    ordinary = kind is Tensor or kind is torch.nn.Parameter
    return ordinary and tensor.is_floating_point() and tensor.layout is torch.strided and not tensor.is_nested


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, target: Tensor, source: Tensor, attention: Tensor, entry: Tensor | None, graph: _C.Graph, slope: float
    ) -> Tensor:
        ctx.save_for_backward(target, source, attention, entry)
        ctx.call = (graph, slope)
        return _C.edge_scores(graph, target, source, attention, entry, slope)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return *_gradient(grad, *ctx.saved_tensors, *ctx.call), None, None


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        grad: Tensor,
        target: Tensor,
        source: Tensor,
        attention: Tensor,
        entry: Tensor | None,
        graph: _C.Graph,
        slope: float,
    ) -> tuple[Tensor | None, ...]:
        return _C.edge_scores_gradient(graph, target, source, attention, entry, slope, grad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        raise _C.UserError(NO_SECOND)


_scores = modes.function(_Scores)
_gradient = modes.function(_Gradient)
