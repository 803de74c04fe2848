"""Pooling over batch items as modules."""

from __future__ import annotations

import torch

from .. import functional as F
from ...tensor import SparseTensor, explaining_layer


class GlobalAvgPool(torch.nn.Module):
    @explaining_layer
    def forward(self, input: SparseTensor) -> torch.Tensor:
        return F.global_avg_pool(input)


class GlobalMaxPool(torch.nn.Module):
    @explaining_layer
    def forward(self, input: SparseTensor) -> torch.Tensor:
        return F.global_max_pool(input)
