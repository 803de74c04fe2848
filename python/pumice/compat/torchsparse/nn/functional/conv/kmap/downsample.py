"""Coarser coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ..... import conventions
from .....axis_numbers import make_ntuple
from .....tensor import SparseTensor
from .. import maps
from ..conv_mode import checked_downsample_mode


@conventions.by_release(
    ("coords", "stride", "kernel_size", "tensor_stride"), renamed={"coords": "_coords"}
)
def spdownsample(
    _coords: Tensor,
    stride: Any = 2,
    kernel_size: Any = 2,
    padding: Any = 0,
    spatial_range: Sequence[int] | None = None,
    downsample_mode: str = "spconv",
    tensor_stride: Any = 1,
    on_the_fly: bool = False,
) -> Tensor:
    """The coordinates that a strided convolution makes of these, sorted by batch index, x, y, z.

    Args:
        spatial_range: (batch size, X, Y, Z) that the results are in; without it, and without the border of
            `use_border`, they have no bounds.
        downsample_mode: "minkowski" makes one of each occupied coarse cell for every size.
        tensor_stride: of the coordinates; before 2.1.
        on_the_fly: as layers do it, where every size has a border.

    Before 2.1 the border of `use_border` leaves out what is below the lowest coordinate.
    """
    checked_downsample_mode(downsample_mode)
    size, steps, pads = (make_ntuple(value, 3) for value in (kernel_size, stride, padding))
    distinct = _coords.unique(dim=0)
    x = SparseTensor(distinct.new_empty((len(distinct), 0)).float(), distinct, tensor_stride)
    cells = downsample_mode == "minkowski" or all(s in (1, k) for k, s in zip(size, steps))
    floor = conventions.batch_first and cells and not on_the_fly
    _, coarse = maps.strided(x, size, steps, pads, floor, spatial_range)
    made = SparseTensor._at(coarse, x.feats[:0], x._caches, False).coords
    if conventions.batch_first:
        return made.unique(dim=0)
    return made[:, [3, 0, 1, 2]].unique(dim=0)[:, [1, 2, 3, 0]]
