"""Multiplies messages with a matrix for each relation, and adds what their targets bring themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._tensors import check_floating
from ..typed_graph import Segmented, TypedGraph, check_typed_graph
from . import modes
from .graphs import edge_softmax, features_gradient, product_gradients, reduction_of, spmm
from .typed_linear import input_gradient, typed_linear, weight_gradient

_ops = torch.ops.pumice
_ONLY_EDGES = (None, None, None)  # no targets, root, bias


def rgms(
    graph: TypedGraph, features: Tensor, weight: Tensor, edge_weight: Tensor | None = None, reduce: str = "sum"
) -> Tensor:
    """The sum over the edges that lead to a target of edge_weight · features of the source · weight of the relation:
    what relational graph convolutions are made of.

    Args:
        graph: the edges and their relations.
        features: [sources, C_in].
        weight: [relations, C_in, C_out].
        edge_weight: [E]; default: 1.
        reduce: of the edges of one relation that lead to one target, "sum" or "add", "mean", "max" or "min"; relations are
            added up.
    Returns:
        [targets, C_out], 0 where no edge leads; differentiable, twice for sum and mean.
    Raises:
        UserError: for other shapes, types and devices.
    Waits:
        Never.
    Example:
        >>> graph = pumice.TypedGraph(torch.tensor([[0, 1], [1, 1]]), torch.tensor([0, 1]), num_nodes=2)
        >>> ops.rgms(graph, torch.tensor([[1.0], [1.0]]), torch.tensor([[[2.0]], [[5.0]]]))
        tensor([[0.],
                [7.]])
    """
    check_typed_graph(graph)
    check_floating(features)
    modes.look("weight", weight)
    modes.look("edge_weight", edge_weight, optional=True)
    return through_segments(graph, features, weight, edge_weight, reduction_of(reduce))


def through_segments(
    graph: TypedGraph | Segmented,
    features: Tensor,
    weight: Tensor | None,
    edge_weight: Tensor | None = None,
    reduce: str = "sum",
) -> Tensor:
    """`rgms` of arguments that were looked at; without a `weight` segments are added up as they are."""
    dtype = modes.autocast_dtype(features)
    if dtype is not None:
        features = features.to(dtype)
        weight, edge_weight = (None if of is None else of.to(dtype) for of in (weight, edge_weight))
    if torch.compiler.is_compiling():  # which would not know how many segments there are
        return _ops.rgms(*graph.tokens, edge_weight, features, weight, graph.rows, reduce)[0]
    if weight is not None and features.dim() == 2 and not modes.traced(features):
        if modes.wants_gradient(edge_weight, features, weight):
            return _relational(edge_weight, features, weight, *_ONLY_EDGES, graph, reduce)
        tf32 = modes.of(features)[1]
        return _C.rgms(*_parts(graph), edge_weight, features, weight, reduce, *_ONLY_EDGES, False, tf32)[0]
    gather, segments, scatter = graph.parts
    gathered = spmm(gather, features, edge_weight, reduce)
    return spmm(scatter, gathered if weight is None else typed_linear(gathered, weight, segments))


def softmax_in_segments(graph: TypedGraph, scores: Tensor) -> Tensor:
    """`edge_softmax` over the edges of one relation that lead to one target, of scores [E, heads]."""
    if torch.compiler.is_compiling():  # which would not know how many segments there are
        dtype = modes.autocast_dtype(scores)
        scores = scores if dtype is None else scores.to(dtype)
        return _ops.edge_softmax(graph.tokens[0], None, None, scores, graph.entries, 1.0)
    return edge_softmax(graph.gather, scores)


def _parts(graph: TypedGraph | Segmented) -> tuple[_C.Graph, _C.TypedRows, _C.Graph]:
    """What the extension goes over."""
    gather, segments, scatter = graph.parts
    return gather.graph, segments.typed_rows, scatter.graph


def relational_layer(
    graph: TypedGraph,
    features: Tensor,
    weight: Tensor,
    targets: Tensor | None,
    root: Tensor | None,
    bias: Tensor | None,
    reduce: str,
) -> Tensor:
    """`rgms` + targets · root + bias in one call, of what is not traced. `targets` None: the features; `root` [C, C_out]
    and `bias` [C_out] None: there is none. The extension looks at the arguments."""
    dtype = modes.autocast_dtype(features)
    if dtype is not None:
        features, weight = features.to(dtype), weight.to(dtype)
        targets, root = (None if of is None else of.to(dtype) for of in (targets, root))
    bias = modes.bias_for(bias, features)
    if modes.wants_gradient(features, weight, targets, root, bias):
        return _relational(None, features, weight, targets, root, bias, graph, reduce)
    tf32 = modes.of(features)[1]
    return _C.rgms(*_parts(graph), None, features, weight, reduce, targets, root, bias, False, tf32)[0]


class _Relational(torch.autograd.Function):
    """One call forward and one backward; gradients that have gradients themselves are made product by product."""

    @staticmethod
    def forward(
        ctx: Any,
        edge_weight: Tensor | None,
        features: Tensor,
        weight: Tensor,
        targets: Tensor | None,
        root: Tensor | None,
        bias: Tensor | None,
        graph: TypedGraph | Segmented,
        reduce: str,
    ) -> Tensor:
        own = (targets, root, bias)
        tf32 = modes.of(features)[1]
        output, gathered, source = _C.rgms(
            *_parts(graph), edge_weight, features, weight, reduce, *own, True, tf32
        )
        ctx.save_for_backward(edge_weight, features, weight, *own, gathered, source)
        ctx.call = (graph, reduce)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        *given, gathered, source = ctx.saved_tensors
        graph, reduce = ctx.call
        wanted = ctx.needs_input_grad[:6]
        if torch.is_grad_enabled():
            return *_by_products(*given, source, graph, reduce, grad, wanted), None, None
        made = _C.rgms_gradients(
            *_parts(graph), *given[:3], gathered, source, grad, reduce, *given[3:], wanted, *modes.of(given[1])
        )
        of_values = made[0]
        if of_values is not None:
            of_values = of_values.reshape(given[0].shape)
        return of_values, *made[1:], None, None


def _by_products(
    edge_weight: Tensor | None,
    features: Tensor,
    weight: Tensor,
    targets: Tensor | None,
    root: Tensor | None,
    bias: Tensor | None,
    source: Tensor | None,
    graph: TypedGraph | Segmented,
    reduce: str,
    grad: Tensor,
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients, which have gradients themselves. (Not by torch.autograd.grad, which would follow what the inputs
    were computed from, and count twice where one of them comes from another.)"""
    of_values = of_features = of_weight = of_targets = of_root = of_bias = None
    gather, types, scatter = _parts(graph)
    if any(wanted[:3]):
        of_multiplied = features_gradient(None, grad, scatter, "sum")
        if wanted[2]:
            gathered = spmm(graph.parts[0], features, edge_weight, reduce)
            of_weight = weight_gradient(gathered, of_multiplied, types)
        if wanted[0] or wanted[1]:
            of_gathered = input_gradient(of_multiplied, weight, types)
            of_values, of_features = product_gradients(
                edge_weight, features, of_gathered, source, gather, reduce, wanted[:2]
            )
    if root is not None:
        if wanted[4]:
            of_root = (features if targets is None else targets).t() @ grad
        if targets is not None:
            of_targets = grad @ root.t() if wanted[3] else None
        elif wanted[1]:
            of_features = of_features + grad @ root.t()
    if bias is not None and wanted[5]:
        of_bias = grad.sum(0, dtype=bias.dtype)
    return of_values, of_features, of_weight, of_targets, of_root, of_bias


_relational = modes.function(_Relational)
