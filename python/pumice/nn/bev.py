"""From sparse tensors to the maps that detectors' heads take."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import ops
from ..tensor import SparseTensor


class ToBEV(torch.nn.Module):
    """A bird's-eye view: the height becomes channels.

    On coordinates in x, y, z, with axis = -1: [batch_size, C · Z, X, Y], channel-major, which is
    what `x.dense().permute(0, 1, 4, 2, 3).flatten(1, 2)` gives; 0 where no site is. On z, y, x, as
    OpenPCDet and CenterPoint have them, axis = 0 gives their [batch_size, C · Z, Y, X].

    The grid is the tensor's spatial shape, unless `shape` (and `low`, its first cell) say another;
    `crop` leaves out sites outside of it, which are refused otherwise.
    """

    def __init__(
        self,
        axis: int = -1,
        shape: Sequence[int] | None = None,
        low: Sequence[int] | None = None,
        crop: bool = False,
    ) -> None:
        super().__init__()
        self.axis = axis
        self.shape = shape
        self.low = low
        self.crop = crop

    def forward(self, x: SparseTensor) -> Tensor:
        return ops.to_bev(
            x.features, x.coords, self.axis, shape=self.shape, low=self.low, crop=self.crop
        )

    def extra_repr(self) -> str:
        return f"axis={self.axis}"
