"""MinkowskiEngine's sparse tensors in compiled models (`pumice.compile`)."""

from __future__ import annotations

from torch import Tensor

from ...coords import Coordinates
from ...planned import scans
from .operation_mode import manager_for
from .tensor import SparseTensor


class _Tensors(scans.Kind):
    type = SparseTensor

    def scan(self, x: SparseTensor) -> scans.Scan:
        sites = x.sites
        grid = scans.Grid(sites.dimension, sites.batch_size, sites.spatial_shape, sites.stride)
        return scans.Scan(sites.indices, x.F, grid, self, x)

    def on(self, coords: Coordinates, indices: Tensor, features: Tensor) -> SparseTensor:
        return SparseTensor._at(features, coords, manager_for(indices))

    def of(self, indices: Tensor, features: Tensor, grid: scans.Grid) -> SparseTensor:
        return self.on(scans.SitesLater.of(indices, grid), indices, features)

    def parts(self, x: SparseTensor) -> tuple[Coordinates, Tensor]:
        return x.sites, x.F

    def replaced(self, x: SparseTensor, features: Tensor) -> SparseTensor:
        return x._with(features)


scans.know(_Tensors())
