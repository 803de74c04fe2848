"""Defines `Window`: size, stride, padding and dilation of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from . import _C

Numbers = Union[int, Sequence[int]]  # one for all axes, or one for each


class Window:
    """in = out * stride - padding + offset * dilation, on every axis.

    Offsets are in lexicographic order, the last axis fastest: the order of a weight's first axis.
    """

    __slots__ = ("c", "numbers", "volume")

    def __init__(
        self,
        size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        cross: bool = False,
        output_padding: Sequence[int] = (),
    ) -> None:
        # The window as plain numbers, which operators in graphs take: dimension, cross, then size, stride, padding
        # and dilation of every axis, and output_padding where there is some.
        self.numbers = [len(size), int(cross), *size, *stride, *padding, *dilation]
        more = list(output_padding) if any(output_padding) else []
        self.numbers += more
        self.c = _C.Window(
            list(size), list(stride), list(padding), list(dilation), cross, more or [0] * len(size)
        )
        self.volume: int = self.c.volume  # how many offsets it has

    @classmethod
    def centred(cls, size: Sequence[int], dilation: Sequence[int]) -> Window:
        """A window of stride 1 around its output; an axis of even size begins at its output."""
        padding = [(k - 1) // 2 * d if k % 2 == 1 else 0 for k, d in zip(size, dilation)]
        return cls(size, [1] * len(size), padding, dilation)

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Window:
        """The window with these `numbers`."""
        size, stride, padding, dilation = _parts(numbers)
        return cls(size, stride, padding, dilation, bool(numbers[1]), numbers[2 + 4 * numbers[0] :])

    @property
    def parts(self) -> list[list[int]]:
        """Size, stride, padding and dilation, each with a number for each axis."""
        return _parts(self.numbers)

    @property
    def stride(self) -> list[int]:
        return self.parts[1]

    def strided_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The grid that a strided convolution over one of `shape` makes."""
        return tuple(
            (extent - 1 + 2 * padding - dilation * (size - 1)) // stride + 1
            for extent, (size, stride, padding, dilation) in zip(shape, self._axes())
        )

    def transposed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The grid that a generative transposed convolution over one of `shape` makes."""
        axes = self.numbers[0]
        more = self.numbers[2 + 4 * axes :] or [0] * axes
        return tuple(
            (extent - 1) * stride + 1 - 2 * padding + dilation * (size - 1) + behind
            for extent, (size, stride, padding, dilation), behind in zip(shape, self._axes(), more)
        )

    def _axes(self) -> list[tuple[int, ...]]:
        """(size, stride, padding, dilation) of each axis."""
        return list(zip(*self.parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Window) and self.numbers == other.numbers

    def __hash__(self) -> int:
        return hash(tuple(self.numbers))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.numbers,)

    def __repr__(self) -> str:
        return repr(self.c)


def _parts(numbers: Sequence[int]) -> list[Any]:
    axes = numbers[0]
    return [numbers[2 + i * axes : 2 + (i + 1) * axes] for i in range(4)]


def _rebuild(numbers: Sequence[int]) -> Window:
    return Window.of(numbers)


def per_axis(value: Numbers, dimension: int, name: str) -> list[int]:
    """A list of one number for each axis. Raises UserError, in the name of the argument, for other counts."""
    if isinstance(value, int):
        return [value] * dimension
    try:
        given = list(value) if hasattr(value, "__iter__") else [value] * dimension
        numbers = [int(number) for number in given]
    except (TypeError, ValueError):
        given, numbers = [], []
    if isinstance(value, (str, bytes)) or not given:
        raise _C.UserError(f"{name} = {value!r}: give a whole number, or one for each of {dimension} axes")
    if len(numbers) != dimension:
        raise _C.UserError(
            f"{name} = {tuple(numbers)}: give one number, or one for each of {dimension} axes"
        )
    if any(number != of for number, of in zip(numbers, given)):
        raise _C.UserError(f"{name} = {value!r}: give whole numbers")
    return numbers
