"""Rows of what a model returns, and of what its modules return, past those that are in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ..coords import Coordinates
from ..nn import deferred
from .outputs import INPUT, WHOLE, SitesOfRun
from .scans import kind_for

Count = Any  # Coordinates, or int64 [1] on the device


def rows_of(value: Any, sites: SitesOfRun) -> Count | None:
    """What counts the rows of a tensor or sparse tensor in a run by a plan; None: all are in use."""
    kind = kind_for(value)
    if kind is not None:
        rows = sites.rows_of(kind.parts(value)[0])
    elif isinstance(value, Tensor):
        rows = sites.rows_like(value)
    else:
        return None
    if rows is WHOLE or rows is None:
        return None
    if rows is INPUT:
        return sites.coords if sites.point_rows is None else sites.point_count
    return rows.count


def with_tails(value: Any, sites: SitesOfRun, change: Callable[[Tensor, Count], Tensor]) -> Any:
    """The same tuples, lists and dictionaries of tensors and sparse tensors, with change(features, count) in place of
    those that have room for more rows than are in use."""

    def changed(leaf: Any) -> Any:
        count = rows_of(leaf, sites)
        if count is None:
            return leaf
        kind = kind_for(leaf)
        if kind is None:
            return change(deferred.plain(leaf), count)
        return kind.replaced(leaf, change(deferred.plain(kind.parts(leaf)[1]), count))

    return tree_map(changed, value)


def without_numbers(rows: int) -> Callable[[Tensor, Count], Tensor]:
    """A change of floating features to NaN past their count, which is `rows` on the sites of the input. What comes back
    there as a gradient goes no further."""

    def change(features: Tensor, count: Count) -> Tensor:
        if not features.is_floating_point():
            return features
        used = rows if isinstance(count, Coordinates) else count
        in_use = torch.arange(features.shape[0], device=features.device) < used
        in_use = in_use.reshape(-1, *[1] * (features.dim() - 1))
        return torch.where(in_use, features, torch.full((), float("nan"), dtype=features.dtype, device=features.device))

    return change
