"""Checks arguments that are numbers, ranges or NumPy arrays, and says in an error what to give instead. Needs
NumPy only; _tensors.py checks tensors of PyTorch."""

from __future__ import annotations

import inspect
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


def shown(value: Any) -> str:
    """"= 'x'" of numbers and texts, "is a Tensor" of others, whose text may be long."""
    if value is None or isinstance(value, (int, float, str)):
        return f"= {value!r}"
    return f"is {kind_of(value)}"


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


def takes(function: Any, count: int) -> bool:
    """Whether a function can be called with so many arguments, as far as it tells."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except ValueError:  # it says nothing of its arguments
        return True
    except TypeError:
        return False
    return True


def check_path(name: str, path: Any) -> None:
    """Raises UserError, naming the argument, unless `path` may be the name of a file."""
    if not isinstance(path, (str, os.PathLike)):
        raise _C.UserError(f"{name} is {kind_of(path)}: give the name of a file")


def check_file(path: Any) -> None:
    """Raises UserError unless there is a file at `path`: a folder is none, and opening a pipe would wait for its other
    end."""
    if not os.path.exists(path):
        raise _C.UserError(f"{path}: there is no such file")
    if os.path.isdir(path):
        raise _C.UserError(f"{path}: is a folder; give the name of a file in it")
    if not os.path.isfile(path):
        raise _C.UserError(f"{path}: is not a regular file")


def at_least_one(what: str, given: Sized, of: str) -> None:
    """Raises UserError where `given` is empty, or is no list. `what` names the function and its argument."""
    is_list = hasattr(given, "__len__") and hasattr(given, "__getitem__") and getattr(given, "ndim", 1) > 0
    if not is_list or hasattr(given, "features") or hasattr(given, "feats"):
        raise _C.UserError(f"{what} is {kind_of(given)}: give a list, as [x]")
    if len(given) == 0:
        raise _C.UserError(f"{what} is empty: give at least one {of}")


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` as an int. Raises UserError, naming it, unless it is a whole number in these bounds."""
    try:
        number = operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # of tensors, ValueError and RuntimeError too
        number = None
    if number is None or number < least or (most is not None and number > most):
        given = shown(value if number is None else number)
        raise _C.UserError(f"{name} {given}: give a whole number{_bounds(number, least, most)}")
    return number


# The ends of the types that hold numbers, which nobody has to know whose number is no number, or is negative.
_ENDS = {2**31 - 1: "2^31", 2**63 - 1: "2^63", 2**64 - 1: "2^64"}


def _bounds(number: int | None, least: int, most: int | None) -> str:
    """" from 1 to 5", " of at least 0" or " below 2^31": what a number has to be, after a number that is not."""
    if most not in _ENDS and most is not None:
        return f" from {least} to {most}"
    if number is not None and most is not None and number > most:
        return f" below {_ENDS[most]}"
    if least < -(2**30):
        return "" if number is None else " that is nearer to 0"
    return f" of at least {least}"


def true_or_false(name: str, value: Any) -> None:
    """Raises UserError, naming it, unless `value` is True or False, of Python or of NumPy."""
    if value is not True and value is not False and not isinstance(value, np.bool_):
        raise _C.UserError(f"{name} {shown(value)}: give True or False")


def number_from(name: str, value: float, least: float, most: float) -> float:
    """`value`. Raises UserError, naming it, unless it is a number in these bounds, and for NaN."""
    if not _is_number(value) or not least <= value <= most:
        raise _C.UserError(f"{name} = {value!r}: give a number from {least:g} to {most:g}")
    return value


def check_eps(eps: Any) -> None:
    """Raises UserError unless `eps` is a number that a norm may add to a variance."""
    if not _is_number(eps) or not 0 <= eps < float("inf"):
        raise _C.UserError(f"eps {shown(eps)}: give a small number that is not negative, as 1e-5")


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


def box(name: str, values: Any) -> list[float] | None:
    """The six numbers of a box in metres, or None. Raises UserError for anything else."""
    if values is None:
        return None
    bounds = floats(name, values, "give metres, x0, y0, z0, x1, y1, z1")
    if len(bounds) != 6:
        raise _C.UserError(f"{name} has {len(bounds)} numbers: give x0, y0, z0, x1, y1, z1")
    return bounds


def ascending(names: str, low: float, high: float, least: float = float("-inf")) -> tuple[float, float]:
    """(low, high), the ends of a range. Raises UserError, naming them, unless they are in ascending order."""
    if not (_is_number(low) and _is_number(high)):
        raise _C.UserError(f"{names} = {low!r}, {high!r}: give two numbers, the lower one first")
    if not least <= low <= high < float("inf"):
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
