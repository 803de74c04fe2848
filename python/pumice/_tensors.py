"""Checks tensors before something is computed from them. The extension checks those that it is given itself
(python/src/tensor_look.cpp) and calls `describe` for the text of an error."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from . import _C
from ._checks import kind_of, shown

_ORDINARY = (torch.Tensor, torch.nn.Parameter)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def describe(value: Any) -> str:
    """The end of a sentence that begins with "features is": why kernels cannot take `value`, and how to make a
    tensor that they take. Empty for a dense tensor, even for one without memory."""
    kind = kind_of(value)
    if hasattr(value, "coords") and hasattr(value, "features"):
        return f"{kind}: give x.features, [N, C], and x.coords where sites are asked for"
    if not isinstance(value, torch.Tensor):
        return f"{kind}: " + ("give a tensor" if value is None else "torch.as_tensor() makes a tensor")
    if value.is_nested:
        return "a nested tensor: torch.cat(list(x.unbind())) makes one of all its parts"
    if value.layout is not torch.strided:
        return f"a tensor of layout {value.layout}: .to_dense() makes an ordinary one"
    if value.is_quantized:
        return f"quantised ({value.dtype}): .dequantize() makes an ordinary tensor"
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return (
            "inside a transform of functions (torch.func.vmap, grad, jvp, …), which operators of "
            "Pumice take no part in: call them outside, and torch.autograd for gradients"
        )
    if type(value).__module__.startswith("torch.masked"):
        return "a masked tensor, whose mask would be lost: .to_tensor(0) makes an ordinary one"
    if type(value) not in _ORDINARY and is_traceable_wrapper_subclass(value) and value.numel() > 0:
        if callable(getattr(value, "as_tensor", None)):
            return f"{kind}, which keeps its numbers in another tensor: .as_tensor() gives it"
        return f"{kind}, which keeps its numbers in other tensors: give an ordinary one"
    return ""


def no_tensor(name: str, value: Any, verb: str = "is") -> str:
    """What to say where `value` is given as `name`, and is no tensor."""
    if hasattr(value, "coords") and hasattr(value, "features"):
        return f"{name} {verb} {kind_of(value)}: give x.{name}"
    remedy = "give a tensor" if value is None or isinstance(value, str) else f"torch.as_tensor({name}) makes a tensor"
    return f"{name} {verb} {kind_of(value)}: {remedy}"


def as_device(value: Any) -> torch.device:
    """The device that `value` names. Raises UserError where it names none."""
    try:
        return torch.device(value)
    except (TypeError, RuntimeError):
        raise _C.UserError(f"device {shown(value)}: give a device, as 'cpu', 'cuda' or 'cuda:1'") from None


def numbered_device(value: Any) -> torch.device:
    """The device that `value` names, a GPU with its number. Raises UserError where it names none."""
    device = as_device(value)
    if device.type != "cuda":
        return device
    torch.cuda.init()
    return torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)


def ordinary(tensor: Any) -> Any:
    """`tensor`, or the ordinary tensor that it stands for, if it is the output of a layer that waits (nn/deferred)."""
    stands_for = None if type(tensor) in _ORDINARY else getattr(tensor, "stands_for", None)
    return tensor if stands_for is None else stands_for()


def check_tensor(name: str, value: Any) -> None:
    """Raises UserError, naming it, unless `value` is a dense tensor of PyTorch."""
    if torch.compiler.is_compiling():
        return
    if (
        not isinstance(value, torch.Tensor)
        or value.layout is not torch.strided
        or value.is_nested
        or value.is_quantized
        or type(value).__module__.startswith("torch.masked")
    ):
        raise _C.UserError(f"{name} is {describe(value)}")


def check_real(name: str, value: Any) -> None:
    """Raises UserError, naming it, unless `value` is None or a dense tensor of floats."""
    if value is None:
        return
    check_tensor(name, value)
    if not value.is_floating_point():
        raise _C.UserError(f"{name} is {value.dtype}: give floats, as .float() makes them")


def check_floating(features: Any) -> None:
    """Raises UserError unless `features` are a dense tensor of a floating type, as layers, gradients and
    interpolation need it."""
    kind = type(features)
    ordinary = kind is torch.Tensor or kind is torch.nn.Parameter
    if ordinary and features.is_floating_point() and features.layout is torch.strided:
        if not features.is_nested:
            return
    check_tensor("features", features)
    if not features.is_floating_point():
        raise _C.UserError(
            f"features are {features.dtype}, which layers cannot compute with: give features.float()"
        )
