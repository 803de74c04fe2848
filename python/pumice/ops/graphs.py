"""Multiplies sparse matrices and features, and weighs entries: what message passing on graphs is made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._checks import number_from
from .._tensors import check_floating, check_tensor
from ..formats import Decomposition
from ..graph import Graph, check_graph
from . import modes
from .library.graphs import NO_SECOND, NO_SECOND_ATTENTION, PICKS, heads_of

_ops = torch.ops.pumice
_REDUCTIONS = ("sum", "mean", "max", "min")


def reduction_of(reduce: Any) -> str:
    """One of those there are; "add" is PyG's word for "sum". Raises UserError for others."""
    if not isinstance(reduce, str) or reduce not in (*_REDUCTIONS, "add"):
        raise _C.UserError(f"reduce = {reduce!r}: choose {', '.join(_REDUCTIONS)}")
    return "sum" if reduce == "add" else reduce


def spmm(graph: Graph | Decomposition, features: Tensor, values: Tensor | None = None, reduce: str = "sum") -> Tensor:
    """The sum, mean, max or min of values · features over the entries of each row: of a graph, over the edges that
    lead to each target. Sums are kept in float32 (float64 for float64) and rounded once; the same bits every time.

    Args:
        graph: the entries, on the device of the features; or parts that `formats.decompose` cut a graph into.
        features: [columns, C], or [columns, heads, C].
        values: [entries], or [entries, heads] of which head h weighs the h-th part of the channels, in the order of
            `edge_index`; default: 1.
        reduce: "sum" or "add", "mean", "max" or "min". The mean divides by the number of entries; of equal maxima and minima
            the first in the order of `edge_index` gets the gradient.
    Returns:
        [rows, …] as features has it, 0 for a row without entries; differentiable, twice for sum and mean.
    Raises:
        UserError: for another reduction, and other shapes, types and devices.
    Waits:
        Never.
    Example:
        >>> graph = pumice.Graph(torch.tensor([[0, 1], [1, 1]]), num_nodes=2)
        >>> ops.spmm(graph, torch.tensor([[1.0], [2.0]]), torch.tensor([10.0, 1.0]))
        tensor([[ 0.],
                [12.]])
    """
    return biased(graph, features, values, reduction_of(reduce), None)


def biased(
    graph: Graph | Decomposition, features: Tensor, values: Tensor | None, reduce: str, bias: Tensor | None
) -> Tensor:
    """`spmm`, and a `bias` [C] of features [columns, C]: of sums and means where rows are stored, without a pass over them."""
    _check_entries(graph)
    check_floating(features)
    if values is not None:
        modes.look("values", values)
    features, values = _in_one_type(features, values)
    shape = features.shape
    if features.dim() == 3:
        if values is not None and (values.dim() != 2 or values.shape[1] not in (1, shape[1])):
            raise _C.UserError(
                f"values have shape {tuple(values.shape)} where features have {shape[1]} heads: give "
                f"[{graph.entries}, {shape[1]}], or features [columns, C]"
            )
        features = features.flatten(1)
    output = _multiplied(graph, features, values, reduce, bias)
    return output if len(shape) == 2 else output.reshape(graph.rows, *shape[1:])


def sddmm(graph: Graph | Decomposition, left: Tensor, right: Tensor) -> Tensor:
    """The dot product of its row of `left` and its column of `right` for each entry: of a graph, of each edge's target
    and source.

    Args:
        graph: the entries, on the device of the features; or parts that `formats.decompose` cut a graph into.
        left: [rows, C], or [rows, heads, C].
        right: [columns, C], or [columns, heads, C].
    Returns:
        [entries], or [entries, heads], in the order of `edge_index`; differentiable twice.
    Raises:
        UserError: for other shapes, types and devices.
    Waits:
        Never.
    Example:
        >>> graph = pumice.Graph(torch.tensor([[0, 1], [1, 1]]), num_nodes=2)
        >>> ops.sddmm(graph, torch.eye(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([2., 4.])
    """
    _check_entries(graph)
    for name, tensor in (("left", left), ("right", right)):
        modes.look(name, tensor)
    left, right = _in_one_type(left, right)
    if left.dim() == 3:
        if left.shape[1:] != right.shape[1:]:
            raise _C.UserError(
                f"left has shape {tuple(left.shape)} and right {tuple(right.shape)}: give as many heads and channels"
            )
        heads = left.shape[1]
        return _products(graph, left.flatten(1), right.flatten(1), heads)
    return _products(graph, left, right, 1).squeeze(1)


def edge_softmax(
    graph: Graph,
    scores: Tensor | None = None,
    *,
    target: Tensor | None = None,
    source: Tensor | None = None,
    negative_slope: float = 1.0,
) -> Tensor:
    """The share of each entry in its row: softmax over the entries of a row of leaky(target[row] + source[column] +
    scores[entry]), where leaky(z) is z above 0 and negative_slope · z below. With `target` and `source` it is the
    attention of a graph attention network, of which nothing but the result is kept.

    Args:
        graph: the entries, on the device of the scores.
        scores: [entries], or [entries, heads], in the order of `edge_index`.
        target: [rows, heads].
        source: [columns, heads]. Of the three at least one.
        negative_slope: from 0 on; 1 leaves sums as they are. An entry whose sum is minus infinity has no share.
    Returns:
        [entries], or [entries, heads]; differentiable once.
    Raises:
        UserError: for other shapes, types and devices, and without any score.
    Waits:
        Never.
    Example:
        >>> graph = pumice.Graph(torch.tensor([[0, 1, 1], [1, 1, 0]]), num_nodes=2)
        >>> ops.edge_softmax(graph, torch.tensor([0.0, 0.0, 5.0]))
        tensor([0.5000, 0.5000, 1.0000])
    """
    check_graph(graph)
    given = [tensor for tensor in (scores, target, source) if tensor is not None]
    if not given:
        raise _C.UserError("scores, target and source are None: give one of them")
    for name, tensor in (("scores", scores), ("target", target), ("source", source)):
        modes.look(name, tensor, optional=True)
    dtype = modes.autocast_dtype(given[0])
    if dtype is not None:
        target, source, scores = (None if t is None else t.to(dtype) for t in (target, source, scores))
    is_flat = scores is not None and scores.dim() == 1
    if is_flat:
        scores = scores.unsqueeze(1)
    slope = number_from("negative_slope", negative_slope, 0.0, 1e30)
    if modes.traced(given[0]):
        shares = _ops.edge_softmax(graph.token, target, source, scores, graph.entries, slope)
    else:
        shares = _attended(graph, target, source, scores, slope)
    return shares.squeeze(1) if is_flat else shares


def _attended(
    graph: Graph, target: Tensor | None, source: Tensor | None, scores: Tensor | None, slope: float
) -> Tensor:
    try:
        if modes.wants_gradient(target, source, scores):
            return _attention(target, source, scores, graph.graph, slope)
        return _C.edge_softmax(graph.graph, target, source, scores, slope)
    except _C.UserError:
        _check_scores(graph, scores, target, source)
        raise


# What was refused below is said again by the names of the arguments: below, an operator may be that of a gradient. It is
# looked at then alone, since it would take as long as a call.


def _check_rows(graph: Graph, left: Tensor, right: Tensor) -> None:
    """Raises UserError where products of rows and columns cannot be made; `left` and `right` have two axes."""
    for name, tensor, rows, whose in (("left", left, graph.rows, "rows"), ("right", right, graph.columns, "columns")):
        check_tensor(name, tensor)
        if tensor.dim() != 2:
            raise _C.UserError(f"{name} has shape {tuple(tensor.shape)}: give [{whose}, channels], or with heads before them")
        if tensor.shape[0] != rows:
            raise _C.UserError(f"sddmm: {name} has {tensor.shape[0]} rows and the graph {rows} {whose}: give one row for each")
    if left.shape[1] != right.shape[1]:
        raise _C.UserError(f"sddmm: left has {left.shape[1]} channels and right {right.shape[1]}: give as many")
    if left.dtype != right.dtype:
        raise _C.UserError(f"sddmm: left is {left.dtype} and right {right.dtype}: give both in one type")


def _check_scores(graph: Graph, scores: Tensor | None, target: Tensor | None, source: Tensor | None) -> None:
    """Raises UserError where there are not as many of each, [.., heads], as the graph has."""
    sizes = (("scores", scores, graph.entries), ("target", target, graph.rows), ("source", source, graph.columns))
    for name, tensor, rows in sizes:
        if tensor is None:
            continue
        check_tensor(name, tensor)
        if tensor.dim() != 2 or tensor.shape[0] != rows:
            wanted = f"[{rows}] or [{rows}, heads]" if name == "scores" else f"[{rows}, heads]"
            flat = name == "scores" and tensor.dim() == 2 and tensor.shape[1] == 1
            shape = tuple(tensor.shape[:1]) if flat else tuple(tensor.shape)
            raise _C.UserError(f"edge_softmax: {name} has shape {shape}: give {wanted}")
        if not tensor.is_floating_point():
            raise _C.UserError(f"edge_softmax: {name} is {tensor.dtype}: give floats, as .float() makes them")


def _in_one_type(first: Tensor, second: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """In the type of autocast, where it is on."""
    dtype = modes.autocast_dtype(first)
    if dtype is None:
        return first, second
    return first.to(dtype), None if second is None else second.to(dtype)


def features_gradient(values: Tensor | None, grad: Tensor, graph: _C.Graph, reduce: str) -> Tensor:
    """That of a sum's or mean's features, which has gradients itself."""
    return _features_gradient(values, grad, graph, reduce)


def _check_entries(graph: Any) -> None:
    """Raises UserError unless it is a graph or its parts."""
    if not isinstance(graph, Decomposition):
        check_graph(graph)


def _whole(parts: Decomposition, features: Tensor) -> _C.Graph:
    """The graph that gradients go over. Raises UserError where a call is traced, which parts cannot be."""
    if modes.traced(features):
        raise _C.UserError("parts of a graph do not go through compiled functions: give the graph, parts.graph")
    return parts.graph.graph


def _multiplied(
    graph: Graph | Decomposition, features: Tensor, values: Tensor | None, reduce: str, bias: Tensor | None
) -> Tensor:
    if isinstance(graph, Decomposition):
        whole = _whole(graph, features)
        if modes.wants_gradient(features, values):
            output = _part_product(values, features, graph._parts, whole, reduce)
        else:
            output = _C.part_spmm(graph._parts, values, features, reduce)[0]
    elif modes.traced(features):
        output = _ops.spmm(graph.token, values, features, graph.rows, graph.entries, reduce)[0]
    elif bias is not None and reduce in PICKS:
        output = _multiplied(graph, features, values, reduce, None)
    else:
        bias = modes.bias_for(bias, features)
        if not modes.wants_gradient(features, values, bias):
            return _C.spmm(graph.graph, values, features, reduce, bias)[0]
        return _product(values, features, bias, graph.graph, reduce)
    return output if bias is None else output + bias.to(output.dtype)


def _products(graph: Graph | Decomposition, left: Tensor, right: Tensor, heads: int) -> Tensor:
    if isinstance(graph, Decomposition):
        whole = _whole(graph, left)
        if modes.wants_gradient(left, right):
            return _part_products(left, right, graph._parts, whole, heads)
        return _C.part_sddmm(graph._parts, left, right, heads)
    if modes.traced(left):
        none = left.new_empty((0, 0), dtype=torch.int64)
        return _ops.spmm_values_gradient(graph.token, right, left, none, graph.rows, graph.entries, heads, "sum")
    try:
        if not modes.wants_gradient(left, right):
            return _C.sddmm(graph.graph, left, right, heads)
        return _entry_products(right, left, graph.graph, heads, "sum")
    except _C.UserError:
        _check_rows(graph, left, right)
        raise


# Sum and mean are linear in values and in features, and so the gradient of each of these three is made of the others:
#   product(values, features), of_features(values, grad), of_values(features, grad)


def product_gradients(
    values: Tensor | None,
    features: Tensor,
    grad: Tensor,
    source: Tensor | None,
    graph: _C.Graph,
    reduce: str,
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of a product's values and features, as far as they are `wanted`, which have gradients themselves
    (of max and min a refusal). `source` is what max and min picked."""
    if reduce in PICKS:
        return _picked_gradient(values, features, grad, source, graph, reduce, wanted)
    of_values = of_features = None
    if wanted[0]:
        of_values = _entry_products(features, grad, graph, heads_of(values), reduce).reshape(values.shape)
    if wanted[1]:
        of_features = _features_gradient(values, grad, graph, reduce)
    return of_values, of_features


def bias_gradient(grad: Tensor) -> Tensor:
    """The sum over rows, in the type of sums, which has gradients itself where those of gradients are wanted."""
    if torch.is_grad_enabled():
        return grad.sum(0, dtype=modes.sum_type(grad.dtype))
    return _C.sum_rows(grad, None)


def _factors(ctx: Any, first: Tensor, second: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Of two factors each that the other one's gradient is made of; rows of features are too large to be kept for nothing."""
    return first if ctx.needs_input_grad[1] else None, second if ctx.needs_input_grad[0] else None


class _Product(torch.autograd.Function):
    """The gradient of maxima and minima goes to the entries that were picked."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor | None, features: Tensor, bias: Tensor | None, graph: _C.Graph, reduce: str
    ) -> Tensor:
        output, source = _C.spmm(graph, values, features, reduce, bias)
        ctx.save_for_backward(values, features if ctx.needs_input_grad[0] else None, source)
        ctx.call = (graph, reduce)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        values, features, source = ctx.saved_tensors
        made = product_gradients(values, features, grad, source, *ctx.call, ctx.needs_input_grad[:2])
        return *made, bias_gradient(grad) if ctx.needs_input_grad[2] else None, None, None


class _FeaturesGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor | None, grad: Tensor, graph: _C.Graph, reduce: str) -> Tensor:
        ctx.save_for_backward(values, grad if ctx.needs_input_grad[0] else None)
        ctx.call = (graph, reduce)
        return _C.spmm_features_gradient(graph, values, grad, None, reduce)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        values, grad_output = ctx.saved_tensors
        graph, reduce = ctx.call
        of_values = of_grad = None
        if ctx.needs_input_grad[0]:
            of_values = _entry_products(grad, grad_output, graph, heads_of(values), reduce).reshape(values.shape)
        if ctx.needs_input_grad[1]:
            of_grad = _product(values, grad, None, graph, reduce)
        return of_values, of_grad, None, None


class _EntryProducts(torch.autograd.Function):
    """[entries, heads]: the gradient of values, and products of rows and columns."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, grad: Tensor, graph: _C.Graph, heads: int, reduce: str
    ) -> Tensor:
        ctx.save_for_backward(*_factors(ctx, features, grad))
        ctx.call = (graph, reduce)
        return _C.spmm_values_gradient(graph, features, grad, heads, None, reduce)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, grad_output = ctx.saved_tensors
        graph, reduce = ctx.call
        of_features = of_grad = None
        if ctx.needs_input_grad[0]:
            of_features = _features_gradient(grad, grad_output, graph, reduce)
        if ctx.needs_input_grad[1]:
            of_grad = _product(grad, features, None, graph, reduce)
        return of_features, of_grad, None, None, None


class _PartProduct(torch.autograd.Function):
    """Over parts; its gradients go over the graph, whose entries have the same numbers."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor | None, features: Tensor, parts: _C.Decomposed, graph: _C.Graph, reduce: str
    ) -> Tensor:
        output, source = _C.part_spmm(parts, values, features, reduce)
        ctx.save_for_backward(values, features if ctx.needs_input_grad[0] else None, source)
        ctx.call = (graph, reduce)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        values, features, source = ctx.saved_tensors
        made = product_gradients(values, features, grad, source, *ctx.call, ctx.needs_input_grad[:2])
        return *made, None, None, None


class _PartProducts(torch.autograd.Function):
    """[entries, heads]: products of rows and columns over parts."""

    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor, parts: _C.Decomposed, graph: _C.Graph, heads: int
    ) -> Tensor:
        ctx.save_for_backward(*_factors(ctx, left, right))
        ctx.graph = graph
        return _C.part_sddmm(parts, left, right, heads)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        left, right = ctx.saved_tensors
        of_left = _product(grad, right, None, ctx.graph, "sum") if ctx.needs_input_grad[0] else None
        of_right = _features_gradient(grad, left, ctx.graph, "sum") if ctx.needs_input_grad[1] else None
        return of_left, of_right, None, None, None


class _PickedGradient(torch.autograd.Function):
    """Of maxima and minima."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor | None,
        features: Tensor,
        grad: Tensor,
        source: Tensor,
        graph: _C.Graph,
        reduce: str,
        wanted: tuple[bool, bool],
    ) -> tuple[Tensor | None, Tensor | None]:
        of_values = of_features = None
        if wanted[0]:
            of_values = _C.spmm_values_gradient(graph, features, grad, heads_of(values), source, reduce)
            of_values = of_values.reshape(values.shape)
        if wanted[1]:
            of_features = _C.spmm_features_gradient(graph, values, grad, source, reduce)
        return of_values, of_features

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        raise _C.UserError(NO_SECOND)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, target: Tensor | None, source: Tensor | None, scores: Tensor | None, graph: _C.Graph, slope: float
    ) -> Tensor:
        shares = _C.edge_softmax(graph, target, source, scores, slope)
        ctx.save_for_backward(target, source, scores, shares)
        ctx.call = (graph, slope)
        return shares

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return *_attention_gradient(grad, *ctx.saved_tensors, *ctx.call), None, None


class _AttentionGradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        grad: Tensor,
        target: Tensor | None,
        source: Tensor | None,
        scores: Tensor | None,
        shares: Tensor,
        graph: _C.Graph,
        slope: float,
    ) -> tuple[Tensor | None, ...]:
        return _C.edge_softmax_gradient(graph, target, source, scores, slope, shares, grad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        raise _C.UserError(NO_SECOND_ATTENTION)


_product = modes.function(_Product)
_features_gradient = modes.function(_FeaturesGradient)
_entry_products = modes.function(_EntryProducts)
_part_product = modes.function(_PartProduct)
_part_products = modes.function(_PartProducts)
_picked_gradient = modes.function(_PickedGradient)
_attention = modes.function(_Attention)
_attention_gradient = modes.function(_AttentionGradient)
