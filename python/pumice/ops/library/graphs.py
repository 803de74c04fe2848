"""Registers products of sparse matrices, and attention over their entries. `graph` is the token of a graph; `values` are
None where there are none, and `source`, the entries that were picked, is empty where the reduction picks none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._registry import define, differentiate

_ops = torch.ops.pumice

PICKS = ("max", "min")
NO_SECOND = (
    "spmm with max or min has no second derivative here: use sum or mean, or take the gradient without create_graph"
)
NO_SECOND_ATTENTION = "edge_softmax has no second derivative here: take the gradient without create_graph"


def heads_of(values: Tensor) -> int:
    """Of values [entries] or [entries, heads]."""
    return 1 if values.dim() == 1 else values.shape[1]


def _spmm(
    graph: Tensor, values: Tensor | None, features: Tensor, rows: int, entries: int, reduce: str
) -> tuple[Tensor, Tensor]:
    output, source = _C.spmm(_C.graph_of(graph), values, features, reduce, None)
    return output, features.new_empty((0, 0), dtype=torch.int64) if source is None else source


def _fake_spmm(
    graph: Tensor, values: Tensor | None, features: Tensor, rows: Any, entries: Any, reduce: str
) -> tuple[Tensor, Tensor]:
    output = features.new_empty((rows, features.shape[1]))
    shape = output.shape if reduce in PICKS else (0, 0)
    return output, features.new_empty(shape, dtype=torch.int64)


def _keep_spmm(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    graph, values, features, ctx.rows, ctx.entries, ctx.reduce = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.columns = features.shape[0]
    ctx.save_for_backward(graph, values, features, output[1])


def _of_spmm(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    graph, values, features, source = ctx.saved_tensors
    of_values = of_features = None
    if ctx.needs_input_grad[1]:
        of_values = _ops.spmm_values_gradient(
            graph, features, grad, source, ctx.rows, ctx.entries, heads_of(values), ctx.reduce
        ).reshape(values.shape)
    if ctx.needs_input_grad[2]:
        of_features = _ops.spmm_features_gradient(
            graph, values, grad, source, ctx.columns, ctx.entries, ctx.reduce
        )
    return None, of_values, of_features, None, None, None


def _features_gradient(
    graph: Tensor, values: Tensor | None, grad: Tensor, source: Tensor, columns: int, entries: int, reduce: str
) -> Tensor:
    picked = source if reduce in PICKS else None
    return _C.spmm_features_gradient(_C.graph_of(graph), values, grad, picked, reduce)


def _keep_features_gradient(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    graph, values, grad, _, ctx.columns, ctx.entries, ctx.reduce = inputs
    ctx.rows = grad.shape[0]
    ctx.save_for_backward(graph, values, grad)


def _of_features_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    if ctx.reduce in PICKS:
        raise _C.UserError(NO_SECOND)
    graph, values, grad_output = ctx.saved_tensors
    of_values = of_grad = None
    none = grad.new_empty((0, 0), dtype=torch.int64)
    if ctx.needs_input_grad[1]:
        of_values = _ops.spmm_values_gradient(
            graph, grad, grad_output, none, ctx.rows, ctx.entries, heads_of(values), ctx.reduce
        ).reshape(values.shape)
    if ctx.needs_input_grad[2]:
        of_grad, _ = _ops.spmm(graph, values, grad, ctx.rows, ctx.entries, ctx.reduce)
    return None, of_values, of_grad, None, None, None, None


def _values_gradient(
    graph: Tensor,
    features: Tensor,
    grad: Tensor,
    source: Tensor,
    rows: int,
    entries: int,
    heads: int,
    reduce: str,
) -> Tensor:
    picked = source if reduce in PICKS else None
    return _C.spmm_values_gradient(_C.graph_of(graph), features, grad, heads, picked, reduce)


def _keep_values_gradient(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    graph, features, grad, _, ctx.rows, ctx.entries, _, ctx.reduce = inputs
    ctx.columns = features.shape[0]
    ctx.save_for_backward(graph, features, grad)


def _of_values_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    if ctx.reduce in PICKS:
        raise _C.UserError(NO_SECOND)
    graph, features, grad_output = ctx.saved_tensors
    of_features = of_grad = None
    if ctx.needs_input_grad[1]:
        none = grad.new_empty((0, 0), dtype=torch.int64)
        of_features = _ops.spmm_features_gradient(
            graph, grad, grad_output, none, ctx.columns, ctx.entries, ctx.reduce
        )
    if ctx.needs_input_grad[2]:
        of_grad, _ = _ops.spmm(graph, grad, features, ctx.rows, ctx.entries, ctx.reduce)
    return None, of_features, of_grad, None, None, None, None, None


define(
    "spmm(Tensor graph, Tensor? values, Tensor features, SymInt rows, SymInt entries, str reduce) -> "
    "(Tensor, Tensor)",
    _spmm,
    _fake_spmm,
)
define(
    "spmm_features_gradient(Tensor graph, Tensor? values, Tensor grad, Tensor source, SymInt columns, "
    "SymInt entries, str reduce) -> Tensor",
    _features_gradient,
    lambda graph, values, grad, source, columns, entries, reduce: grad.new_empty((columns, grad.shape[1])),
)
define(
    "spmm_values_gradient(Tensor graph, Tensor features, Tensor grad, Tensor source, SymInt rows, "
    "SymInt entries, SymInt heads, str reduce) -> Tensor",
    _values_gradient,
    lambda graph, features, grad, source, rows, entries, heads, reduce: grad.new_empty((entries, heads)),
)
differentiate("spmm", _keep_spmm, _of_spmm)
differentiate("spmm_features_gradient", _keep_features_gradient, _of_features_gradient)
differentiate("spmm_values_gradient", _keep_values_gradient, _of_values_gradient)


def without_none(like: Tensor, made: Iterable[Tensor | None]) -> tuple[Tensor, ...]:
    """What an operator returns, which are tensors: an empty one for each that there is not."""
    return tuple(like.new_empty((0, 0)) if of is None else of for of in made)


# Attention. `target`, `source` and `scores` are [.., heads], or None.


def _edge_softmax(
    graph: Tensor,
    target: Tensor | None,
    source: Tensor | None,
    scores: Tensor | None,
    entries: int,
    negative_slope: float,
) -> Tensor:
    return _C.edge_softmax(_C.graph_of(graph), target, source, scores, negative_slope)


def _fake_edge_softmax(
    graph: Tensor,
    target: Tensor | None,
    source: Tensor | None,
    scores: Tensor | None,
    entries: Any,
    negative_slope: float,
) -> Tensor:
    like = next(tensor for tensor in (scores, target, source) if tensor is not None)
    return like.new_empty((entries, like.shape[1]))


def _keep_edge_softmax(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    graph, target, source, scores, _, ctx.negative_slope = inputs
    ctx.save_for_backward(graph, target, source, scores, output)


def _of_edge_softmax(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    graph, target, source, scores, output = ctx.saved_tensors
    made = _ops.edge_softmax_gradient(graph, target, source, scores, ctx.negative_slope, output, grad)
    given = [None if tensor is None else of for tensor, of in zip((target, source, scores), made, strict=True)]
    return None, *given, None, None


def _edge_softmax_gradient(
    graph: Tensor,
    target: Tensor | None,
    source: Tensor | None,
    scores: Tensor | None,
    negative_slope: float,
    output: Tensor,
    grad: Tensor,
) -> tuple[Tensor, ...]:
    made = _C.edge_softmax_gradient(_C.graph_of(graph), target, source, scores, negative_slope, output, grad)
    return without_none(grad, made)


def _fake_edge_softmax_gradient(
    graph: Tensor,
    target: Tensor | None,
    source: Tensor | None,
    scores: Tensor | None,
    negative_slope: float,
    output: Tensor,
    grad: Tensor,
) -> tuple[Tensor, ...]:
    return without_none(grad, [None if of is None else of.new_empty(of.shape) for of in (target, source, scores)])


def _no_second_attention(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
    raise _C.UserError(NO_SECOND_ATTENTION)


define(
    "edge_softmax(Tensor graph, Tensor? target, Tensor? source, Tensor? scores, SymInt entries, "
    "float negative_slope) -> Tensor",
    _edge_softmax,
    _fake_edge_softmax,
)
define(
    "edge_softmax_gradient(Tensor graph, Tensor? target, Tensor? source, Tensor? scores, float negative_slope, "
    "Tensor output, Tensor grad) -> (Tensor, Tensor, Tensor)",
    _edge_softmax_gradient,
    _fake_edge_softmax_gradient,
)
differentiate("edge_softmax", _keep_edge_softmax, _of_edge_softmax)
differentiate("edge_softmax_gradient", lambda ctx, inputs, output: None, _no_second_attention)
