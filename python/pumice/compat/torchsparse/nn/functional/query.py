"""Where hashes are among others."""

from __future__ import annotations

import torch
from torch import Tensor


def sphashquery(queries: Tensor, references: Tensor) -> Tensor:
    """int64, shaped as `queries`: where in `references` each is, first; -1: nowhere."""
    if len(references) == 0:
        return torch.full_like(queries, -1, dtype=torch.int64)
    ordered, order = torch.sort(references, stable=True)
    place = torch.searchsorted(ordered, queries.contiguous()).clamp_max(len(ordered) - 1)
    return torch.where(ordered[place] == queries, order[place], -1)
