"""Where hashes are among others, and maps from their other side."""

from __future__ import annotations

import torch
from torch import Tensor

from ...query import sphashquery


def convert_transposed_out_in_map(out_in_map: Tensor, size: int) -> Tensor:
    """int32 [size, K]: the output row of each input row and offset, of a map int [M, K] of the input row
    of each output row and offset; -1: none."""
    rows = torch.arange(len(out_in_map), dtype=torch.int32, device=out_in_map.device)
    turned = torch.full(
        (size + 1, out_in_map.shape[1]), -1, dtype=torch.int32, device=out_in_map.device
    )
    turned.scatter_(0, out_in_map.long() + 1, rows[:, None].expand_as(out_in_map))
    return turned[1:]  # row 0 took what leads nowhere


__all__ = ["convert_transposed_out_in_map", "sphashquery"]
