"""Which rows of two tensors meet."""

from __future__ import annotations

from typing import Any

import torch

from ...foreign import PeerAssertionError


def get_coords_map(x: Any, y: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """int64 (rows of x, the row of y whose site holds each), where y has the larger stride."""
    if x._manager is not y._manager:
        raise PeerAssertionError(
            "get_coords_map: x and y have different coordinate managers: give tensors of one network"
        )
    return x._manager.stride_map(x.coordinate_map_key, y.coordinate_map_key)
