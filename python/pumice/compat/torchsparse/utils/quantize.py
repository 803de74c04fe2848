"""Points to cells, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np


def sparse_quantize(
    coords: Any,
    voxel_size: float | tuple[float, ...] = 1,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
) -> Any:
    """int32 cells [N, 3] of points [P, 3] in lexicographic order; the first point of each [N], and the
    cell of each point [P], where asked for."""
    coords = np.asarray(coords)
    size = np.broadcast_to(np.asarray(voxel_size, dtype=np.float64), (coords.shape[1],))
    cells = np.floor(coords / size).astype(np.int32)
    found, first, inverse = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    results = [found]
    if return_index:
        results.append(first)
    if return_inverse:
        results.append(inverse.reshape(-1))
    return results[0] if len(results) == 1 else tuple(results)
