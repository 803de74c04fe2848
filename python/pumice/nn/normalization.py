"""Norms over rows, channels, and the rows of each batch item."""

from __future__ import annotations

import torch

from .. import ops
from ..tensor import SparseTensor


class BatchNorm(torch.nn.BatchNorm1d):
    """torch.nn.BatchNorm1d of the features. A batch without rows stays as it is.

    forward(x, residual, relu) is relu(norm(x) + residual) in one pass; `residual` are features.
    """

    def forward(
        self, x: SparseTensor, residual: torch.Tensor | None = None, relu: bool = False
    ) -> SparseTensor:
        return SparseTensor._of(x.coords, batch_norm(self, x.features, residual, relu))


def batch_norm(
    norm: torch.nn.BatchNorm1d,
    features: torch.Tensor,
    residual: torch.Tensor | None = None,
    relu: bool = False,
) -> torch.Tensor:
    """relu(norm(features) + residual), running statistics as torch.nn.BatchNorm1d keeps them."""
    buffers, parameters = norm._buffers, norm._parameters
    training = norm.training
    momentum = norm.momentum
    if training and norm.track_running_stats and features.size(0) > 0:
        count = buffers["num_batches_tracked"]
        if count is not None:
            count.add_(1)
            if momentum is None:  # a mean of all batches
                momentum = 1.0 / float(count)
    mean, variance = buffers["running_mean"], buffers["running_var"]
    of_batch = training or mean is None or variance is None
    if training and not norm.track_running_stats:
        mean = variance = None
    return ops.batch_norm(
        features,
        parameters["weight"],
        parameters["bias"],
        mean,
        variance,
        of_batch,
        0.0 if momentum is None else momentum,
        norm.eps,
        residual,
        relu,
    )


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
