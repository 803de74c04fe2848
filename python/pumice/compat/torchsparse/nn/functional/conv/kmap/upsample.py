"""Finer coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ......foreign import PeerAssertionError
from .....axis_numbers import make_ntuple
from ....utils.kernel import get_kernel_offsets


def spupsample_generative(
    _coords: Tensor,
    stride: Any = 2,
    kernel_size: Any = 2,
    padding: Any = 0,
    spatial_range: Sequence[int] | None = None,
) -> Tensor:
    """Every coordinate of (batch, x, y, z) that an offset reaches from `_coords` times the stride, sorted;
    one outside of `spatial_range` (batch size, X, Y, Z) is moved to its edge. `padding` has no effect."""
    if spatial_range is None:
        raise PeerAssertionError("spatial_range = None: give (batch size, X, Y, Z)")
    steps, extents = make_ntuple(stride, 3), make_ntuple(spatial_range, 4)
    offsets = get_kernel_offsets(kernel_size, device=_coords.device)
    cells = _coords[:, None, 1:] * _coords.new_tensor(steps) + offsets.to(_coords.dtype)
    cells = torch.minimum(cells.clamp_min(0), _coords.new_tensor(extents[1:]) - 1)
    items = _coords[:, None, :1].expand(-1, len(offsets), 1)
    return torch.cat([items, cells], 2).reshape(-1, 4).unique(dim=0)
