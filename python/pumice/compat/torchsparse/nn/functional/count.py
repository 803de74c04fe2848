"""How many points a voxel has."""

from __future__ import annotations

import torch
from torch import Tensor

from ..... import _C


def spcount(coords: Tensor, num: int | Tensor) -> Tensor:
    """int32 [num]: how often each row occurs in `coords` [N]; negative ones count for nothing."""
    rows = coords[coords >= 0].long()
    if len(rows) > 0 and int(rows.max()) >= int(num):
        raise _C.UserError(f"spcount: coords hold row {int(rows.max())}: rows are 0 to {int(num) - 1}")
    return torch.bincount(rows, minlength=int(num)).int()
