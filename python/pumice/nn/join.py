"""Bringing two branches together, as modules."""

from __future__ import annotations

import torch

from .._checks import at_least_one
from ..joining import cat
from ..tensor import SparseTensor, check_sparse


class Cat(torch.nn.Module):
    """Channels side by side, on the same sites: [N, C1], [N, C2], … to [N, C1 + C2 + …]."""

    def forward(self, *tensors: SparseTensor) -> SparseTensor:
        return cat(tensors)


class Add(torch.nn.Module):
    """The sum, on the same sites, of tensors [N, C]."""

    def forward(self, *tensors: SparseTensor) -> SparseTensor:
        at_least_one("Add: tensors", tensors, "SparseTensor")
        check_sparse("Add", tensors[0])
        total = tensors[0]
        for other in tensors[1:]:
            total = total + other
        return total
