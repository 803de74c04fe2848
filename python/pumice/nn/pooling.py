"""Defines pooling layers, for any number of axes. Only active inputs count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .. import _C, ops
from .._where import explained, not_sparse
from ..tensor import SparseTensor
from ..window import Numbers, Window
from .convolution import make_window


def _windows(arguments: tuple[Numbers, ...]) -> dict[int, Window]:
    """The window for each dimension that `arguments` fit. The layer makes them ahead, since a graph cannot."""
    lengths = {len(value) for value in arguments if hasattr(value, "__len__") and not isinstance(value, str)}
    dimensions = lengths or {1, 2, 3, 4}
    if any(value is None or isinstance(value, str) for value in arguments):
        dimensions = {3}  # whose sentence says what to give
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
        """The arguments are those of the class."""
        super().__init__()
        if outputs not in ("dilating", "cell"):
            raise _C.UserError(f"outputs = {outputs!r}: there are 'dilating' and 'cell'")
        stride = kernel_size if stride is None else stride
        self.arguments = (kernel_size, stride, padding, dilation)
        self.outputs = outputs
        self._windows = _windows(self.arguments)  # by dimension

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, C] to [M, C], on new sites."""
        try:
            window = self._windows.get(x.dimension)
            if window is None:
                raise _C.UserError(
                    f"{type(self).__name__} was given numbers for {', '.join(map(str, self._windows))} "
                    f"axes, and sites of {x.dimension}: give one number, or one for each axis"
                )
            found, coords = ops.strided_map(x.coords, window, self.outputs == "cell")
            return SparseTensor._of(coords, ops.pool(x.features, found, self._kind))
        except (AttributeError, ValueError) as error:
            if not isinstance(x, SparseTensor):
                raise not_sparse(self, x) from None
            raise explained(error) from None

    def extra_repr(self) -> str:
        return "kernel_size={}, stride={}, padding={}, dilation={}".format(*self.arguments)


class MaxPool(_Pool):
    """The largest active input of each window, on the sites that a convolution of it makes; for any number of axes.

    Args:
        kernel_size: cells an axis, one number or one for each.
        stride: cells from one output to the next; default: kernel_size.
        padding: cells around the grid, at least 0.
        dilation: distance of the cells that are looked at.
        outputs: "dilating", every site that an input reaches, or "cell", every occupied coarse cell.
    Returns:
        Of a call with a sparse tensor [N, C], one [M, C] on the new sites.
    Raises:
        UserError: numbers for other axes than those of the sites.
    Waits:
        For a GPU, for how many sites there are; once, as later calls on the same sites know them. Where a network ran
        before, its first layer waits for all.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 2, 2, 2], [0, 2, 2, 3]]), torch.ones(2, 1))
        >>> nn.MaxPool(2)(x).features
        tensor([[1.]])
    """

    _kind = "max"


class AvgPool(_Pool):
    """The mean of the active inputs of each window, on the sites that a convolution of it makes; for any number of axes.

    Args:
        kernel_size: cells an axis, one number or one for each.
        stride: cells from one output to the next; default: kernel_size.
        padding: cells around the grid, at least 0.
        dilation: distance of the cells that are looked at.
        outputs: "dilating", every site that an input reaches, or "cell", every occupied coarse cell.
    Returns:
        Of a call with a sparse tensor [N, C], one [M, C] on the new sites.
    Raises:
        UserError: numbers for other axes than those of the sites.
    Waits:
        For a GPU, for how many sites there are; once, as later calls on the same sites know them. Where a network ran
        before, its first layer waits for all.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 2, 2, 2], [0, 2, 2, 3]]), torch.ones(2, 1))
        >>> nn.AvgPool(2)(x).features
        tensor([[1.]])
    """

    _kind = "average"


class SumPool(_Pool):
    """The sum of the active inputs of each window, on the sites that a convolution of it makes; for any number of axes.

    Args:
        kernel_size: cells an axis, one number or one for each.
        stride: cells from one output to the next; default: kernel_size.
        padding: cells around the grid, at least 0.
        dilation: distance of the cells that are looked at.
        outputs: "dilating", every site that an input reaches, or "cell", every occupied coarse cell.
    Returns:
        Of a call with a sparse tensor [N, C], one [M, C] on the new sites.
    Raises:
        UserError: numbers for other axes than those of the sites.
    Waits:
        For a GPU, for how many sites there are; once, as later calls on the same sites know them. Where a network ran
        before, its first layer waits for all.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 2, 2, 2], [0, 2, 2, 3]]), torch.ones(2, 1))
        >>> nn.SumPool(2)(x).features
        tensor([[2.]])
    """

    _kind = "sum"


class GlobalPool(torch.nn.Module):
    """One row for each batch item, as a plain tensor.

    Args:
        kind: "max", "average" or "sum".
    Returns:
        Of a call with a sparse tensor [N, C], a tensor [batch_size, C]; 0 for an item without rows.
    Raises:
        UserError: for another kind.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.GlobalPool("sum")(x)
        tensor([[2., 2., 2., 2.]])
    """

    def __init__(self, kind: str = "average") -> None:
        """The arguments are those of the class."""
        super().__init__()
        if kind not in ("max", "average", "sum"):
            raise _C.UserError(f"kind = {kind!r}: there are 'max', 'average' and 'sum'")
        self.kind = kind

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> Tensor: ...

    def forward(self, x: SparseTensor) -> Tensor:
        """[N, C] to [batch_size, C]."""
        if not isinstance(x, SparseTensor):
            raise not_sparse(self, x)
        return ops.global_pool(x.features, x.coords, self.kind)

    def extra_repr(self) -> str:
        return repr(self.kind)


class ToDense(torch.nn.Module):
    """A dense grid of all sites, 0 where none is.

    Args:
        shape: cells an axis; default: the tensor's spatial shape, else the box around the sites, which
            differs from scan to scan (a warning says so once).
        low: the first cell of the grid; default: 0.
        crop: leave out sites outside of the grid, which are refused otherwise.
    Returns:
        Of a call with a sparse tensor [N, C], a tensor [batch_size, C, shape…].
    Raises:
        UserError: for sites outside of the grid.
    Waits:
        On a GPU where no grid is known.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3]]), torch.ones(1, 2))
        >>> nn.ToDense(shape=[4, 4, 4])(x).shape
        torch.Size([1, 2, 4, 4, 4])
    """

    def __init__(
        self,
        shape: Sequence[int] | None = None,
        low: Sequence[int] | None = None,
        crop: bool = False,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.shape = shape
        self.low = low
        self.crop = crop

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> Tensor: ...

    def forward(self, x: SparseTensor) -> Tensor:
        """[N, C] to [batch_size, C, shape…]."""
        if not isinstance(x, SparseTensor):
            raise not_sparse(self, x)
        return x.dense(self.shape, self.low, self.crop)
