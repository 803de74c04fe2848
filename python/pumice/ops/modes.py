"""Reads PyTorch's switches: determinism, TF32, autocast, tracing, and whether a gradient is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import _C
from .._tensors import check_real, check_tensor

_float32, _float64 = torch.float32, torch.float64
# By their own names, since each call asks for all of them.
_transformed = torch._C._are_functorch_transforms_active
_compiles = torch.compiler.is_compiling
_watchers = torch._C._len_torch_dispatch_stack
_deterministic = torch._C._get_deterministic_algorithms


def of(features: Tensor) -> tuple[bool, bool]:
    """(deterministic, tf32). On the CPU results always are the same bits, and in full float32."""
    if not features.is_cuda:
        return False, False
    tf32 = features.dtype is _float32 and torch.get_float32_matmul_precision() != "highest"
    return _deterministic(), tf32


def autocast_dtype(features: Tensor) -> torch.dtype | None:
    """The type in which autocast computes with `features`; None where it is off or leaves them alone."""
    if not torch._C._is_any_autocast_enabled():  # a quarter of the time of asking for one kind
        return None
    try:
        kind = "cuda" if features.is_cuda else "cpu"
    except AttributeError:  # of what is no tensor; layers that wait ask with links, which have what is asked here
        look("features", features)
        raise
    if not torch.is_autocast_enabled(kind) or features.dtype == torch.float64:
        return None
    return torch.get_autocast_dtype(kind)


def traced(features: Tensor, name: str = "features") -> bool:
    """Whether a call has to go through an operator of torch.library. Raises UserError inside transforms of
    functions (torch.func) and in differentiation in forward mode, which no operator supports."""
    if _compiles():
        return True
    if _transformed() or forward_ad._current_level >= 0:
        raise _C.UserError(
            "torch.func (grad, vjp, vmap, jvp, jacrev, hessian) and forward-mode differentiation do not "
            "go through Pumice's operators: call torch.autograd.grad or backward(), with "
            "create_graph=True for derivatives of derivatives"
        )
    kind = type(features)
    if kind is not Tensor and kind is not torch.nn.Parameter:
        check_tensor(name, features)
        return True
    return _watchers() > 0


def wants_gradient(*tensors: Tensor | None) -> bool:
    """Whether one of them wants a gradient. A function that computes without gradients has to pass every tensor
    that takes part, parameters of norms and biases too."""
    if not torch.is_grad_enabled():
        return False
    for tensor in tensors:
        if tensor is not None and tensor.requires_grad:
            return True
    return False


def refuse_gradient(name: str, **tensors: Tensor | None) -> None:
    """Raises UserError where one of the arguments, given by name, wants a gradient, which would be lost."""
    try:
        wanted = wants_gradient(*tensors.values())
    except AttributeError:
        for argument, tensor in tensors.items():
            look(argument, tensor, optional=True)
        raise
    if wanted:
        raise _C.UserError(
            f"{name} is for inference, and one of its tensors wants a gradient: call it under "
            "torch.no_grad(), or what it computes step by step"
        )


def rounds_weight(
    features: Tensor,
    weight: Tensor,
    groups: int,
    dataflow: str | None,
    plans: _C.Plans | None = None,
) -> bool:
    """Whether kernels take a float32 weight as it is, and round it where they pack it."""
    return (
        features.is_cuda
        and groups == 1
        and weight.dtype is torch.float32
        and dataflow in (None, "implicit_gemm")
        and (plans is None or plans.round_weights)
        and features.dtype in (torch.float16, torch.bfloat16)
    )


def check_weight(features: Tensor, weight: Tensor) -> None:
    """Raises UserError for a float32 weight with features in half precision outside of autocast: kernels of a GPU
    would round the weight without being asked to. The extension itself refuses other types that differ."""
    if weight.dtype is not features.dtype and rounds_weight(features, weight, 1, None):
        raise _C.UserError(
            f"weight is {weight.dtype} but the features are in half precision ({features.dtype}): "
            "convert one of them, or say what to compute in with torch.autocast"
        )


def is_recorded(features: Tensor) -> bool:
    """Whether a CUDA graph is being recorded. What is computed then exists only after the graph has run, so it must
    not be kept for other calls."""
    return features.is_cuda and torch.cuda.is_current_stream_capturing()


def stream_of(features: Tensor) -> int:
    """The current stream of their GPU, as a number; 0 on the CPU."""
    return torch._C._cuda_getCurrentRawStream(features.get_device()) if features.is_cuda else 0


def version_of(tensor: Tensor) -> int:
    """How often it was changed in place; 0 in inference mode, where PyTorch does not count."""
    return 0 if tensor.is_inference() else tensor._version


def function(kind: type[torch.autograd.Function]) -> Callable[..., Any]:
    """`kind.apply` without the part that only torch.func needs, which `traced` refuses."""
    return super(torch.autograd.Function, kind).apply


def sum_type(dtype: torch.dtype) -> torch.dtype:
    """The type that sums of values of `dtype` are kept in: float64 for float64, else float32."""
    return _float64 if dtype is _float64 else _float32


def bias_for(bias: Tensor | None, features: Tensor) -> Tensor | None:
    """`bias` in the type of sums, which it is added to."""
    if bias is None:
        return None
    wanted = sum_type(features.dtype)
    if bias.dtype is wanted:
        return bias
    check_real("bias", bias)
    return bias.to(wanted)


def look(name: str, tensor: Any, optional: bool = False) -> None:
    """Raises UserError, naming it, where an object of another class than Tensor and Parameter is no dense tensor, nor
    None where it is `optional`. The extension checks tensors of these two classes."""
    kind = type(tensor)
    if kind is not Tensor and kind is not torch.nn.Parameter and not (optional and tensor is None):
        check_tensor(name, tensor)
