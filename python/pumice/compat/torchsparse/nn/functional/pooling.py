"""Pooling over batch items."""

from __future__ import annotations

from torch import Tensor

from ..... import ops
from ...tensor import SparseTensor


def global_avg_pool(input: SparseTensor) -> Tensor:
    """[batch size, C]"""
    return ops.global_pool(input.feats, input.sites, "average")


def global_max_pool(input: SparseTensor) -> Tensor:
    """[batch size, C]"""
    return ops.global_pool(input.feats, input.sites, "max")
