"""Registers the formulas by which torch.utils.flop_counter.FlopCounterMode counts convolutions: two operations for
each product of a pair of rows, as `pumice.explain` counts them.

While a mode of PyTorch is active, eager calls go through the operators of torch.library, so a formula for
each of these is enough. The formulas are registered once that module is there: it brings in a compiler of
PyTorch's, half a second of import time that few calls need.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

from ... import _C

_COUNTER = "torch.utils.flop_counter"
_registered: dict[Any, Any] = {}


def announce() -> None:
    """Registers the formulas if the counter has been imported; called while a mode of PyTorch is active."""
    if torch.compiler.is_compiling() or _COUNTER not in sys.modules:
        return
    if not _registered:
        _register()
    # A counter that was made earlier has a copy of the register.
    for mode in torch.utils._python_dispatch._get_current_dispatch_mode_stack():
        formulas = getattr(getattr(mode, "counter", mode), "flop_registry", None)
        if isinstance(formulas, dict):
            for operator, formula in _registered.items():
                formulas.setdefault(operator, formula)


def _register() -> None:
    from torch.utils.flop_counter import flop_registry, register_flop_formula

    ops = torch.ops.pumice
    for operator, formula in (
        (ops.convolution, _convolution),
        (ops.fused_convolution, _convolution),
        (ops.convolution_input_gradient, _input_gradient),
        (ops.convolution_weight_gradient, _weight_gradient),
    ):
        register_flop_formula(operator, get_raw=True)(formula)
        _registered[operator] = flop_registry[operator]


def _convolution(features: Tensor, weight: Tensor, *others: Any, out_val: Any = None) -> int:
    token = next(value for value in others if _is_token(value))
    return _products(token, weight, out_val)


def _input_gradient(
    grad_output: Tensor, weight: Tensor, map: Tensor, *others: Any, out_val: Any = None
) -> int:
    return _products(map, weight, grad_output)


def _weight_gradient(
    features: Tensor, grad_output: Tensor, map: Tensor, *others: Any, out_val: Any = None
) -> int:
    return _products(map, out_val, grad_output)


def _is_token(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.int64 and value.shape == (1,)


def _products(map: Tensor, weight: Tensor, output: Tensor) -> int:
    """Twice the products of weight [K, in / groups, out] over the pairs of a map. Inside a graph the
    number of pairs is not known, and the largest possible one counts: a pair for every row and offset."""
    offsets, inputs, outputs = weight.shape
    if type(map) is not Tensor:
        return 2 * output.shape[0] * offsets * inputs * outputs
    return 2 * pairs_of(_C.map_of(map)) * inputs * outputs


def pairs_of(map: _C.Map) -> int:
    """How many pairs of rows a map joins. The host does not know it of a map on a GPU; there a convolution of ones
    with ones sums the pairs of each row."""
    device = torch.device(map.in_sites.device)
    if device.type == "cpu":
        return map.pairs
    ones = torch.ones(map.in_rows, 1, device=device), torch.ones(map.offsets, 1, 1, device=device)
    of_rows = _C.convolution(*ones, map, None, 1, True, False, None, None, None, 0)
    return int(of_rows.sum(dtype=torch.float64))
