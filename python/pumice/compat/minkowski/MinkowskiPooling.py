"""The name under which MinkowskiEngine keeps its pooling, and the functions behind it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ... import ops
from ..foreign import PeerAssertionError
from .convolution import MinkowskiModuleBase
from .coordinates import CoordinateManager, CoordinateMapKey
from .enums import PoolingMode
from .function import MinkowskiFunction
from .kernels import KernelGenerator
from .keyed import features_of, pool, tensor_at
from .pooling import (
    MinkowskiAvgPooling,
    MinkowskiGlobalAvgPooling,
    MinkowskiGlobalMaxPooling,
    MinkowskiGlobalPooling,
    MinkowskiGlobalSumPooling,
    MinkowskiMaxPooling,
    MinkowskiPoolingBase,
    MinkowskiPoolingTranspose,
    MinkowskiSumPooling,
)
from .tensor import SparseTensor


class MinkowskiLocalPoolingFunction(MinkowskiFunction):
    """Of features [N, C] at a key; the sites are those of the output's key, or a new key, where one is given,
    gets those that the kernel leads to."""

    @staticmethod
    def forward(
        ctx: Any, input_features: Tensor, pooling_mode: PoolingMode, kernel_generator: KernelGenerator,
        in_coordinate_map_key: CoordinateMapKey, out_coordinate_map_key: CoordinateMapKey | None = None,
        coordinate_manager: CoordinateManager | None = None,
    ) -> Tensor:
        x = tensor_at(input_features, in_coordinate_map_key, coordinate_manager)
        return pool(x, pooling_mode, kernel_generator, out_coordinate_map_key, transposed=False)


class MinkowskiLocalPoolingTransposeFunction(MinkowskiFunction):
    """The same to finer sites."""

    @staticmethod
    def forward(
        ctx: Any, input_features: Tensor, pooling_mode: PoolingMode, kernel_generator: KernelGenerator,
        in_coordinate_map_key: CoordinateMapKey, out_coordinate_map_key: CoordinateMapKey | None = None,
        coordinate_manager: CoordinateManager | None = None,
    ) -> Tensor:
        x = tensor_at(input_features, in_coordinate_map_key, coordinate_manager)
        return pool(x, pooling_mode, kernel_generator, out_coordinate_map_key, transposed=True)


class MinkowskiGlobalPoolingFunction(MinkowskiFunction):
    """[batch items, C] of features at the key of sites or of a field's points."""

    @staticmethod
    def forward(
        ctx: Any, input_features: Tensor, pooling_mode: PoolingMode,
        in_coordinate_map_key: CoordinateMapKey, out_coordinate_map_key: CoordinateMapKey | None = None,
        coordinate_manager: CoordinateManager | None = None,
    ) -> Tensor:
        x = tensor_at(input_features, in_coordinate_map_key, coordinate_manager)
        return features_of(MinkowskiGlobalPooling(pooling_mode)(x), out_coordinate_map_key)


class MinkowskiDirectMaxPoolingFunction(MinkowskiFunction):
    """[out_nrows, C]: the largest of the rows `in_feat[in_map]` that `out_map` sends to each row, 0 where it
    sends none. The gradient goes to the first of several that are the largest."""

    @staticmethod
    def forward(
        ctx: Any, in_map: Tensor, out_map: Tensor, in_feat: Tensor, out_nrows: int, is_sorted: bool = False
    ) -> Tensor:
        if len(in_map) != len(out_map) or not in_map.device == out_map.device == in_feat.device:
            raise PeerAssertionError(
                f"in_map has {len(in_map)} rows on {in_map.device}, out_map {len(out_map)} on {out_map.device}, "
                f"and in_feat is on {in_feat.device}: give as many, on one device"
            )
        return ops.reduce_rows(ops.take_rows(in_feat, in_map), out_map, out_nrows, "max")


__all__ = [
    "CoordinateManager", "CoordinateMapKey", "KernelGenerator", "MinkowskiAvgPooling",
    "MinkowskiDirectMaxPoolingFunction", "MinkowskiGlobalAvgPooling", "MinkowskiGlobalMaxPooling",
    "MinkowskiGlobalPooling", "MinkowskiGlobalPoolingFunction", "MinkowskiGlobalSumPooling",
    "MinkowskiLocalPoolingFunction", "MinkowskiLocalPoolingTransposeFunction", "MinkowskiMaxPooling",
    "MinkowskiModuleBase", "MinkowskiPoolingBase", "MinkowskiPoolingTranspose", "MinkowskiSumPooling",
    "PoolingMode", "SparseTensor",
]
