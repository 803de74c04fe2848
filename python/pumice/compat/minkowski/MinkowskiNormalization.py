"""The name under which MinkowskiEngine keeps its norms, and the function behind the one over items."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .coordinates import CoordinateManager, CoordinateMapKey
from .enums import PoolingMode
from .function import MinkowskiFunction
from .keyed import tensor_at
from .layers import (
    MinkowskiBatchNorm,
    MinkowskiInstanceNorm,
    MinkowskiStableInstanceNorm,
    MinkowskiSyncBatchNorm,
    instance_normed,
)


class MinkowskiInstanceNormFunction(MinkowskiFunction):
    """Features of mean 0 and variance 1 within each batch item and channel; a new key of items gets the
    origins."""

    @staticmethod
    def forward(
        ctx: Any, in_feat: Tensor, in_coords_key: CoordinateMapKey,
        glob_coords_key: CoordinateMapKey | None = None, coords_manager: CoordinateManager | None = None,
        gpooling_mode: PoolingMode = PoolingMode.GLOBAL_AVG_POOLING_KERNEL,
    ) -> Tensor:
        x = tensor_at(in_feat, in_coords_key, coords_manager)
        if glob_coords_key is not None and not glob_coords_key.is_key_set():
            glob_coords_key._take(x._manager.origin(x.sites.batch_size))
        return instance_normed(x, MinkowskiInstanceNorm.eps).to(x.F.dtype)


__all__ = [
    "MinkowskiBatchNorm", "MinkowskiInstanceNorm", "MinkowskiInstanceNormFunction",
    "MinkowskiStableInstanceNorm", "MinkowskiSyncBatchNorm",
]
