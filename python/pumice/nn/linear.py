"""A dense layer over the channels of every row."""

from __future__ import annotations

import torch

from ..tensor import SparseTensor


class Linear(torch.nn.Linear):
    """torch.nn.Linear of the features."""

    def forward(self, x: SparseTensor) -> SparseTensor:
        return SparseTensor._of(
            x.coords, torch.nn.functional.linear(x.features, self.weight, self.bias)
        )
