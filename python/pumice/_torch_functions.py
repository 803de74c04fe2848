"""Decides what functions and methods of PyTorch do with a sparse tensor: elementwise ones work on the features,
all others raise an error that says what to call instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from . import _C
from ._fields import Fields
from ._where import place_of, torch_module

# By name, since a function has several: torch.relu, torch.nn.functional.relu, torch.Tensor.relu.
ELEMENTWISE = frozenset(
    (
        "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil celu clamp "
        "clamp_max clamp_min clip cos cosh deg2rad digamma dropout elu erf erfc erfinv exp exp2 expm1 fix floor frac "
        "gelu hardshrink hardsigmoid hardswish hardtanh i0 leaky_relu lgamma log log10 log1p log2 logit log_sigmoid mish "
        "nan_to_num neg negative positive pow prelu rad2deg reciprocal relu relu6 round rrelu rsqrt selu sgn sigmoid sign "
        "silu sin sinc sinh softplus softshrink softsign sqrt square tan tanh tanhshrink threshold trunc"
    ).split()
)
ARITHMETIC = frozenset("add sub mul div multiply subtract divide true_divide".split())
_SHORT = {"multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div"}

_REMEDIES = {
    "cat": "pumice.cat puts channels side by side, pumice.collate makes a batch",
    "concat": "pumice.cat puts channels side by side, pumice.collate makes a batch",
    "stack": "pumice.collate makes a batch of them",
    "linear": "pumice.nn.Linear takes it, and so does pumice.nn.Sequential, which gives a torch.nn.Linear the features",
    "batch_norm": "pumice.nn.BatchNorm takes it",
    "layer_norm": "pumice.nn.LayerNorm takes it",
    "cross_entropy": "give the loss x.features, [N, classes]",
    "mse_loss": "give the loss x.features, [N, C]",
    "max_pool3d": "pumice.nn.MaxPool takes it",
    "avg_pool3d": "pumice.nn.AvgPool takes it",
    "conv3d": "pumice.nn.Conv3d and pumice.nn.SubMConv3d take it",
}
_OTHERWISE = "give it x.features [N, C]; x.replace(features=…) puts a result of N rows back on the sites"


def call(kind: type[Fields], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The implementation of `SparseTensor.__torch_function__`."""
    name = getattr(function, "__name__", str(function)).strip("_")
    if args and isinstance(args[0], kind):
        x = args[0]
        if name in ELEMENTWISE:
            return kind._of(x.coords, _of_each(name, x.features, function(x.features, *args[1:], **kwargs)))
        if name in ARITHMETIC and len(args) == 2 and not kwargs:
            return _arithmetic(name, x, args[1])
    elif name in ("mul", "multiply", "rmul") and len(args) == 2 and isinstance(args[1], kind):
        return args[1] * args[0]
    module = torch_module(sys._getframe(2))
    if module is not None:
        raise _C.UserError(given_to(module))
    raise _C.UserError(
        f"torch's {name} takes tensors, and got a SparseTensor: {_REMEDIES.get(name, _OTHERWISE)}"
    )


# Methods and properties of tensors that users try first, and that modules of torch.nn read.
MISSING = tuple(
    (
        "argmax argmin backward clone contiguous dim expand flatten grad item log_softmax matmul max mean min "
        "ndim norm numel permute repeat reshape size softmax squeeze sum t tolist transpose unsqueeze view"
    ).split()
)


# Names of other libraries, and the names here.
RENAMED = {
    "feats": "features",
    "coordinates": "indices",
    "replace_feature": "replace(features=…)",
}


class Renamed:
    """An attribute under another library's name. Reading it raises an error that says what it is called here."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__doc__ = f"Not there: it is x.{RENAMED[name]}."

    def __get__(self, x: Any, kind: Any = None) -> Any:
        if x is None:
            return self
        raise AttributeError(
            f"a SparseTensor has no {self.name!r}: it is x.{RENAMED[self.name]}; pumice.compat has the interfaces of "
            "other libraries"
        )


class Missing:
    """An attribute of tensors that a sparse tensor lacks. Reading it raises an error that says what to use instead."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__doc__ = f"Not there: it is x.features.{name} of the features [N, C]."

    def __get__(self, x: Any, kind: Any = None) -> Any:
        if x is None:
            return self
        module = torch_module(sys._getframe(1))
        if module is not None:
            raise AttributeError(given_to(module))
        name = self.name
        raise AttributeError(
            f"a SparseTensor has no {name!r}: x.features.{name} is that of its features [N, C], x.indices.{name} "
            "of its sites; x.replace(features=…) puts features back on the sites"
        )


def given_to(module: torch.nn.Module) -> str:
    """What to say where a module of torch.nn, which takes tensors, was given a sparse tensor."""
    name = type(module).__name__
    own = {"BatchNorm1d": "BatchNorm", "BatchNorm3d": "BatchNorm", "SyncBatchNorm": "SyncBatchNorm",
           "Conv3d": "Conv3d, or SubMConv3d", "MaxPool3d": "MaxPool", "AvgPool3d": "AvgPool"}.get(name)  # fmt: skip
    if own is None and name in ("Linear", "LayerNorm", "Dropout"):
        own = name
    return (
        f"{place_of(module, sys._getframe(1))} takes a tensor, and got a SparseTensor: build the network with "
        "pumice.nn.Sequential, which gives modules of torch.nn the features, in place of torch.nn.Sequential"
        + ("" if own is None else f"; or use pumice.nn.{own}")
    )


def _of_each(name: str, features: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """`result`. Raises UserError where another argument made it larger than the features."""
    if not torch.compiler.is_compiling() and result.shape != features.shape:
        raise _C.UserError(
            f"torch's {name} makes {list(result.shape)} of features {list(features.shape)}: give numbers, or tensors that "
            "broadcast to the features"
        )
    return result


def _arithmetic(name: str, x: Any, other: Any) -> Any:
    short = _SHORT.get(name, name)
    return {"add": x.__add__, "sub": x.__sub__, "mul": x.__mul__, "div": x.__truediv__}[short](other)
