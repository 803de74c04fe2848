"""Sparse tensors as PyTorch has them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..foreign import PeerAssertionError
from .order import floor_divide


def torch_sparse(
    x: Any, low: Any = None, high: Any = None, contract: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """A sparse tensor as (torch.sparse tensor [B, ..., C], int32 [1, D] its lowest coordinate, int32 [D] the
    tensor stride). `low` and `high` (both belong to the box) are in cells of the finest level; with `contract`
    the places and the lowest coordinate are in cells of the stride."""
    cells = x.C[:, 1:]
    stride = torch.tensor(x.tensor_stride, dtype=torch.int32)
    steps = stride.to(cells.device)
    if low is None:
        low = cells.amin(0, keepdim=True) if len(cells) else cells.new_zeros((1, x.D))
    low = torch.as_tensor(low, dtype=torch.int32, device=cells.device).reshape(1, -1)
    last = low if high is None else torch.as_tensor(high, dtype=torch.int32, device=cells.device).reshape(1, -1)
    if low.shape[1] != x.D or last.shape[1] != x.D or bool(((low % steps != 0) | (last % steps != 0)).any()):
        raise PeerAssertionError(
            f"sparse: min_coords = {low.tolist()} and max_coords = {last.tolist()} at stride {x.tensor_stride}: "
            f"give {x.D} numbers each, multiples of the stride"
        )
    if bool(((cells < low) | ((cells > last) & (high is not None))).any()):
        raise PeerAssertionError(
            f"sparse: sites lie outside of min_coords = {low.tolist()} and max_coords = "
            f"{None if high is None else last.tolist()}: give a box that holds them"
        )
    places, extents = cells - low, last - low + 1
    if contract:
        places, low = floor_divide(places, x.tensor_stride), floor_divide(low, x.tensor_stride)
        extents = floor_divide(last, x.tensor_stride) - low + 1
    if high is None and len(places):
        extents = places.amax(0, keepdim=True) + 1
    size = (x.sites.batch_size, *extents[0].tolist(), x.F.shape[1])
    indices = torch.cat([x.C[:, :1], places], 1).T.long()
    return torch.sparse_coo_tensor(indices, x.F, size, check_invariants=False), low, stride
