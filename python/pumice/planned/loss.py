"""What a compiled step computes its loss with: rows that are not in use must not count."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._checks import kind_of
from ..ops.counted import clear_tail
from .outputs import SitesOfRun
from .scans import kind_for
from .tails import rows_of, with_tails

_OF_PUMICE = "pumice.losses"
_OF_TORCH = ("torch.nn.functional", "torch.nn.modules.loss")


class Loss:
    """A function of what the model returns and of labels. Those of `pumice.losses` are told how many rows are in use;
    others see zeros in the output and `ignore_index` in the labels past them. Losses of Pumice and of PyTorch get the
    features where the model returns a sparse tensor."""

    def __init__(self, function: Any) -> None:
        if not callable(function):
            raise _C.UserError(f"loss is {kind_of(function)}: give a function of (output, labels)")
        self.function: Callable[..., Any] = function
        self.ignore_index = _ignore_index_of(function)
        inner = function.func if isinstance(function, functools.partial) else function
        place = type(inner).__module__ if isinstance(inner, torch.nn.Module) else getattr(inner, "__module__", None)
        self._takes_count = place == _OF_PUMICE
        self._takes_features = self._takes_count or place in _OF_TORCH

    def __call__(self, output: Any, labels: Any, sites: SitesOfRun | None) -> Tensor:
        """A floating scalar; `sites` are those of a run by a plan, None where all rows are in use. Raises UserError
        for anything else than a scalar that parameters have a part in."""
        if self._takes_count and sites is not None:
            value = self.function(_features_of(output), labels, count=rows_of(output, sites))
        else:
            if sites is not None:
                output = with_tails(output, sites, clear_tail)
            value = self.function(_features_of(output) if self._takes_features else output, labels)
        if not isinstance(value, Tensor) or value.dim() != 0 or not value.is_floating_point():
            what = f"{value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else kind_of(value)
            raise _C.UserError(f"loss gave {what}: give a function that returns one floating number, as a tensor")
        if not value.requires_grad:
            raise _C.UserError(
                "loss gave a number that does not follow from parameters: train some, and detach nothing in between"
            )
        return value


def _features_of(output: Any) -> Any:
    kind = kind_for(output)
    return output if kind is None else kind.parts(output)[1]


def _ignore_index_of(function: Any) -> int:
    given = getattr(function, "ignore_index", None)
    if given is None and isinstance(function, functools.partial):
        given = function.keywords.get("ignore_index")
        if given is None:
            return _ignore_index_of(function.func)
    if given is None and not isinstance(function, torch.nn.Module):
        given = _default_of(function)
    if isinstance(given, bool) or not isinstance(given, int):
        raise _C.UserError(
            f"loss {_name_of(function)} has no ignore_index, the label of rows that do not count, which a graph fills in "
            "for those that are not in use: give it one, as loss.ignore_index = -1, or take one of pumice.losses"
        )
    return given


def _default_of(function: Any) -> Any:
    try:
        parameter = inspect.signature(function).parameters.get("ignore_index")
    except (TypeError, ValueError):  # of C
        return None
    return None if parameter is None or parameter.default is parameter.empty else parameter.default


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
