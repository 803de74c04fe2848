"""Finds the layer in a network that raised an error, and names it in the error. Nothing is recorded before an
error is raised."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

from . import _C
from ._checks import kind_of, sparse_from

# Names of the variables that hold a layer, and its input, in functions that run one.
_NAMES = ("self", "layer", "module", "norm")
# How errors begin of a sum of what two layers made.
_SUMS = ("Residual: ", "+: ")
_INPUTS = ("x", "features", "input")
# Where sparse tensors have their features: other interfaces' too, which may not have computed them yet.
_FEATURES = ("_held", "features")
# What layers call the channels they take, of rows and of [items, channels, rows].
_TAKES_ITEMS = ("num_features", "num_channels")
# Layers of torch.nn that take dense grids, and what takes a sparse tensor.
_GRIDS = re.compile(r"(?:Lazy|Fractional)?(Adaptive(?:Max|Avg)Pool|[A-Z][A-Za-z]*?)(?:1d|2d|3d)$|(Upsample)")
_FOR_GRIDS = {
    "BatchNorm": "take torch.nn.BatchNorm1d",
    "Conv": "take pumice.nn.Conv3d or SubMConv3d, in a network for spconv SparseConv3d or SubMConv3d",
    "MaxPool": "take pumice.nn.MaxPool, in a network for spconv SparseMaxPool3d",
    "AvgPool": "take pumice.nn.AvgPool, in a network for spconv SparseAvgPool3d",
    "ConvTranspose": "take pumice.nn.ConvTranspose3d, in a network for spconv SparseConvTranspose3d",
}
_FOR_OTHERS = "give it x.dense()"
_TAKES = ("in_channels", "in_channel", "in_features", *_TAKES_ITEMS)


def explained(error: Exception) -> Exception:
    """The error to raise in place of `error`, which passed through a layer. It has the path of the innermost layer
    in the outermost network that is running ("stem.0"), and says what that layer takes where it was given something
    else. Call it in an except clause; an error that has its path already is returned as it is."""
    if getattr(error, "_pumice_place", None) is not None or _repeats_one(error) or torch.compiler.is_compiling():
        return error
    text = str(error)
    in_sum = isinstance(error, _C.UserError) and text.startswith(_SUMS)  # of what layers made, and not in one
    found = _failed(error, ("self",) if in_sum else _NAMES)
    if found is None:
        return error
    frame, layer, given = found
    place = place_of(layer, frame)
    if _begins_with(text, place):  # an interface, or a tensor of theirs, says itself where
        error._pumice_place = place  # type: ignore[attr-defined]
        return error
    if isinstance(error, _C.UserError):
        text = text.removeprefix(f"{type(layer).__name__}: ")
    else:
        text = ""
    if not in_sum and not isinstance(error, AssertionError):  # with which an interface says itself what it checks
        text = _dimensions(layer, given) or _channels(layer, given) or _dense(layer, given) or text
    if not text:  # an error of PyTorch's stays what it is
        if hasattr(error, "add_note"):  # Python 3.11
            error.add_note(f"in {place}")
        error._pumice_place = place  # type: ignore[attr-defined]
        return error
    if not isinstance(error, _C.UserError):
        error = _C.UserError(text)
    error.args = (f"{place}: {text}",)
    error._pumice_place = place  # type: ignore[attr-defined]
    return error


def _repeats_one(error: Exception) -> bool:
    """Whether it was raised because of an error that has its path, and says all that that one says: a user's module
    words errors anew."""
    before = error.__cause__ or error.__context__
    return getattr(before, "_pumice_place", None) is not None and str(before) in str(error)


def _begins_with(text: str, place: str) -> bool:
    """Whether an error names that place already. The class alone, before a colon, is no place: operators say it."""
    return text.startswith(f"{place} ") or (place.endswith(")") and text.startswith(f"{place}:"))


def not_sparse(layer: torch.nn.Module, x: Any) -> Exception:
    """The error to raise where a layer got something else than a sparse tensor."""
    kind = kind_of(x)
    error = _C.UserError(
        f"{place_of(layer, sys._getframe(1))} takes a sparse tensor, and got {kind}: {sparse_from(x)}"
        + (", or apply the layer of torch.nn" if kind == "a Tensor" and _is_rowwise(layer) else "")
    )
    error._pumice_place = ""  # type: ignore[attr-defined]
    return error


def place_of(layer: torch.nn.Module, frame: FrameType | None) -> str:
    """"stem.0 (SubMConv3d)": path and class of `layer`, in the outermost module among the callers of
    `frame` that has it; the class alone where it was called by itself."""
    kind = type(layer).__name__
    if type(layer).__module__.startswith("torch.nn."):
        kind = f"torch.nn.{kind}"
    for module in reversed(list(_modules(frame))):
        for name, inside in module.named_modules():
            if inside is layer:
                return f"{name} ({kind})" if name else kind
    return kind


def torch_module(frame: FrameType | None, depth: int = 4) -> torch.nn.Module | None:
    """The module of torch.nn that runs in one of the `depth` innermost frames."""
    for _ in range(depth):
        if frame is None:
            return None
        module = frame.f_locals.get("self")
        if isinstance(module, torch.nn.Module) and type(module).__module__.startswith("torch.nn."):
            return module
        frame = frame.f_back
    return None


def _modules(frame: FrameType | None) -> Iterator[torch.nn.Module]:
    """Modules that run, innermost first."""
    while frame is not None:
        module = frame.f_locals.get("self")
        if isinstance(module, torch.nn.Module):
            yield module
        frame = frame.f_back


def _failed(error: Exception, names: tuple[str, ...]) -> tuple[FrameType, torch.nn.Module, Any] | None:
    """The innermost frame that `error` went through and that ran a layer, the layer, and what it was given."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        for name in names:
            layer = trace.tb_frame.f_locals.get(name)
            if isinstance(layer, torch.nn.Module):
                given = _given(trace.tb_frame)
                if given is None and found is not None and found[1] is layer:
                    given = found[2]  # of the function that this one is a part of
                found = trace.tb_frame, layer, given
                break
        trace = trace.tb_next
    return found


def _given(frame: FrameType) -> Any:
    for name in _INPUTS:
        value = frame.f_locals.get(name)
        if value is not None:
            return value
    return None


def _dimensions(layer: torch.nn.Module, x: Any) -> str:
    """What to say where the sites have other axes than the layer's kernel; empty where they do not."""
    wanted, given = getattr(layer, "dimension", None), getattr(x, "dimension", None)
    if not isinstance(wanted, int) or not isinstance(given, int) or wanted == given:
        return ""
    said = (
        f"the sites have {given} axes, since their indices are [N, {1 + given}] with the batch index first, "
        f"and the kernel has {wanted}"
    )
    if given == wanted - 1:
        return said + (
            ": where these columns are the axes themselves, the batch column is missing, and "
            "torch.nn.functional.pad(coords, (1, 0)) puts one of zeros in front"
        )
    return said + f": give indices of {1 + wanted} columns, or take the layer of {given} axes"


def _channels(layer: torch.nn.Module, x: Any) -> str:
    """What to say where the features have other channels than the layer takes; empty where they do not."""
    rows = next((held for held in (getattr(x, name, None) for name in _FEATURES) if held is not None), x)
    shape = getattr(rows, "shape", None)
    if shape is None or len(shape) < 2:
        return ""
    for name in _TAKES if len(shape) == 2 else _TAKES_ITEMS:
        wanted = getattr(layer, name, None)
        if isinstance(wanted, int) and wanted != shape[1]:
            return f"features have {shape[1]} channels, the layer takes {wanted}"
    return ""


def _dense(layer: torch.nn.Module, x: Any) -> str:
    """What to say where a layer of torch.nn that takes a grid was given rows of features; empty for other layers."""
    kind = type(layer).__name__
    rows = getattr(x, "features", x)
    takes = _GRIDS.match(kind)
    if takes is None or not type(layer).__module__.startswith("torch.nn.") or getattr(rows, "ndim", 0) != 2:
        return ""
    if kind in ("BatchNorm1d", "LazyBatchNorm1d"):  # which take rows: it is something else
        return ""
    return f"it takes a dense grid, and got the rows of a sparse tensor: {_FOR_GRIDS.get(takes[1], _FOR_OTHERS)}"


def _is_rowwise(layer: torch.nn.Module) -> bool:
    return hasattr(torch.nn, type(layer).__name__)
