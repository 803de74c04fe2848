"""Norms. Group and instance norm are over the rows of each batch item, as their names say."""

from __future__ import annotations

import torch

from .....nn import deferred
from ... import conventions
from ...tensor import SparseTensor, explaining_layer


class BatchNorm(torch.nn.BatchNorm1d):
    """A batch without rows stays as it is."""

    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        later = deferred.normalized(input._held, self)
        if later is not None:
            return input._with(later)
        return input if len(input) == 0 else input._with(super().forward(input.feats))


class SyncBatchNorm(torch.nn.SyncBatchNorm):
    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        return input._with(super().forward(input.feats))


def _by_item(input: SparseTensor, norm: object) -> SparseTensor:
    """Applies `norm` to [1, C, rows] of each batch item."""
    items = input.coords[:, conventions.batch()]
    result = input.feats
    for item in torch.unique(items).tolist():
        rows = (items == item).nonzero()[:, 0]
        normed = norm(input.feats[rows].T[None])[0].T
        result = result.index_copy(0, rows, normed.to(result.dtype))
    return input._with(result)


class GroupNorm(torch.nn.GroupNorm):
    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        return _by_item(input, super().forward)


class InstanceNorm(torch.nn.InstanceNorm1d):
    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        return _by_item(input, super().forward)
