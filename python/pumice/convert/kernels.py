"""Finds the convolution weights in a state dict, and the size of each kernel."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from .. import _C
from .._checks import shown, whole_number
from .layouts import LAYOUTS, Layout
from .wording import listed, passed

_LARGEST_EXTENT = 15  # an axis beyond that is taken for channels


@dataclass
class Choices:
    """What a checkpoint file does not say. Patterns are as in a shell: `backbone.*.kernel`.

    Args:
        dimension: number of axes.
        kernel_size: by pattern, where the shape does not tell.
        strided: patterns of 1x1 kernels of layers whose stride is not 1.
        keep: patterns of what is carried over as it is.
        drop: patterns of what is left out.
        rename: pairs of a regular expression and its replacement.
        reverse_axes: whether coordinates come in the opposite order.
    Example:
        >>> choices = convert.Choices(drop=["head.*"])
        >>> choices.dimension
        3
    """

    dimension: int = 3
    kernel_size: Mapping[str, Sequence[int]] = field(default_factory=dict)
    strided: Sequence[str] = ()  # 1x1 kernels of layers whose stride is not 1
    keep: Sequence[str] = ()  # carried over as they are
    drop: Sequence[str] = ()
    rename: Sequence[tuple[str, str]] = ()  # regular expression, replacement
    reverse_axes: bool = False

    def check(self, names: Iterable[str]) -> None:
        """Raises UserError for a pattern that says nothing about this file, and for one that is none."""
        names = list(names)
        _check_sizes(self.kernel_size)
        for pattern, replacement in self.rename:
            try:
                re.sub(pattern, replacement, "")
            except re.error as error:
                raise _C.UserError(
                    f"{passed('rename', (pattern, replacement))}: this is not a regular expression and its replacement "
                    f"({error}); put a \\ before a character that stands for itself, as in \\["
                ) from error
        for name in ("kernel_size", "strided", "keep", "drop"):
            for pattern in getattr(self, name):
                if not any(_fits(entry, pattern) for entry in names):
                    near = [entry for entry in names if entry.endswith(("kernel", "weight"))][:3]
                    given = (pattern, self.kernel_size[pattern]) if name == "kernel_size" else pattern
                    raise _C.UserError(
                        f"{passed(name, given)}: there is no such entry; there are {', '.join(near)}, ..."
                    )


def _check_sizes(kernel_size: Any) -> None:
    """Raises UserError unless these are lists of sizes by pattern."""
    if not isinstance(kernel_size, Mapping):
        raise _C.UserError(f"Choices.kernel_size {shown(kernel_size)}: give sizes by name, as {{'conv': [1, 3, 3]}}")
    for pattern, size in kernel_size.items():
        if isinstance(size, (str, bytes)) or not hasattr(size, "__len__"):
            raise _C.UserError(
                f"Choices.kernel_size[{pattern!r}] {shown(size)}: give a list, as [3], or [1, 3, 3] for each axis"
            )
        for number in size:
            whole_number(f"Choices.kernel_size[{pattern!r}]", number, 1)


def chosen(name: str, patterns: Iterable[str]) -> str | None:
    """The first of `patterns` that fits the name of a parameter."""
    return next((pattern for pattern in patterns if _fits(name, pattern)), None)


def _fits(name: str, pattern: str) -> bool:
    """Whether a pattern fits the name of a parameter, or that of its layer."""
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.rpartition(".")[0], pattern)


def is_kernel(layout: Layout, name: str, tensor: Tensor, dimension: int) -> bool:
    """Whether a parameter of that name and shape is the weight of a sparse convolution."""
    if name.rpartition(".")[2] != layout.parameter or not tensor.is_floating_point():
        return False
    if not layout.flat:
        return tensor.dim() == dimension + 2
    matrix = layout.pointwise == "matrix" and tensor.dim() == 2
    return matrix or tensor.dim() == 3 or (layout.name == "warpconvnet" and tensor.dim() == 4)


def kernel_size(layout: Layout, name: str, tensor: Tensor, choices: Choices) -> tuple[int, ...]:
    """Raises UserError, saying what to pass, where shape and choices do not settle it."""
    dimension, shape = choices.dimension, tuple(tensor.shape)
    pattern = chosen(name, choices.kernel_size)
    given = None if pattern is None else _given(name, choices.kernel_size[pattern], dimension)
    if layout.flat:
        size = _flat_size(layout, name, shape, dimension, given)
    else:
        size = tuple(shape[1:-1] if layout.axes == "oki" else shape[:-2])
        _check_axes(layout, name, shape, size, given)
    if given is not None and given != size:
        raise _C.UserError(
            f"{passed('kernel_size', (name, given))}: its shape {shape} has the kernel {listed(size)}"
        )
    return size


def _flat_size(
    layout: Layout, name: str, shape: tuple[int, ...], dimension: int, given: tuple[int, ...] | None
) -> tuple[int, ...]:
    if len(shape) == 2:
        root = round(shape[0] ** (1 / dimension))
        if layout.name == "minkowski" and root**dimension == shape[0] and root % 2 == 1 and root > 1:
            if given is None:
                raise _C.UserError(
                    f"{name} has shape {shape}: either a 1x1 kernel of {shape[0]} input channels or a "
                    f"channelwise one of {shape[0]} offsets. Pass {passed('kernel_size', (name, [1]))} for the "
                    f"first; the second has no equal elsewhere: {_as_it_is_or_not(name)}"
                )
        return (1,) * dimension
    volume = shape[0]
    if given is not None:
        if math.prod(given) != volume:
            raise _C.UserError(
                f"{passed('kernel_size', (name, given))} has {math.prod(given)} offsets, and its shape "
                f"{shape} {volume}"
            )
        return given
    root = round(volume ** (1 / dimension))
    if root**dimension != volume:
        cross = f"; a HYPER_CROSS has no equal elsewhere: {_as_it_is_or_not(name)}"
        raise _C.UserError(
            f"{name} has {volume} offsets, which is no cube: pass its size on every axis, as "
            + passed("kernel_size", (name, _example(volume, dimension)))
            + (cross if layout.name == "minkowski" else "")
        )
    return (root,) * dimension


def _check_axes(
    layout: Layout, name: str, shape: tuple[int, ...], size: tuple[int, ...], given: tuple[int, ...] | None
) -> None:
    """Refuses what another version of spconv wrote more likely, unless the size is given."""
    if given is not None:
        return
    other = LAYOUTS["spconv1" if layout.name == "spconv" else "spconv"]
    theirs = tuple(shape[1:-1] if other.axes == "oki" else shape[:-2])
    if len(set(shape)) == 1 and shape[0] > 1:
        raise _C.UserError(
            f"{name} has shape {shape}, which spconv 1 and spconv 2 could both have written: pass "
            f"{passed('kernel_size', (name, [shape[0]]))} to say that {layout.name} did"
        )
    likelier = len(set(theirs)) == 1 and len(set(size)) > 1 and max(theirs) <= max(size)
    if likelier or max(size) > _LARGEST_EXTENT:
        raise _C.UserError(
            f"{name} has shape {shape}: as {layout.name} its kernel would be {listed(size)}, as "
            f"{other.name} {listed(theirs)}. Pass {passed('source', other.name)}; or "
            f"{passed('kernel_size', (name, size))} if that is right; or {passed('keep', name)} if it is no sparse "
            "convolution"
        )


def _given(name: str, size: Sequence[int], dimension: int) -> tuple[int, ...]:
    numbers = tuple(size) * dimension if len(size) == 1 else tuple(size)
    if len(numbers) != dimension or min(numbers) < 1:
        raise _C.UserError(
            f"{passed('kernel_size', (name, size))}: give one number, or one for each of {dimension} axes"
        )
    return numbers


def _as_it_is_or_not(name: str) -> str:
    return f"{passed('keep', name)} carries it over as it is, {passed('drop', name)} leaves it out"


def _example(volume: int, dimension: int) -> list[int]:
    """Factors of the volume, largest last."""
    factors, rest = [], volume
    for divisor in range(2, volume + 1):
        while rest % divisor == 0:
            factors.append(divisor)
            rest //= divisor
    while len(factors) > dimension:
        factors = sorted([factors[0] * factors[1], *factors[2:]])
    return [1] * (dimension - len(factors)) + factors
