"""What is asked of arguments, and said where they are not so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import torch
from torch import Tensor

from ...._checks import shown
from ...foreign import PeerAssertionError, check_rows
from ...mistakes import other_way_round


def expand_nd(ndim: int, val: Union[int, Sequence[int], np.ndarray], name: str = "val") -> list[int]:
    """One number for all axes, or one each. Raises PeerAssertionError, in the name of the argument, for anything else."""
    try:
        numbers = [val] * ndim if isinstance(val, (int, np.integer)) else list(val)
        if len(numbers) == ndim and not isinstance(val, str):
            return [int(number) for number in numbers]
    except (TypeError, ValueError):
        pass
    raise PeerAssertionError(f"{name} = {val!r}: give one number, or one for each of {ndim} axes")


def check_tensor(features: Tensor, indices: Tensor, spatial_shape: Any, batch_size: int) -> None:
    """Raises PeerAssertionError unless these make a sparse tensor."""
    for name, value in (("features", features), ("indices", indices)):
        check_rows(name, value)
    if other_way_round(features, indices):
        raise PeerAssertionError(
            f"features are {features.dtype} {tuple(features.shape)} and indices {indices.dtype} {tuple(indices.shape)}, "
            "the other way round: give SparseConvTensor(features, indices, spatial_shape, batch_size)"
        )
    if features.dim() != 2:
        raise PeerAssertionError(f"features have shape {tuple(features.shape)}: give [rows, channels]")
    if indices.dim() != 2 or indices.dtype != torch.int32:
        raise PeerAssertionError(
            f"indices are {indices.dtype} {tuple(indices.shape)}: give int32 [rows, 1 + D], the "
            "batch index first (indices.int() converts)"
        )
    if features.shape[0] != indices.shape[0]:
        raise PeerAssertionError(
            f"features have {features.shape[0]} rows and indices {indices.shape[0]}: give a row of features for each site"
        )
    if isinstance(spatial_shape, str) or not hasattr(spatial_shape, "__len__"):
        raise PeerAssertionError(f"spatial_shape {shown(spatial_shape)}: give a number for each axis, as [41, 1440, 1440]")
    if len(spatial_shape) != indices.shape[1] - 1:
        raise PeerAssertionError(
            f"spatial_shape has {len(spatial_shape)} numbers and indices "
            f"{indices.shape[1]} columns: give the batch index and one column an axis"
        )
    if isinstance(batch_size, str) or batch_size < 1:
        raise PeerAssertionError(f"batch_size = {batch_size!r}: give a number of at least 1")
