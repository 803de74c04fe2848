"""Features at points between sites, under the name by which MinkowskiEngine keeps that."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ... import ops
from .convolution import MinkowskiModuleBase
from .coordinates import CoordinateManager, CoordinateMapKey
from .function import MinkowskiFunction
from .keyed import tensor_at
from .tensor import SparseTensor


class MinkowskiInterpolationFunction(MinkowskiFunction):
    """(features [P, C] at points [P, 1 + D], and of each pair of a point and a site at a corner of its cell:
    int32 rows of sites, int32 points, weights). Pairs come corner by corner."""

    @staticmethod
    def forward(
        ctx: Any, input_features: Tensor, tfield: Tensor, in_coordinate_map_key: CoordinateMapKey,
        coordinate_manager: CoordinateManager | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x = tensor_at(input_features, in_coordinate_map_key, coordinate_manager)
        map = x._interpolation_map(tfield)
        features = ops.interpolate(input_features, map)
        rows, weights = map.rows.T, map.weights.T
        there = rows >= 0
        points = there.nonzero()[:, 1].int()
        return features, rows[there], points, weights[there]


class MinkowskiInterpolation(MinkowskiModuleBase):
    """Features at points [P, 1 + D]; with `return_kernel_map` also (rows of sites, points) that meet, with
    `return_weights` the weight of each such pair."""

    def __init__(self, return_kernel_map: bool = False, return_weights: bool = False) -> None:
        super().__init__()
        self.return_kernel_map, self.return_weights = return_kernel_map, return_weights

    def forward(self, input: SparseTensor, tfield: Tensor) -> Any:
        if not self.return_kernel_map and not self.return_weights:
            return input.features_at_coordinates(tfield)
        features, rows, points, weights = MinkowskiInterpolationFunction.apply(
            input.F, tfield, input._key, input._manager
        )
        found = [(rows, points)] if self.return_kernel_map else []
        return features, *found, *([weights] if self.return_weights else [])


__all__ = [
    "CoordinateManager", "CoordinateMapKey", "MinkowskiInterpolation", "MinkowskiInterpolationFunction",
    "MinkowskiModuleBase", "SparseTensor",
]
