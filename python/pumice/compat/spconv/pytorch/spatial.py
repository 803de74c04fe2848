"""Modules that change sites without looking at features."""

from __future__ import annotations

import torch

from .core import SparseConvTensor
from .windowed import SparseModule


class RemoveDuplicate(SparseModule):
    """The first row of each site that occurs more than once, in order of the sites."""

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        self._check_sparse(x)
        _, row_of = torch.unique(x.indices, dim=0, return_inverse=True)
        rows = torch.arange(len(row_of), device=row_of.device)
        count = int(row_of.max()) + 1 if len(row_of) else 0
        first = rows.new_full((count,), len(row_of)).scatter_reduce(0, row_of, rows, "amin")
        return x._select(first)
