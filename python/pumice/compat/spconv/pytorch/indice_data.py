"""What a tensor remembers under an `indice_key`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .... import _C, ops
from ....coords import Coordinates
from ....ops.modes import version_of
from ....window import Window
from ..core import ConvAlgo


class IndiceData:
    """A kernel map, the sites on both sides, and the window that led from one to the other.

    `indices` [N, 1 + D] and `out_indices` [M, 1 + D] are int32; shapes are lists of D numbers.
    """

    def __init__(
        self,
        map: ops.Map,
        coords: Coordinates,
        out_coords: Coordinates,
        indices: Tensor,
        out_indices: Tensor,
        spatial_shape: list[int],
        out_spatial_shape: list[int],
        window: Window,
        is_subm: bool,
        algo: ConvAlgo,
        transposed: bool = False,
    ) -> None:
        self.map = map
        self.coords = coords
        self.out_coords = out_coords
        self.indices = indices
        self.out_indices = out_indices
        self.spatial_shape = list(spatial_shape)
        self.out_spatial_shape = list(out_spatial_shape)
        self.window = window
        self.is_subm = is_subm
        self.algo = algo
        self.is_transposed = transposed
        self.voxel_num: Any = None
        self._pairs: tuple[Tensor, Tensor] | None = None
        self._version = version_of(indices)

    @property
    def ksize(self) -> list[int]:
        """Offsets along each axis."""
        return self.window.parts[0]

    @property
    def stride(self) -> list[int]:
        """Cells from one output to the next, of each axis."""
        return self.window.parts[1]

    @property
    def padding(self) -> list[int]:
        """Cells before the grid, of each axis."""
        return self.window.parts[2]

    @property
    def dilation(self) -> list[int]:
        """Cells from one offset to the next, of each axis."""
        return self.window.parts[3]

    def in_indices(self) -> Tensor:
        """The input's own tensor, or a copy as it was if somebody has changed it since."""
        if version_of(self.indices) == self._version:
            return self.indices
        return self.coords.indices.clone()

    def backwards(self) -> ops.Map:
        """From the outputs back to the inputs."""
        if isinstance(self.map, _C.Map):
            return self.map.transposed()
        return ops.inverse_map(self.out_coords, self.window, self.coords)[0]

    @property
    def indice_pairs(self) -> Tensor:
        """int32 [2, K, N]: for each offset the input rows and the output rows that meet, then -1."""
        return self._find_pairs()[0]

    @property
    def indice_pair_num(self) -> Tensor:
        """int32 [K]: how many pairs each offset has."""
        return self._find_pairs()[1]

    def _find_pairs(self) -> tuple[Tensor, Tensor]:
        if self._pairs is None:
            sides = self.coords.indices.long(), self.out_coords.indices.long()
            if self.is_transposed:  # the window leads from the fine side, which here is the output
                pairs, numbers = _pairs(sides[1], sides[0], self.window)
                self._pairs = pairs.flip(0), numbers
            else:
                self._pairs = _pairs(*sides, self.window)
        return self._pairs


def _pairs(fine: Tensor, coarse: Tensor, window: Window) -> tuple[Tensor, Tensor]:
    """in = out · stride - padding + offset · dilation, looked up in a sorted list of keys."""
    _, stride, padding, dilation = (fine.new_tensor(part) for part in window.parts)
    offsets = fine.new_tensor(window.c.offsets())
    pairs = torch.full((2, len(offsets), len(fine)), -1, dtype=torch.int32, device=fine.device)
    numbers = torch.zeros(len(offsets), dtype=torch.int32, device=fine.device)
    if len(fine) == 0 or len(coarse) == 0:
        return pairs, numbers
    low, extent = fine.amin(0), fine.amax(0) - fine.amin(0) + 1
    keys, order = _keys(fine - low, extent).sort()
    for k, offset in enumerate(offsets):
        cells = coarse.clone()
        cells[:, 1:] = coarse[:, 1:] * stride - padding + offset * dilation
        cells -= low
        inside = ((cells >= 0) & (cells < extent)).all(1)
        wanted = _keys(cells.clamp_min(0), extent)
        at = torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)
        rows = (inside & (keys[at] == wanted)).nonzero()[:, 0]
        pairs[0, k, : len(rows)] = order[at[rows]].int()
        pairs[1, k, : len(rows)] = rows.int()
        numbers[k] = len(rows)
    return pairs, numbers


def _keys(cells: Tensor, extent: Tensor) -> Tensor:
    key = cells[:, 0]
    for axis in range(1, cells.shape[1]):
        key = key * extent[axis] + cells[:, axis]
    return key
