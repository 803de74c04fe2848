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
        self._windows: dict[int, Window] = {}

    def forward(self, x: SparseTensor) -> SparseTensor:
        dimension = x.dimension
        if dimension not in self._windows:
            self._windows[dimension] = make_window(dimension, *self.arguments)
        map, coords = ops.strided_map(x.coords, self._windows[dimension], self.outputs == "cell")
        return SparseTensor._of(coords, ops.pool(x.features, map, self._kind))

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
