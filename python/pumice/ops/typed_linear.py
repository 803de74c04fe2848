"""Multiplies rows with a matrix for each type, and messages with one for each relation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._tensors import check_floating
from ..typed_graph import Segmented, TypedGraph, TypedRows, check_typed_graph, check_typed_rows
from . import modes
from .graphs import edge_softmax, features_gradient, product_gradients, reduction_of, spmm
from .library import typed_linear as _run

_ops = torch.ops.pumice


def typed_linear(features: Tensor, weight: Tensor, types: TypedRows) -> Tensor:
    """features[r] · weight[type of r].

    Args:
        features: [rows, C_in], grouped by type.
        weight: [types, C_in, C_out].
        types: where each type begins.
    Returns:
        [rows, C_out], differentiable twice. On a GPU in TF32 where torch.set_float32_matmul_precision allows it.
    Raises:
        UserError: for other shapes, types and devices.
    Waits:
        Never.
    Example:
        >>> types = pumice.TypedRows([0, 1, 3])
        >>> ops.typed_linear(torch.ones(3, 1), torch.tensor([[[2.0]], [[5.0]]]), types)
        tensor([[2.],
                [5.],
                [5.]])
    """
    check_typed_rows(types)
    check_floating(features)
    modes.look("weight", weight)
    dtype = modes.autocast_dtype(features)
    if dtype is not None:
        features, weight = features.to(dtype), weight.to(dtype)
    if modes.traced(features):
        return _ops.typed_linear(types.token, features, weight)
    if not modes.wants_gradient(features, weight):
        return _run.multiply(types.typed_rows, features, weight)
    return _typed_linear(features, weight, types.typed_rows)


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
            return _relational(edge_weight, features, weight, graph, reduce)
        return _C.rgms(*_parts(graph), edge_weight, features, weight, reduce, modes.of(features)[1])[0]
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


class _Relational(torch.autograd.Function):
    """One call forward and one backward; gradients that have gradients themselves are made product by product."""

    @staticmethod
    def forward(
        ctx: Any,
        edge_weight: Tensor | None,
        features: Tensor,
        weight: Tensor,
        graph: TypedGraph | Segmented,
        reduce: str,
    ) -> Tensor:
        tf32 = modes.of(features)[1]
        output, gathered, source = _C.rgms(*_parts(graph), edge_weight, features, weight, reduce, tf32)
        ctx.save_for_backward(edge_weight, features, weight, gathered, source)
        ctx.call = (graph, reduce)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        edge_weight, features, weight, gathered, source = ctx.saved_tensors
        graph, reduce = ctx.call
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():
            made = _by_products(edge_weight, features, weight, source, graph, reduce, grad, wanted)
            return *made, None, None
        made = _C.rgms_gradients(
            *_parts(graph), edge_weight, features, weight, gathered, source, grad, reduce, *wanted, *modes.of(features)
        )
        of_values = made[0]
        if of_values is not None:
            of_values = of_values.reshape(edge_weight.shape)
        return of_values, made[1], made[2], None, None


def _by_products(
    edge_weight: Tensor | None,
    features: Tensor,
    weight: Tensor,
    source: Tensor | None,
    graph: TypedGraph | Segmented,
    reduce: str,
    grad: Tensor,
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients, which have gradients themselves. (Not by torch.autograd.grad, which would follow what the inputs
    were computed from, and count twice where one of them comes from another.)"""
    gather, types, scatter = _parts(graph)
    of_multiplied = features_gradient(None, grad, scatter, "sum")
    of_weight = None
    if wanted[2]:
        gathered = spmm(graph.parts[0], features, edge_weight, reduce)
        of_weight = _weight_gradient(gathered, of_multiplied, types)
    if not (wanted[0] or wanted[1]):
        return None, None, of_weight
    of_gathered = _input_gradient(of_multiplied, weight, types)
    return *product_gradients(edge_weight, features, of_gathered, source, gather, reduce, wanted[:2]), of_weight


class _TypedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, types: _C.TypedRows) -> Tensor:
        ctx.save_for_backward(features, weight)
        ctx.types = types
        return _run.multiply(types, features, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, weight = ctx.saved_tensors
        of_features = _input_gradient(grad, weight, ctx.types) if ctx.needs_input_grad[0] else None
        of_weight = _weight_gradient(features, grad, ctx.types) if ctx.needs_input_grad[1] else None
        return of_features, of_weight, None


class _InputGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, weight: Tensor, types: _C.TypedRows) -> Tensor:
        ctx.save_for_backward(grad, weight)
        ctx.types = types
        return _run.input_gradient(types, grad, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        grad_output, weight = ctx.saved_tensors
        of_grad = _typed_linear(grad, weight, ctx.types) if ctx.needs_input_grad[0] else None
        of_weight = _weight_gradient(grad, grad_output, ctx.types) if ctx.needs_input_grad[1] else None
        return of_grad, of_weight, None


class _WeightGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, grad: Tensor, types: _C.TypedRows) -> Tensor:
        ctx.save_for_backward(features, grad)
        ctx.types = types
        return _run.weight_gradient(types, features, grad)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, grad_output = ctx.saved_tensors
        of_features = _input_gradient(grad_output, grad, ctx.types) if ctx.needs_input_grad[0] else None
        of_grad = _typed_linear(features, grad, ctx.types) if ctx.needs_input_grad[1] else None
        return of_features, of_grad, None


_relational = modes.function(_Relational)
_typed_linear = modes.function(_TypedLinear)
_input_gradient = modes.function(_InputGradient)
_weight_gradient = modes.function(_WeightGradient)
