"""The name under which MinkowskiEngine keeps its broadcasts, and the function behind them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .convolution import MinkowskiModuleBase
from .coordinates import CoordinateManager, CoordinateMapKey
from .enums import BroadcastMode
from .function import MinkowskiFunction
from .keyed import tensor_at
from .structure import (
    MinkowskiBroadcast,
    MinkowskiBroadcastAddition,
    MinkowskiBroadcastBase,
    MinkowskiBroadcastConcatenation,
    MinkowskiBroadcastMultiplication,
)
from .tensor import SparseTensor


class MinkowskiBroadcastFunction(MinkowskiFunction):
    """[rows, C]: every row with the features of its batch item added, or multiplied by them."""

    @staticmethod
    def forward(
        ctx: Any, input_features: Tensor, input_features_global: Tensor, operation_type: BroadcastMode,
        in_coords_key: CoordinateMapKey, glob_coords_key: CoordinateMapKey,
        coords_manager: CoordinateManager,
    ) -> Tensor:
        x = tensor_at(input_features, in_coords_key, coords_manager)
        items = tensor_at(input_features_global, glob_coords_key, coords_manager)
        return MinkowskiBroadcastBase(operation_type)(x, items).F


__all__ = [
    "BroadcastMode", "CoordinateManager", "CoordinateMapKey", "MinkowskiBroadcast",
    "MinkowskiBroadcastAddition", "MinkowskiBroadcastBase", "MinkowskiBroadcastConcatenation",
    "MinkowskiBroadcastFunction", "MinkowskiBroadcastMultiplication", "MinkowskiModuleBase", "SparseTensor",
]
