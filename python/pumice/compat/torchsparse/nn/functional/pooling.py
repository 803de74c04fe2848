"""Pooling over batch items."""

from __future__ import annotations

from torch import Tensor

from ..... import ops
from ...tensor import SparseTensor


def global_avg_pool(inputs: SparseTensor) -> Tensor:
    """[batch size, C]"""
    return ops.global_pool(inputs.feats, inputs.sites, "average")


def global_max_pool(inputs: SparseTensor) -> Tensor:
    """[batch size, C]"""
    return ops.global_pool(inputs.feats, inputs.sites, "max")
