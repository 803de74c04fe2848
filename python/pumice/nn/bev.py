"""Defines `ToBEV`, which turns a sparse tensor into the dense bird's-eye view that detection heads take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .. import ops
from .._checks import whole_number
from .._sites import axis_numbers
from .._where import explained, not_sparse
from ..tensor import SparseTensor


class ToBEV(torch.nn.Module):
    """A bird's-eye view: the height becomes channels.

    On coordinates in x, y, z, with axis = -1: [batch_size, C · Z, X, Y], channel-major, which is
    what `x.dense().permute(0, 1, 4, 2, 3).flatten(1, 2)` gives; 0 where no site is. On z, y, x, as
    OpenPCDet and CenterPoint have them, axis = 0 gives their [batch_size, C · Z, Y, X].

    Args:
        axis: the one that becomes channels.
        shape: cells an axis; default: the tensor's spatial shape. One of them is needed, since the
            channels of the result would depend on the scan.
        low: the first cell of the grid; default: 0.
        crop: leave out sites outside of the grid, which are refused otherwise.
    Returns:
        Of a call with a sparse tensor [N, C], a tensor [batch_size, C · shape[axis], the other axes].
    Raises:
        UserError: without a grid, and for sites outside of it.
    Waits:
        Never.
    Example:
        >>> coords = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]])
        >>> x = pumice.SparseTensor(coords, torch.ones(2, 4), spatial_shape=[8, 8, 5])
        >>> nn.ToBEV()(x).shape
        torch.Size([1, 20, 8, 8])
    """

    def __init__(
        self,
        axis: int = -1,
        shape: Sequence[int] | None = None,
        low: Sequence[int] | None = None,
        crop: bool = False,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        for name, numbers in (("shape", shape), ("low", low)):
            if numbers is not None:
                axis_numbers(name, numbers, len(numbers) if hasattr(numbers, "__len__") else 3)
        whole_number("axis", axis, -4, 3)
        self.axis = axis
        self.shape = shape
        self.low = low
        self.crop = crop

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> Tensor: ...

    def forward(self, x: SparseTensor) -> Tensor:
        """[N, C] to [batch_size, C · shape[axis], the other axes]."""
        try:
            return ops.to_bev(
                x.features, x.coords, self.axis, shape=self.shape, low=self.low, crop=self.crop
            )
        except (AttributeError, ValueError) as error:
            if not isinstance(x, SparseTensor):
                raise not_sparse(self, x) from None
            raise explained(error) from None

    def extra_repr(self) -> str:
        return f"axis={self.axis}"
