"""Batches out of single clouds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from .... import _C
from ...._checks import at_least_one, kind_of
from ...foreign import PeerAssertionError
from .. import conventions
from ..tensor import SparseTensor


def sparse_collate(inputs: Sequence[Any]) -> Any:
    """One SparseTensor of several whose coords are [N, 3]: item i gets batch index i."""
    at_least_one("sparse_collate: inputs", inputs, "SparseTensor")
    coords, feats = [], []
    for item, x in enumerate(inputs):
        if not hasattr(x, "coords") or not hasattr(x, "feats"):
            raise _C.UserError(f"sparse_collate: item {item} is {kind_of(x)}: give a list of SparseTensors")
        cells, rows = torch.as_tensor(x.coords), torch.as_tensor(x.feats)
        if x.stride != inputs[0].stride:
            raise PeerAssertionError(
                f"sparse_collate: strides are {inputs[0].stride} and {x.stride}: give equal ones"
            )
        number = torch.full((len(cells), 1), item, dtype=torch.int32, device=cells.device)
        parts = (number, cells.int()) if conventions.batch_first else (cells.int(), number)
        coords.append(torch.cat(parts, 1))
        feats.append(rows)
    return SparseTensor(torch.cat(feats), torch.cat(coords), inputs[0].stride)


def sparse_collate_fn(inputs: Sequence[Any]) -> Any:
    """For DataLoader: dictionaries of tensors, arrays, sparse tensors, and others as lists."""
    at_least_one("sparse_collate_fn: inputs", inputs, "dictionary")
    if not isinstance(inputs[0], dict):
        return inputs
    batch: dict[str, Any] = {}
    for name, first in inputs[0].items():
        values = [x[name] for x in inputs]
        if isinstance(first, dict):
            batch[name] = sparse_collate_fn(values)
        elif isinstance(first, (np.ndarray, torch.Tensor)):
            batch[name] = torch.stack([torch.as_tensor(value) for value in values])
        elif isinstance(first, SparseTensor):
            batch[name] = sparse_collate(values)
        else:
            batch[name] = values
    return batch
