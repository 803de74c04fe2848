"""Registers convolution, its two gradients, and the fused convolution of inference."""

from __future__ import annotations

from torch import Tensor

from ... import _C
from ..._registry import define
from .. import modes
from ..plans import of_text


def _plans(text: str | None, direction: str = "forward") -> _C.Plans | None:
    return None if text is None else of_text(text, direction)


def _convolution(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    map: Tensor,
    in_rows: int,
    out_rows: int,
    groups: int,
    dataflow: str | None,
    plan: str | None = None,
) -> Tensor:
    found = _C.map_of(map)
    deterministic, tf32 = modes.of(features)
    return _C.convolution(
        features.contiguous(),
        weight.contiguous(),
        found,
        modes.bias_for(bias, features),
        groups,
        deterministic,
        tf32,
        dataflow,
        _plans(plan),
        None,
        0,
    )


def _input_gradient(
    grad_output: Tensor,
    weight: Tensor,
    map: Tensor,
    in_rows: int,
    out_rows: int,
    groups: int,
    dataflow: str | None,
    plan: str | None = None,
) -> Tensor:
    found = _C.map_of(map)
    return _C.convolution_input_gradient(
        grad_output.contiguous(),
        weight.contiguous(),
        found,
        groups,
        *modes.of(grad_output),
        dataflow,
        _plans(plan, "input_gradient"),
    )


def _weight_gradient(
    features: Tensor,
    grad_output: Tensor,
    map: Tensor,
    in_rows: int,
    out_rows: int,
    offsets: int,
    groups: int,
    plan: str | None = None,
) -> Tensor:
    found = _C.map_of(map)
    return _C.convolution_weight_gradient(
        features.contiguous(),
        grad_output.contiguous(),
        found,
        groups,
        *modes.of(features),
        _plans(plan, "weight_gradient"),
    )


define(
    "convolution(Tensor features, Tensor weight, Tensor? bias, Tensor map, SymInt in_rows, "
    "SymInt out_rows, int groups, str? dataflow, str? plan=None) -> Tensor",
    _convolution,
    lambda x, w, bias, map, in_rows, out_rows, groups, dataflow, plan=None: x.new_empty(
        (out_rows, w.shape[2])
    ),
)
define(
    "convolution_input_gradient(Tensor grad_output, Tensor weight, Tensor map, SymInt in_rows, "
    "SymInt out_rows, int groups, str? dataflow, str? plan=None) -> Tensor",
    _input_gradient,
    lambda g, w, map, in_rows, out_rows, groups, dataflow, plan=None: g.new_empty(
        (in_rows, w.shape[1] * groups)
    ),
)
define(
    "convolution_weight_gradient(Tensor features, Tensor grad_output, Tensor map, SymInt in_rows, "
    "SymInt out_rows, int offsets, int groups, str? plan=None) -> Tensor",
    _weight_gradient,
    lambda x, g, map, in_rows, out_rows, offsets, groups, plan=None: x.new_empty(
        (offsets, x.shape[1] // groups, g.shape[1])
    ),
)


def _fused_convolution(
    features: Tensor,
    weight: Tensor,
    map: Tensor,
    out_rows: int,
    scale: Tensor,
    shift: Tensor,
    residual: Tensor | None,
    relu: bool,
    groups: int,
    plan: str | None = None,
) -> Tensor:
    return _C.fused_convolution(
        features.contiguous(),
        weight.contiguous(),
        _C.map_of(map),
        scale,
        shift,
        None if residual is None else residual.contiguous(),
        int(relu),
        0.0,
        groups,
        *modes.of(features),
        _plans(plan),
        None,
        0,
    )


define(
    "fused_convolution(Tensor features, Tensor weight, Tensor map, SymInt out_rows, Tensor scale, "
    "Tensor shift, Tensor? residual, bool relu, int groups, str? plan=None) -> Tensor",
    _fused_convolution,
    lambda x, w, map, out_rows, scale, shift, residual, relu, groups, plan=None: x.new_empty(
        (out_rows, w.shape[2])
    ),
)
