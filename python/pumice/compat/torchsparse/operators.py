"""Joining tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ... import _C, ops
from ..._checks import at_least_one, full_kind_of
from ...nn import deferred
from ..mistakes import PeerTypeError
from .tensor import SparseTensor, same_rows


def cat(inputs: Sequence[SparseTensor]) -> SparseTensor:
    """Channels side by side, on the same sites."""
    at_least_one("cat: inputs", inputs, "SparseTensor")
    first = inputs[0]
    _check("cat", *inputs)
    for other in inputs[1:]:
        if not same_rows(other.coords, first.coords):
            raise _C.UserError("cat: the tensors are on different sites")
    later = deferred.joined([x._held for x in inputs])
    return first._with(torch.cat([x.feats for x in inputs], dim=1) if later is None else later)


def generative_add(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The sum on the sites of either: in their rows where both have the same in the same rows, else sorted by
    columns."""
    _check("generative_add", a, b)
    if a.stride != b.stride:
        raise _C.UserError(f"generative_add: the strides are {a.stride} and {b.stride}: give equal ones")
    if a._on_sites_of(b):
        return a + b
    coords, row_of = torch.cat([a.coords, b.coords]).unique(dim=0, return_inverse=True)
    feats = ops.reduce_rows(torch.cat([a.feats, b.feats]), row_of, len(coords), "sum")
    return SparseTensor(feats, coords, a.stride, a.spatial_range)


def _check(what: str, *inputs: object) -> None:
    """Raises PeerTypeError for what is no sparse tensor of this interface."""
    for x in inputs:
        if not isinstance(x, SparseTensor):
            raise PeerTypeError(
                f"{what} takes SparseTensors, and got {full_kind_of(x)}: make one with "
                "torchsparse.SparseTensor(feats, coords)"
            )
