"""Activations on features."""

from __future__ import annotations

import torch.nn.functional as F

from ...tensor import SparseTensor


def relu(input: SparseTensor, inplace: bool = True) -> SparseTensor:
    return input._with(F.relu(input.feats, inplace=inplace))


def silu(input: SparseTensor, inplace: bool = True) -> SparseTensor:
    return input._with(F.silu(input.feats, inplace=inplace))


def leaky_relu(
    input: SparseTensor, negative_slope: float = 0.1, inplace: bool = True
) -> SparseTensor:
    return input._with(F.leaky_relu(input.feats, negative_slope, inplace=inplace))
