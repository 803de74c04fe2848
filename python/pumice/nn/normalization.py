"""Norms over rows, channels, and the rows of each batch item."""

from __future__ import annotations

import torch

from .. import ops
from ..tensor import SparseTensor


class BatchNorm(torch.nn.BatchNorm1d):
    """torch.nn.BatchNorm1d of the features. A batch without rows stays as it is."""

    def forward(self, x: SparseTensor) -> SparseTensor:
        if x.features.shape[0] == 0:
            return x
        return SparseTensor._of(x.coords, super().forward(x.features))


class SyncBatchNorm(torch.nn.SyncBatchNorm):
    """torch.nn.SyncBatchNorm of the features: statistics over all processes."""

    def forward(self, x: SparseTensor) -> SparseTensor:
        return SparseTensor._of(x.coords, super().forward(x.features))


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm over the channels of each row."""

    def forward(self, x: SparseTensor) -> SparseTensor:
        return SparseTensor._of(x.coords, super().forward(x.features))


class InstanceNorm(torch.nn.Module):
    """Normalises every channel over the rows of each batch item (biased variance)."""

    def __init__(self, channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(channels)) if affine else None
        self.bias = torch.nn.Parameter(torch.zeros(channels)) if affine else None

    def forward(self, x: SparseTensor) -> SparseTensor:
        # In float32 at least: a sum of many halves is none.
        features = x.features.float() if x.features.dtype.itemsize < 4 else x.features
        mean = ops.global_pool(features, x.coords, "average")
        item = x.indices[:, 0].long()
        centred = features - mean[item]
        variance = ops.global_pool(centred * centred, x.coords, "average")
        result = centred * torch.rsqrt(variance + self.eps)[item]
        if self.weight is not None:
            result = result * self.weight + self.bias
        return SparseTensor._of(x.coords, result.to(x.features.dtype))
