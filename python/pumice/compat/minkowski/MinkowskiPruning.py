"""The name under which MinkowskiEngine keeps pruning, and the function behind it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ... import ops
from .convolution import MinkowskiModuleBase
from .coordinates import CoordinateManager, CoordinateMapKey
from .function import MinkowskiFunction
from .keyed import features_of, is_set, tensor_at
from .order import rows_at
from .structure import MinkowskiPruning
from .tensor import SparseTensor


class MinkowskiPruningFunction(MinkowskiFunction):
    """The rows where `mask` is true; of an output key that has sites already, the rows at those."""

    @staticmethod
    def forward(
        ctx: Any, in_feat: Tensor, mask: Tensor, in_coords_key: CoordinateMapKey,
        out_coords_key: CoordinateMapKey | None = None, coords_manager: CoordinateManager | None = None,
    ) -> Tensor:
        x = tensor_at(in_feat, in_coords_key, coords_manager)
        if is_set(out_coords_key):
            kept = x._manager.sites(out_coords_key)
            return ops.take_rows(in_feat, rows_at(x.sites, kept.indices))
        return features_of(MinkowskiPruning()(x, mask.bool()), out_coords_key)


__all__ = [
    "CoordinateManager", "CoordinateMapKey", "MinkowskiModuleBase", "MinkowskiPruning",
    "MinkowskiPruningFunction", "SparseTensor",
]
