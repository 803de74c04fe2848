"""Checks tensors of class numbers, which losses and metrics take."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _C, _checks, _tensors
from ._checks import whole_number
from .ops import modes

_SHOWN = 3  # values that a sentence names


def check_tensor(name: str, value: Any) -> None:
    """Raises UserError, naming it, unless `value` is a tensor of PyTorch."""
    if isinstance(value, Tensor):
        _tensors.check_tensor(name, value)
        return
    kind = _checks.kind_of(value)
    if hasattr(value, "features"):
        raise _C.UserError(f"{name} is {kind}: give the tensor of its rows, {name}.features")
    raise _C.UserError(f"{name} is {kind}: give a tensor, as torch.as_tensor({name}) is")


def check_classes(name: str, value: Any) -> None:
    """Raises UserError, naming it, unless `value` is a tensor of whole numbers."""
    check_tensor(name, value)
    if value.dtype not in _tensors.INTEGERS:
        raise _C.UserError(f"{name} is {value.dtype}: give the class of each row, as int64")


def check_same_device(first: str, left: Tensor, second: str, right: Tensor) -> None:
    """Raises UserError where the arguments named `first` and `second` are on different devices."""
    if left.device != right.device:
        raise _C.UserError(
            f"{first} is on {left.device} and {second} on {right.device}: bring them together with .to()"
        )


def counted_rows(
    name: str, truth: Tensor, classes: int, ignore_index: int, waits: bool = True
) -> Tensor:
    """bool, shaped as `truth`, which is int64: False for rows that are `ignore_index`.

    Raises UserError where another row is outside 0 … classes - 1. On a GPU it waits for that where it `waits`, except
    in torch.compile and while a graph is captured; else a kernel asserts it.
    """
    counted = truth != whole_number("ignore_index", ignore_index, -(2**63))
    wrong = counted & ((truth < 0) | (truth >= classes))
    where = f"outside the classes 0 to {classes - 1}"
    remedy = (
        "bring labels to classes with a label map, as pumice.data.SEMANTIC_KITTI is, and rows without "
        f"a class to ignore_index, which is {ignore_index}"
    )
    asserts = truth.is_cuda and not waits
    if asserts or torch.compiler.is_compiling() or modes.is_recorded(truth):
        torch._assert_async(~wrong.any(), f"{name} holds values {where}: {remedy}")
    elif not truth.is_meta and wrong.any():
        values = torch.unique(truth[wrong]).tolist()
        shown = ", ".join(map(str, values[:_SHOWN]))
        if len(values) > _SHOWN:
            shown += f" and {len(values) - _SHOWN} more values"
        rows = f"{int(wrong.sum())} of {wrong.numel()} rows"
        raise _C.UserError(f"{name} holds {shown} {where}, in {rows}: {remedy}")
    return counted
