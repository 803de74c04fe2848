"""The name under which MinkowskiEngine keeps fields."""

from __future__ import annotations

import itertools

import torch

from .base import Tensor
from .coordinates import CoordinateManager, CoordinateMapKey
from .enums import SparseTensorOperationMode, SparseTensorQuantizationMode
from .tensor import SparseTensor, TensorField


def create_splat_coordinates(coordinates: torch.Tensor) -> torch.Tensor:
    """int32 [P · 2^D, 1 + D]: the corners of the cell around each point [P, 1 + D], the last axis fastest;
    cells next to each other share some."""
    dimension = coordinates.shape[1] - 1
    steps = torch.tensor([(0, *step) for step in itertools.product((0, 1), repeat=dimension)])
    cells = torch.floor(coordinates).int()[:, None] + steps.int().to(coordinates.device)
    return cells.reshape(-1, dimension + 1)


__all__ = [
    "CoordinateManager", "CoordinateMapKey", "SparseTensor", "SparseTensorOperationMode",
    "SparseTensorQuantizationMode", "Tensor", "TensorField", "create_splat_coordinates",
]
