"""Points to cells, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...foreign import PeerAssertionError


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
    size = np.asarray(voxel_size, dtype=np.float64)
    if coords.ndim != 2 or size.shape not in ((), (coords.shape[1],)):
        raise PeerAssertionError(
            f"coords have shape {coords.shape} and voxel_size is {voxel_size!r}: give coords [points, axes] "
            "and one size, or one for each axis"
        )
    if not (size > 0).all():
        raise PeerAssertionError(f"voxel_size = {voxel_size!r}: give a positive number, or one for each axis")
    cells = np.floor(coords / size).astype(np.int32)
    found, first, inverse = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    results = [found]
    if return_index:
        results.append(first)
    if return_inverse:
        results.append(inverse.reshape(-1))
    return results[0] if len(results) == 1 else results


def ravel_hash(x: np.ndarray) -> np.ndarray:
    """uint64 [N] of int [N, axes], in the order of the rows: equal for equal rows, and for no others."""
    if x.ndim != 2:
        raise PeerAssertionError(f"x has shape {x.shape}: give [rows, axes]")
    if len(x) == 0:
        return np.zeros(0, dtype=np.uint64)
    cells = (x - x.min(axis=0)).astype(np.uint64)
    total = np.zeros(len(x), dtype=np.uint64)
    for column, extent in zip(cells.T, cells.max(axis=0) + np.uint64(1)):
        total = total * extent + column
    return total
