"""Lists the functions of PyTorch that stand for a norm, a sum or a ReLU of a layer's output, and those that take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .links import Norm
from .uses import JOIN, NORM, PRODUCT, RELU, SUM

_functions = torch.nn.functional
_ordinary = (Tensor, torch.nn.Parameter)

JOINS = (torch.cat, torch.concat, torch.concatenate)
PRODUCTS = (_functions.linear,)

# The function of PyTorch, and what it does to a layer's output.
KINDS: dict[Any, str] = {
    **dict.fromkeys(JOINS, JOIN),
    **dict.fromkeys(PRODUCTS, PRODUCT),
    _functions.batch_norm: NORM,
    _functions.relu: RELU,
    _functions.relu_: RELU,
    torch.relu: RELU,
    torch.relu_: RELU,
    Tensor.relu: RELU,
    Tensor.relu_: RELU,
    torch.add: SUM,
    Tensor.add: SUM,
    Tensor.__add__: SUM,
    Tensor.__radd__: SUM,
    Tensor.add_: SUM,
    Tensor.__iadd__: SUM,
}
IN_PLACE = {_functions.relu_, torch.relu_, Tensor.relu_, Tensor.add_, Tensor.__iadd__}

# Functions that need no numbers of a result.
LOOKS = {
    Tensor.dim, Tensor.size, Tensor.numel, Tensor.get_device, Tensor.is_floating_point, Tensor.__len__,
    Tensor.stride, Tensor.is_contiguous, torch.is_floating_point, torch.numel,
    *(getattr(Tensor, name).__get__ for name in (
        "shape", "dtype", "device", "ndim", "is_cuda", "is_cpu", "layout", "requires_grad", "is_sparse",
        "is_nested", "is_quantized", "is_meta", "itemsize",
    )),
}  # fmt: skip


def changes_in_place(function: Callable[..., Any], kwargs: dict[str, Any]) -> bool:
    """Whether a function changes its argument: its name says so (relu_, __iadd__, …), or its argument `inplace`."""
    name = getattr(function, "__name__", "")
    if kwargs.get("inplace") or name.startswith("__i") or name == "__setitem__":
        return True
    return name[-1:] == "_" and name[-2:] != "__"


def norm_given(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Norm | None:
    """The arguments of torch.nn.functional.batch_norm as a link takes them; None where no chain has such a norm."""
    for tensor in (running_mean, running_var, weight, bias):
        if type(tensor) not in _ordinary:
            return None
    # PyTorch's norm has counted the batch.
    return running_mean, running_var, weight, bias, training, momentum, eps, None  # type: ignore[return-value]
