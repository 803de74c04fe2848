"""Registers relational products. `gather`, `types` and `scatter` are the tokens of a typed graph's parts. How many
segments it has only the product finds out: what its gradient needs of them goes there as one token."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._registry import define, differentiate, fake_token
from .. import modes
from .graphs import heads_of, without_none
from .typed_linear import channels_made

_ops = torch.ops.pumice

_ONLY_EDGES = (None, None, None)  # no targets, root, bias
NO_SECOND = "rgms has no second derivative in a compiled function: call it outside of one"


def _parts(gather: Tensor, types: Tensor, scatter: Tensor) -> tuple[_C.Graph, _C.TypedRows, _C.Graph]:
    return _C.graph_of(gather), _C.typed_rows_of(types), _C.graph_of(scatter)


def _rgms(
    gather: Tensor,
    types: Tensor,
    scatter: Tensor,
    edge_weight: Tensor | None,
    features: Tensor,
    weight: Tensor | None,
    rows: int,
    reduce: str,
) -> tuple[Tensor, Tensor]:
    parts = _parts(gather, types, scatter)
    if weight is None:
        gathered, source = _C.spmm(parts[0], edge_weight, features, reduce, None)
        return _C.spmm(parts[2], None, gathered, "sum", None)[0], _C.tensors_token((None, source))
    tf32 = modes.of(features)[1]
    output, gathered, source = _C.rgms(
        *parts, edge_weight, features, weight, reduce, *_ONLY_EDGES, True, tf32
    )
    return output, _C.tensors_token((gathered, source))


def _fake_rgms(
    gather: Tensor,
    types: Tensor,
    scatter: Tensor,
    edge_weight: Tensor | None,
    features: Tensor,
    weight: Tensor | None,
    rows: Any,
    reduce: str,
) -> tuple[Tensor, Tensor]:
    channels = features.shape[1] if weight is None else channels_made(weight)
    return features.new_empty((rows, channels)), fake_token(features)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, _, ctx.reduce = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*tensors, output[1])


def _of_rgms(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    wanted = ctx.needs_input_grad[3:6]
    made = _ops.rgms_gradients(*ctx.saved_tensors, grad, ctx.reduce, *wanted)
    return None, None, None, *(of if is_wanted else None for of, is_wanted in zip(made, wanted, strict=True)), None, None


def _gradients(
    gather: Tensor,
    types: Tensor,
    scatter: Tensor,
    edge_weight: Tensor | None,
    features: Tensor,
    weight: Tensor | None,
    kept: Tensor,
    grad: Tensor,
    reduce: str,
    of_edge_weight: bool,
    of_features: bool,
    of_weight: bool,
) -> tuple[Tensor, ...]:
    parts = _parts(gather, types, scatter)
    gathered, source = _C.tensors_of(kept)
    wanted = (of_edge_weight, of_features, of_weight)
    if weight is not None:
        given = (edge_weight, features, weight, gathered, source, grad, reduce, *_ONLY_EDGES)
        made = _C.rgms_gradients(*parts, *given, (*wanted, False, False, False), *modes.of(features))[:3]
    else:
        of_segments = _C.spmm_features_gradient(parts[2], None, grad, None, "sum")
        made = (
            _C.spmm_values_gradient(parts[0], features, of_segments, heads_of(edge_weight), source, reduce)
            if of_edge_weight and edge_weight is not None
            else None,
            _C.spmm_features_gradient(parts[0], edge_weight, of_segments, source, reduce) if of_features else None,
            None,
        )
    of_values = made[0] if made[0] is None or edge_weight is None else made[0].reshape(edge_weight.shape)
    return without_none(grad, (of_values, *made[1:]))


def _fake_gradients(
    gather: Tensor,
    types: Tensor,
    scatter: Tensor,
    edge_weight: Tensor | None,
    features: Tensor,
    weight: Tensor | None,
    kept: Tensor,
    grad: Tensor,
    reduce: str,
    *wanted: bool,
) -> tuple[Tensor, ...]:
    given = zip((edge_weight, features, weight), wanted, strict=True)
    return without_none(grad, [of.new_empty(of.shape) if is_wanted and of is not None else None for of, is_wanted in given])


def _no_second(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
    raise _C.UserError(NO_SECOND)


define(
    "rgms(Tensor gather, Tensor types, Tensor scatter, Tensor? edge_weight, Tensor features, Tensor? weight, SymInt rows, "
    "str reduce) -> (Tensor, Tensor)",
    _rgms,
    _fake_rgms,
)
define(
    "rgms_gradients(Tensor gather, Tensor types, Tensor scatter, Tensor? edge_weight, Tensor features, Tensor? weight, "
    "Tensor kept, Tensor grad, str reduce, bool of_edge_weight, bool of_features, bool of_weight) -> "
    "(Tensor, Tensor, Tensor)",
    _gradients,
    _fake_gradients,
)
differentiate("rgms", _keep, _of_rgms)
differentiate("rgms_gradients", lambda ctx, inputs, output: None, _no_second)
