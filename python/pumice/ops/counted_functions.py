"""Functions of PyTorch that sum or normalise over rows, in a pass whose tensors have room for more rows than are in use: inside
`counting` they compute with the rows in use alone, so that modules of torch.nn do, with their own parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .counted import Count, _clear_around, is_counted, layer_norm, linear
from .normalization import batch_norm

CountOf = Callable[[Tensor], Count]  # what counts the rows of a tensor; None: all are in use


@contextmanager
def counting(count_of: CountOf, statistics_only: bool = False) -> Iterator[None]:
    """In it the functions that have a twin here go over the rows that `count_of` their input says, on this thread.
    `statistics_only`: those whose rows follow from all rows alone, and they leave zeros past the count, forward and backward:
    where rows past it are numbers and the gradients there zeros, other functions do right as they are."""
    before = _now.count_of, _now.twins
    _now.count_of, _now.twins = count_of, _STATISTICS if statistics_only else _TWINS
    try:
        with _Counting():
            yield
    finally:
        _now.count_of, _now.twins = before


def has_twin(function: Any) -> bool:
    """Whether `called` may compute something else than the function itself."""
    return _now.count_of is not None and function in _now.twins


def called(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """function(*args, **kwargs), of the rows in use of an ordinary tensor."""
    input = args[0] if args else kwargs.get("input")
    if has_twin(function) and type(input) is Tensor and input.dim() == 2:
        assert _now.count_of is not None
        count = _now.count_of(input)
        if is_counted(count):
            return _now.twins[function](count, *args, **kwargs)
    return function(*args, **kwargs)


class _Now(threading.local):
    count_of: CountOf | None = None
    twins: dict[Any, Callable[..., Tensor]] = {}  # of `counting`


_now = _Now()


def run_backward(outputs: Sequence[Tensor], gradients: Sequence[Tensor | None] | None = None) -> None:
    """torch.autograd.backward, which itself runs outside modes of PyTorch: inside `counting` the functions that
    torch.utils.checkpoint calls again count as they did. Does not wait."""
    given = [None] * len(outputs) if gradients is None else gradients
    made = tuple(torch.ones_like(one) if gradient is None else gradient for one, gradient in zip(outputs, given))
    torch.autograd.Variable._execution_engine.run_backward(
        tuple(outputs), made, False, False, (), allow_unreachable=True, accumulate_grad=True
    )


class _Counting(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is torch.autograd.backward and not any(kwargs.get(name) for name in _OF_OTHER_PASSES):
            gradients = kwargs.get("grad_tensors")
            with self:  # a pass inside another, as torch.utils.checkpoint with use_reentrant=True has it
                return run_backward(args[0], [gradients] if isinstance(gradients, Tensor) else gradients)
        return called(function, args, kwargs)


_OF_OTHER_PASSES = ("retain_graph", "create_graph", "inputs")


def _linear(count: Count, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return linear(input, weight, bias, count)


def _batch_norm(
    count: Count,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    statistics_only: bool = False,
) -> Tensor:
    def counted(rows: Tensor) -> Tensor:
        return batch_norm(rows, weight, bias, running_mean, running_var, training, momentum, eps, count=count)

    if not statistics_only:
        return counted(input)
    if not training:
        return functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    return _clear_around(counted, input, count)


def _layer_norm(
    count: Count,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    if tuple(normalized_shape) != tuple(input.shape[1:]):
        return functional.layer_norm(input, normalized_shape, weight, bias, eps)  # which refuses it
    return layer_norm(input, weight, bias, eps, count)


def _of_rows(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The twin of a function that takes each row for itself, and whose parameters get gradients of all."""

    def twin(count: Count, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _clear_around(lambda rows: function(rows, *args, **kwargs), input, count)

    return twin


_ROW_BY_ROW = [functional.prelu, functional.group_norm, *([functional.rms_norm] if hasattr(functional, "rms_norm") else [])]
_TWINS: dict[Any, Callable[..., Tensor]] = {
    functional.linear: _linear,
    functional.batch_norm: _batch_norm,
    functional.layer_norm: _layer_norm,
    **{function: _of_rows(function) for function in _ROW_BY_ROW},
}
_STATISTICS: dict[Any, Callable[..., Tensor]] = {functional.batch_norm: partial(_batch_norm, statistics_only=True)}
