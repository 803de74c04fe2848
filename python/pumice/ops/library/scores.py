"""Registers scores of additive attention. `graph` is the token of a graph; `entry` is None where entries have no rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._registry import define, differentiate
from .graphs import without_none

_ops = torch.ops.pumice

NO_SECOND = "edge_scores has no second derivative here: take the gradient without create_graph"


def _scores(
    graph: Tensor,
    target: Tensor,
    source: Tensor,
    attention: Tensor,
    entry: Tensor | None,
    entries: int,
    negative_slope: float,
) -> Tensor:
    return _C.edge_scores(_C.graph_of(graph), target, source, attention, entry, negative_slope)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    graph, target, source, attention, entry, _, ctx.negative_slope = inputs
    ctx.save_for_backward(graph, target, source, attention, entry)


def _gradient_of(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    graph, target, source, attention, entry = ctx.saved_tensors
    made = _ops.edge_scores_gradient(graph, target, source, attention, entry, ctx.negative_slope, grad)
    return None, *made[:3], None if entry is None else made[3], None, None


def _gradients(
    graph: Tensor,
    target: Tensor,
    source: Tensor,
    attention: Tensor,
    entry: Tensor | None,
    negative_slope: float,
    grad: Tensor,
) -> tuple[Tensor, ...]:
    made = _C.edge_scores_gradient(_C.graph_of(graph), target, source, attention, entry, negative_slope, grad)
    return without_none(grad, made)


def _fake_gradients(
    graph: Tensor,
    target: Tensor,
    source: Tensor,
    attention: Tensor,
    entry: Tensor | None,
    negative_slope: float,
    grad: Tensor,
) -> tuple[Tensor, ...]:
    given = (target, source, attention, entry)
    return without_none(grad, [None if of is None else of.new_empty(of.shape) for of in given])


def _no_second(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
    raise _C.UserError(NO_SECOND)


define(
    "edge_scores(Tensor graph, Tensor target, Tensor source, Tensor attention, Tensor? entry, SymInt entries, "
    "float negative_slope) -> Tensor",
    _scores,
    lambda graph, target, source, attention, entry, entries, negative_slope: target.new_empty(
        (entries, attention.shape[0])
    ),
)
define(
    "edge_scores_gradient(Tensor graph, Tensor target, Tensor source, Tensor attention, Tensor? entry, "
    "float negative_slope, Tensor grad) -> (Tensor, Tensor, Tensor, Tensor)",
    _gradients,
    _fake_gradients,
)
differentiate("edge_scores", _keep, _gradient_of)
differentiate("edge_scores_gradient", lambda ctx, inputs, output: None, _no_second)
