"""Batches out of single clouds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from ...._checks import at_least_one
from ...foreign import PeerAssertionError


def batched_coordinates(
    coords: Sequence[Any], dtype: torch.dtype = torch.int32, device: Any = None
) -> torch.Tensor:
    """[sum of N, 1 + D]: the index of each cloud before its coordinates [N, D], rounded down for int32."""
    at_least_one("batched_coordinates: coords", coords, "cloud")
    if any(torch.as_tensor(cells).dim() != 2 for cells in coords):
        raise PeerAssertionError(
            "batched_coordinates: coords hold something else than arrays [N, D]: give a list with one array for each "
            "cloud, and [coords] for a single one"
        )
    parts = []
    for item, cells in enumerate(coords):
        cells = torch.as_tensor(cells)
        if dtype == torch.int32 and cells.is_floating_point():
            cells = cells.floor()
        cells = cells.to(device=device or cells.device, dtype=dtype)
        parts.append(torch.cat([cells.new_full((len(cells), 1), item), cells], 1))
    return torch.cat(parts)


def sparse_collate(
    coords: Sequence[Any], feats: Sequence[Any], labels: Sequence[Any] | None = None,
    dtype: torch.dtype = torch.int32, device: Any = None,
) -> tuple[Any, ...]:
    """(coordinates [N, 1 + D], features [N, C]), and labels where there are some: one tensor of tensors or arrays, else the
    list of them."""
    at_least_one("sparse_collate: feats", feats, "cloud")
    features = torch.cat([torch.as_tensor(rows) for rows in feats])
    cells = batched_coordinates(coords, dtype, device)
    if len(cells) != len(features):
        raise ValueError(f"{len(cells)} coordinates and {len(features)} features: give a row of features for each site")
    if device is not None:
        features = features.to(device)
    if labels is None:
        return cells, features
    values = [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in labels]
    if not isinstance(values[0], torch.Tensor):
        return cells, features, values
    return cells, features, torch.cat(values) if values[0].dim() > 0 else torch.stack(values)


def batch_sparse_collate(
    data: Sequence[Any], dtype: torch.dtype = torch.int32, device: Any = None
) -> tuple[torch.Tensor, ...]:
    """sparse_collate of a list of (coordinates, features, labels), or of (coordinates, features)."""
    at_least_one("batch_sparse_collate: data", data, "cloud")
    return partial(sparse_collate, dtype=dtype, device=device)(*zip(*data))


class SparseCollation:
    """batch_sparse_collate that leaves clouds out, and logs it, before there are more than `limit_numpoints` points."""

    def __init__(
        self, limit_numpoints: int = -1, dtype: torch.dtype = torch.int32, device: Any = None
    ) -> None:
        self.limit_numpoints, self.dtype, self.device = limit_numpoints, dtype, device

    def __call__(self, list_data: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        kept, points = [], 0
        for data in list_data:
            points += len(data[0])
            if 0 < self.limit_numpoints < points and kept:
                logging.warning(
                    "SparseCollation: %d of %d clouds are left out, since limit_numpoints = %d", len(list_data) - len(kept),
                    len(list_data), self.limit_numpoints,
                )  # fmt: skip
                break
            kept.append(data)
        return batch_sparse_collate(kept, self.dtype, self.device)
