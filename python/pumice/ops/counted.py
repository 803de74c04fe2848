"""Computes with the rows in use alone where there is room for more of them than there are: a count says how many, and
may be known on the device only. Nothing waits for it.

Rows past the count are neither read nor written, but for those that `clear_tail` clears, and sums have the same bits
however many such rows there are. Where all rows are in use, PyTorch's own functions run.
"""

from __future__ import annotations

from typing import Any, Union

import torch
from torch import Tensor

from .. import _C
from .._checks import kind_of
from ..coords import Coordinates
from . import modes
from .recomputed import gradients_of
from .traced import TracedMap

# Sites whose rows are counted, a map for its outputs, or int64 of one element beside the rows; None: all are in use.
Count = Union[Coordinates, _C.Map, TracedMap, Tensor, None]
_compiles = torch.compiler.is_compiling


def handed(count: Count) -> Any:
    """What the extension is given for it. Sites that were made inside a graph, and those that nobody has asked for yet,
    have all rows in use."""
    return count._sites if isinstance(count, Coordinates) else count


def is_counted(count: Count) -> bool:
    """Whether the host does not know that all rows are in use. Raises UserError for what is no count."""
    if count is None:
        return False
    if isinstance(count, Tensor):
        return True
    if _compiles() or isinstance(count, TracedMap):
        return False
    given = handed(count)
    if given is None:
        return False
    if not isinstance(given, (_C.Sites, _C.Map)):
        raise _C.UserError(
            f"count is {kind_of(count)}: give the Coordinates of the rows, an int64 tensor of one element, or None"
        )
    return _C.counts_on_device(given)


def clear_tail(features: Tensor, count: Count) -> Tensor:
    """The rows in use, and zeros past them: for what leaves a graph of changing counts, and before functions of
    PyTorch that go over all rows. A gradient that comes back is zeros past them too.

    Args:
        features: [N, …], floating or whole numbers.
        count: the `Coordinates` of the rows, or an int64 tensor of one element on their device; None: all are in use.
    Returns:
        [N, …] in memory of its own, differentiable; `features` themselves where the host knows that all are in use.
    Raises:
        UserError: for a count of other rows; on the CPU for one above N. On a device rows that follow from too many
        stay NaN.
    Waits:
        Never.
    Example:
        >>> ops.clear_tail(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([2]))
        tensor([[1.],
                [2.],
                [0.]])
    """
    traced = modes.traced(features)
    if features.dim() == 0:
        raise _C.UserError("features are one number: give [rows, …]")
    if not is_counted(count):
        if type(count) is Coordinates and not traced and count.rows != features.shape[0]:
            raise _C.UserError(
                f"count is of {count.rows} sites, and features have {features.shape[0]} rows: give the sites of these rows"
            )
        return features
    if traced:
        return torch.where(_rows_in_use(features, count), features, torch.zeros_like(features))
    return _clear(features, handed(count))


def _rows_in_use(features: Tensor, count: Count) -> Tensor:
    """bool, which broadcasts over the features; in a graph."""
    if not isinstance(count, Tensor):
        raise _C.UserError(
            "sites whose number only a device knows cannot go through a graph of PyTorch, nor where calls are watched: "
            "give an int64 tensor of one element as count"
        )
    rows = torch.arange(features.shape[0], device=features.device)
    return (rows < count).reshape(-1, *[1] * (features.dim() - 1))


class _Clear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, count: Any) -> Tensor:
        ctx.count = count
        return _C.clear_tail(features, count)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _clear(grad, ctx.count), None


def linear(features: Tensor, weight: Tensor, bias: Tensor | None, count: Count) -> Tensor:
    """torch.nn.functional.linear of the rows in use."""
    if not is_counted(count):
        return torch.nn.functional.linear(features, weight, bias)
    dtype = modes.autocast_dtype(features)
    if dtype is not None:
        features, weight = features.to(dtype), weight.to(dtype)
    if modes.traced(features):
        return _clear_around(lambda x: torch.nn.functional.linear(x, weight, bias), features, count)
    return _linear(features, weight, modes.bias_for(bias, features), handed(count))


def _clear_around(function: Any, features: Tensor, count: Count) -> Tensor:
    """A function of single rows whose parameters get gradients of the rows in use alone."""
    return clear_tail(function(clear_tail(features, count)), count)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None, count: Any) -> Tensor:
        ctx.save_for_backward(features, weight, bias)
        ctx.count = count
        return _C.linear(features, weight, bias, count, *modes.of(features))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, weight, bias = ctx.saved_tensors
        if torch.is_grad_enabled():

            def again(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
                b = None if b is None else b.to(x.dtype)
                return _clear_around(lambda rows: torch.nn.functional.linear(rows, w, b), x, ctx.count)

            return *gradients_of(again, ctx.saved_tensors, grad), None
        made = _C.linear_gradients(
            features, weight, grad, ctx.count, *modes.of(features), *ctx.needs_input_grad[:3]
        )
        return *made, None


def layer_norm(
    features: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, count: Count
) -> Tensor:
    """torch.nn.functional.layer_norm over the channels of the rows in use."""
    channels = features.shape[1:]
    if not is_counted(count):
        return torch.nn.functional.layer_norm(features, channels, weight, bias, eps)
    if features.is_cuda and modes.autocast_dtype(features) is not None:
        features = features.float()  # as PyTorch does
    if modes.traced(features):
        return _clear_around(
            lambda x: torch.nn.functional.layer_norm(x, channels, weight, bias, eps), features, count
        )
    weight, bias = modes.bias_for(weight, features), modes.bias_for(bias, features)
    return _layer_norm(features, weight, bias, eps, handed(count))


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, count: Any
    ) -> Tensor:
        output, mean, deviation = _C.layer_norm(features, weight, bias, eps, count)
        ctx.save_for_backward(features, weight, bias)
        ctx.statistics = (mean, deviation)
        ctx.eps, ctx.count = eps, count
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, weight, _ = ctx.saved_tensors
        if torch.is_grad_enabled():

            def again(x: Tensor, w: Tensor | None, b: Tensor | None) -> Tensor:
                def norm(rows: Tensor) -> Tensor:
                    made = torch.nn.functional.layer_norm(
                        rows.to(modes.sum_type(x.dtype)), x.shape[1:], w, b, ctx.eps
                    )
                    return made.to(x.dtype)

                return _clear_around(norm, x, ctx.count)

            return *gradients_of(again, ctx.saved_tensors, grad), None, None
        made = _C.layer_norm_gradient(features, grad, weight, *ctx.statistics, ctx.count)
        return *_wanted(made, ctx.needs_input_grad), None, None


def _wanted(gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> list[Tensor | None]:
    return [gradient if needed else None for gradient, needed in zip(gradients, needs)]


def instance_norm(
    features: Tensor, coords: Coordinates, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Norm over the rows of each batch item, on sites whose number only the device knows."""
    weight, bias = modes.bias_for(weight, features), modes.bias_for(bias, features)
    return _instance_norm(features, weight, bias, eps, coords.sites)


class _InstanceNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, sites: _C.Sites
    ) -> Tensor:
        output, mean, deviation = _C.instance_norm(features, sites, weight, bias, eps)
        ctx.save_for_backward(features, weight)
        ctx.statistics = (mean, deviation)
        ctx.sites = sites
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, weight = ctx.saved_tensors
        made = _C.instance_norm_gradient(features, grad, ctx.sites, weight, *ctx.statistics)
        return *_wanted(made, ctx.needs_input_grad), None, None


def settled_norm(
    features: Tensor,
    mean: Tensor,
    variance: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    count: Count,
) -> Tensor:
    """torch.nn.functional.batch_norm of the rows in use, in evaluation."""
    numbers = [modes.bias_for(value, features) for value in (mean, variance, weight, bias)]
    return _settled_norm(features, *numbers, eps, handed(count))


class _SettledNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        mean: Tensor,
        variance: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
        count: Any,
    ) -> Tensor:
        ctx.save_for_backward(features, mean, variance, weight)
        ctx.eps, ctx.count = eps, count
        return _C.batch_norm_inference(features, mean, variance, weight, bias, eps, count)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, mean, variance, weight = ctx.saved_tensors
        of_features, of_weight, of_bias = _C.batch_norm_inference_gradient(
            features, grad, mean, variance, weight, ctx.eps, ctx.count
        )
        needs = ctx.needs_input_grad
        return (
            of_features if needs[0] else None,
            None,
            None,
            of_weight if needs[3] else None,
            of_bias if needs[4] else None,
            None,
            None,
        )


def sum_rows(features: Tensor, count: Count) -> Tensor:
    """[N, C] to [C], float32 (float64 of float64): the sum of the rows in use, in an order that their number alone
    decides about."""
    if modes.traced(features):
        return clear_tail(features, count).sum(0, dtype=modes.sum_type(features.dtype))
    return _sum(features, handed(count))


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, count: Any) -> Tensor:
        ctx.shape, ctx.dtype, ctx.count = features.shape, features.dtype, count
        return _C.sum_rows(features, count)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        rows = grad.to(ctx.dtype).expand(ctx.shape)
        return (_clear(rows, ctx.count) if is_counted(ctx.count) else rows), None


_clear = modes.function(_Clear)
_linear = modes.function(_Linear)
_layer_norm = modes.function(_LayerNorm)
_instance_norm = modes.function(_InstanceNorm)
_settled_norm = modes.function(_SettledNorm)
_sum = modes.function(_Sum)
