"""Joining tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ... import _C, ops
from ..._checks import at_least_one
from ...tensor import SparseTensor as Sparse
from .tensor import SparseTensor, TensorCache


def cat(inputs: Sequence[SparseTensor]) -> SparseTensor:
    """Channels side by side, on the same sites."""
    at_least_one("cat: inputs", inputs, "SparseTensor")
    first = inputs[0]
    for other in inputs[1:]:
        if other.coords is not first.coords and not torch.equal(other.coords, first.coords):
            raise _C.UserError("cat: the tensors are on different sites")
    return first._with(torch.cat([x.feats for x in inputs], dim=1))


def generative_add(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The sum on the sites of either."""
    if a.sites.is_same(b.sites):
        return a + b
    total = ops.union_add(Sparse._of(a.sites, a.feats), Sparse._of(b.sites, b.feats))
    return SparseTensor._at(total.coords, total.features, TensorCache(), a.spatial_range is not None)
