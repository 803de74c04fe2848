"""Pooling layers, of any dimension. Only active inputs count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import torch
from torch import Tensor

from .. import _C, ops
from ..tensor import SparseTensor
from ..window import Window
from .convolution import make_window

Numbers = Union[int, Sequence[int]]


def _windows(arguments: tuple[Numbers, ...]) -> dict[int, Window]:
    """Of every dimension that `arguments` are for: made here, since a graph cannot make them."""
    lengths = {len(value) for value in arguments if not isinstance(value, int)}
    dimensions = lengths or {1, 2, 3, 4}
    return {dimension: make_window(dimension, *arguments) for dimension in sorted(dimensions)}


class _Pool(torch.nn.Module):
    _kind: str

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        outputs: str = "dilating",
    ) -> None:
        """`stride`: by default the kernel's size."""
        super().__init__()
        if outputs not in ("dilating", "cell"):
            raise _C.UserError(f"outputs = {outputs!r}: there are 'dilating' and 'cell'")
        stride = kernel_size if stride is None else stride
        self.arguments = (kernel_size, stride, padding, dilation)
        self.outputs = outputs
        self._windows = _windows(self.arguments)  # by dimension

    def forward(self, x: SparseTensor) -> SparseTensor:
        window = self._windows.get(x.dimension)
        if window is None:
            raise _C.UserError(
                f"{type(self).__name__} was given numbers for {', '.join(map(str, self._windows))} "
                f"axes, and sites of {x.dimension}: give one number, or one for each axis"
            )
        found, coords = ops.strided_map(x.coords, window, self.outputs == "cell")
        return SparseTensor._of(coords, ops.pool(x.features, found, self._kind))

    def extra_repr(self) -> str:
        return "kernel_size={}, stride={}, padding={}, dilation={}".format(*self.arguments)


class MaxPool(_Pool):
    """The largest active input."""

    _kind = "max"


class AvgPool(_Pool):
    """The mean of the active inputs."""

    _kind = "average"


class SumPool(_Pool):
    """The sum of the active inputs."""

    _kind = "sum"


class GlobalPool(torch.nn.Module):
    """One row for each batch item, as a plain tensor [batch_size, C]. `kind`: "max", "average" or
    "sum"."""

    def __init__(self, kind: str = "average") -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: SparseTensor) -> Tensor:
        return ops.global_pool(x.features, x.coords, self.kind)


class ToDense(torch.nn.Module):
    """[batch_size, C, shape…]"""

    def forward(self, x: SparseTensor) -> Tensor:
        return x.dense()
