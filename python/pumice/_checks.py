"""Checks arguments that are numbers, ranges or NumPy arrays, and says in an error what to give instead. Needs
NumPy only; _tensors.py checks tensors of PyTorch."""

from __future__ import annotations

import operator
import os
import sys
import warnings
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np

from . import _C

def real_array(name: str, values: Any) -> np.ndarray:
    """`values` as an array of NumPy. Raises UserError, naming them, where they are no real numbers."""
    if isinstance(values, np.ma.MaskedArray):
        raise _C.UserError(
            f"{name} are a masked array, whose mask would be lost: give values[~mask], or .filled()"
        )
    try:
        if hasattr(values, "resolve_neg"):  # of PyTorch, which NumPy sees the memory of
            values = values.detach().cpu().resolve_conj().resolve_neg()
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise _C.UserError(f"{name} are no array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise _C.UserError(f"{name} are {array.dtype}: give real numbers, as float32")
    return array


def kind_of(value: Any) -> str:
    """"a list", "an int": what `value` is, for an error. Other interfaces have classes of the same names, so theirs
    are named in full."""
    if value is None:
        return "None"
    kind = type(value).__name__
    if type(value).__module__.startswith("pumice.compat."):
        return full_kind_of(value)
    return f"an {kind}" if kind[0] in "aeioAEIO" or kind == "ndarray" else f"a {kind}"


def full_kind_of(value: Any) -> str:
    """"a pumice.SparseTensor": `kind_of`, for errors of interfaces that have a class of the same name."""
    package, *inner = type(value).__module__.split(".")
    if package != "pumice":
        return kind_of(value)
    interface = f"compat.{inner[1]}." if inner[:1] == ["compat"] and len(inner) > 1 else ""
    return f"a pumice.{interface}{type(value).__name__}"


# How to get a sparse tensor from what a user has in its place, by the class's name here.
_SPARSE_OF = {
    "TensorVoxels": "give voxels.tensor",
    "Sample": "give batch.tensor()",
    "Voxels": "pumice.voxelize(torch.from_numpy(points), size=…).tensor is one",
    "PointCloud": "pumice.voxelize(torch.from_numpy(scan.positions), torch.from_numpy(scan.features()), size=…).tensor "
    "is one",
}


def sparse_from(value: Any, otherwise: str = "make one with pumice.SparseTensor(coords, features)") -> str:
    """What to give where a sparse tensor is taken, and not `value`."""
    if not type(value).__module__.startswith("pumice."):
        return otherwise
    return _SPARSE_OF.get(type(value).__name__, otherwise)


def at_least_one(what: str, given: Sized, of: str) -> None:
    """Raises UserError where `given` is empty, or is no list. `what` names the function and its argument."""
    if not hasattr(given, "__len__") or hasattr(given, "features") or hasattr(given, "feats"):
        raise _C.UserError(f"{what} is {kind_of(given)}: give a list, as [x]")
    if len(given) == 0:
        raise _C.UserError(f"{what} is empty: give at least one {of}")


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` as an int. Raises UserError, naming it, unless it is a whole number in these bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise _C.UserError(f"{name} = {value!r}: give a whole number {bounds}")
    return number


def number_from(name: str, value: float, least: float, most: float) -> float:
    """`value`. Raises UserError, naming it, unless it is a number in these bounds, and for NaN."""
    if not _is_number(value) or not least <= value <= most:
        raise _C.UserError(f"{name} = {value!r}: give a number from {least:g} to {most:g}")
    return value


def floats(name: str, values: Any, remedy: str) -> list[float]:
    """`values`, several numbers. Raises UserError, which ends with `remedy`, for text and what else is none."""
    try:
        given = list(values)
        if not any(isinstance(value, str) for value in given):  # of a text, its letters
            return [float(value) for value in given]
    except (TypeError, ValueError):
        pass
    raise _C.UserError(f"{name} = {values!r}: {remedy}")


def cell_size(name: str, size: Any) -> list[float]:
    """Metres along x, y and z, of one number or of three."""
    # NumPy is asked last: in a graph it is not there to be asked.
    one = isinstance(size, (int, float)) or (not isinstance(size, (list, tuple, str)) and np.ndim(size) == 0)
    remedy = "give metres, one number or one each for x, y and z"
    if size is None or isinstance(size, str):
        raise _C.UserError(f"{name} = {size!r}: {remedy}")
    sizes = floats(name, [size] * 3 if one else size, remedy)
    if len(sizes) != 3:
        raise _C.UserError(f"{name} has {len(sizes)} numbers: give one, or one each for x, y and z")
    return sizes


def ascending(names: str, low: float, high: float, least: float = float("-inf")) -> tuple[float, float]:
    """(low, high), the ends of a range. Raises UserError, naming them, unless they are in ascending order."""
    if not (_is_number(low) and _is_number(high)) or not least <= low <= high < float("inf"):
        above = "" if least == float("-inf") else f", of at least {least:g}"
        raise _C.UserError(f"{names} = {low!r}, {high!r}: give the lower one first{above}")
    return low, high


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)


_warned: set[str] = set()


def warn_once(key: str, text: str) -> None:
    """A UserWarning at the line outside of this package that led here, once a process for each `key`."""
    if key in _warned:
        return
    _warned.add(key)
    here = os.path.dirname(__file__)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _passed(frame.f_code.co_filename, here):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def warn_of_columns(shape: Sequence[int]) -> None:
    """Warns once where points seem to be the columns: few rows, and more columns than features that points have."""
    if shape[0] < 16 and shape[1] > 256:
        warn_once(
            "transposed points",
            f"points have shape {tuple(shape)}: rows are points, and columns x, y, z and features; give points.T "
            "where they are the other way round",
        )


def warn_of_no_voxels(points: int, voxels: int, range: Any) -> None:
    """Warns once where there are points, and none of them is inside `range`, or the spatial shape."""
    if voxels > 0 or points == 0:
        return
    where, remedy = "range", "give another one, x0, y0, z0, x1, y1, z1 in metres"
    if range is None:
        where, remedy = "spatial_shape", "cell 0 begins at 0 m, or at the low corner of range: give that too"
    of = "1 point" if points == 1 else f"{points} points"
    warn_once("no voxels", f"none of {of} is inside {where}, so there are no voxels: {remedy}")


def _passed(file: str, here: str) -> bool:
    """Whether a frame of `file` belongs to this package or to PyTorch's modules, and not to a user."""
    return file.startswith(here) or os.path.join("torch", "nn", "modules") in file
