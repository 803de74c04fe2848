"""spconv's sparse tensors in compiled models (`pumice.compile`)."""

from __future__ import annotations

from torch import Tensor

from ....coords import Coordinates
from ....planned import scans
from .core import SparseConvTensor


class _Tensors(scans.Kind):
    type = SparseConvTensor

    def scan(self, x: SparseConvTensor) -> scans.Scan:
        shape = tuple(x.spatial_shape)
        grid = scans.Grid(len(shape), int(x.batch_size), shape, (1,) * len(shape))
        return scans.Scan(x.indices, x.computed(), grid, self, x)

    def on(self, coords: Coordinates, indices: Tensor, features: Tensor) -> SparseConvTensor:
        made = SparseConvTensor(features, indices, coords.spatial_shape or (), coords.batch_size)
        made._stand_on(coords)
        return made

    def of(self, indices: Tensor, features: Tensor, grid: scans.Grid) -> SparseConvTensor:
        return SparseConvTensor(features, indices, grid.spatial_shape or (), grid.batch_size)

    def parts(self, x: SparseConvTensor) -> tuple[Coordinates, Tensor]:
        return x.coords, x.computed()

    def replaced(self, x: SparseConvTensor, features: Tensor) -> SparseConvTensor:
        return x.replace_feature(features)


scans.know(_Tensors())
