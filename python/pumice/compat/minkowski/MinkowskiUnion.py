"""The name under which MinkowskiEngine keeps the union, and the function behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ..foreign import PeerAssertionError
from .coordinates import CoordinateManager, CoordinateMapKey
from .function import MinkowskiFunction
from .order import rows_at
from .structure import MinkowskiUnion
from .tensor import SparseTensor


class MinkowskiUnionFunction(MinkowskiFunction):
    """The sum of features [N, C] at several keys, on the sites of any; a new output key gets those sites."""

    @staticmethod
    def forward(
        ctx: Any, in_coords_keys: Sequence[CoordinateMapKey], out_coords_key: CoordinateMapKey,
        coordinate_manager: CoordinateManager, *in_feats: Tensor,
    ) -> Tensor:
        if len(in_feats) < 2 or len(in_feats) != len(in_coords_keys):
            raise PeerAssertionError(
                f"{len(in_feats)} features and {len(in_coords_keys)} keys: give at least 2, and as many of both"
            )
        if out_coords_key.is_key_set():
            sites = coordinate_manager.sites(out_coords_key)
            sets = [coordinate_manager.sites(key) for key in in_coords_keys]
            rows = [rows_at(sites, some.indices) for some in sets]
        else:
            rows = [pairs[1] for pairs in coordinate_manager.union_map(in_coords_keys, out_coords_key)]
        total = in_feats[0].new_zeros((coordinate_manager.size(out_coords_key), in_feats[0].shape[1]))
        for features, row in zip(in_feats, rows):
            total = total.index_add(0, row, features)
        return total


__all__ = [
    "CoordinateManager", "CoordinateMapKey", "MinkowskiUnion", "MinkowskiUnionFunction", "SparseTensor",
]
