"""Bringing two branches together, as modules."""

from __future__ import annotations

import torch

from ..tensor import SparseTensor, cat


class Cat(torch.nn.Module):
    """Channels side by side, on the same sites."""

    def forward(self, *tensors: SparseTensor) -> SparseTensor:
        return cat(tensors)


class Add(torch.nn.Module):
    """The sum, on the same sites."""

    def forward(self, *tensors: SparseTensor) -> SparseTensor:
        total = tensors[0]
        for other in tensors[1:]:
            total = total + other
        return total
