"""Joins several sparse tensors: their channels side by side, or their batch items one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from . import _C
from ._checks import at_least_one
from .tensor import SparseTensor, check_sparse, features_on


def cat(tensors: Sequence[SparseTensor]) -> SparseTensor:
    """Channels side by side.

    Args:
        tensors: [N, C1], [N, C2], … on the same sites.
    Returns:
        A sparse tensor [N, C1 + C2 + …] on these sites.
    Raises:
        UserError: for an empty list, and unless all are on the same sites.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3]]), torch.ones(1, 4))
        >>> pumice.cat([x, x * 2]).features
        tensor([[1., 1., 1., 1., 2., 2., 2., 2.]])
    """
    at_least_one("cat: tensors", tensors, "SparseTensor")
    first = tensors[0]
    check_sparse("cat", first)
    features = [features_on(first.coords, x, "cat") for x in tensors]
    return SparseTensor._of(first.coords, torch.cat(features, dim=1))


def collate(tensors: Sequence[SparseTensor]) -> SparseTensor:
    """A batch of tensors of one batch item each: item i becomes batch index i. A DataLoader's own collate
    does the same with sparse tensors, alone or inside tuples and dicts.

    Args:
        tensors: of one batch item each.
    Returns:
        A sparse tensor of batch_size len(tensors).
    Raises:
        UserError: for an empty list, for a tensor of several batch items, and unless all have as many axes
            and channels, and the same stride.
    Waits:
        For a GPU where the tensors are on one and have no spatial shape.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3]]), torch.ones(1, 4))
        >>> pumice.collate([x, x]).indices
        tensor([[0, 1, 2, 3],
                [1, 1, 2, 3]], dtype=torch.int32)
    """
    at_least_one("collate: tensors", tensors, "SparseTensor")
    first = tensors[0]
    for item, x in enumerate(tensors):
        check_sparse("collate", x)
        _check_item(first, x, item)
        if not torch.compiler.is_compiling():
            _ = x.coords.sites  # raises where the indices were written into
    # An operator, since a graph knows the value of a batch_size only when it runs.
    renumber = torch.ops.pumice.item_indices
    return SparseTensor(
        torch.cat([renumber(x.indices, x.batch_size, item) for item, x in enumerate(tensors)]),
        torch.cat([x.features for x in tensors]),
        spatial_shape=first.spatial_shape,
        batch_size=len(tensors),
        stride=first.stride,
    )


def _collate_by_default(batch: Sequence[SparseTensor], **_: Any) -> SparseTensor:
    return collate(batch)


default_collate_fn_map[SparseTensor] = _collate_by_default


def _check_item(first: SparseTensor, x: SparseTensor, item: int) -> None:
    for name, mine, other in (
        ("dimension", x.dimension, first.dimension),
        ("channels", x.features.shape[1], first.features.shape[1]),
        ("stride", x.stride, first.stride),
    ):
        if mine != other:
            raise _C.UserError(
                f"collate: {name} of tensors[{item}] is {mine}, and of tensors[0] {other}: "
                "give tensors that agree"
            )
