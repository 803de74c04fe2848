"""TorchSparse's sparse tensors in compiled models (`pumice.compile`)."""

from __future__ import annotations

from torch import Tensor

from ... import _C
from ...coords import Coordinates
from ...planned import scans
from . import conventions
from .tensor import SparseTensor


class _Tensors(scans.Kind):
    type = SparseTensor

    def scan(self, x: SparseTensor) -> scans.Scan:
        if not conventions.batch_first:
            raise _C.UserError(
                "a compiled model takes tensors as TorchSparse 2.1 has them, (batch, x, y, z): call "
                "torchsparse.use_version('2.1')"
            )
        items, *shape = x.spatial_range or (1,)
        grid = scans.Grid(3, int(items), tuple(map(int, shape)) or None, x.stride)
        return scans.of_parts(x.coords, x.feats, grid, self, x)

    def on(self, coords: Coordinates, indices: Tensor, features: Tensor) -> SparseTensor:
        made = SparseTensor(features, indices, coords.stride, _range(coords.batch_size, coords.spatial_shape))
        made._caches.kmaps[("sites", made.stride)] = (indices, coords)
        made._note()
        return made

    def of(self, indices: Tensor, features: Tensor, grid: scans.Grid) -> SparseTensor:
        # With a batch size that the tensor itself cannot have without a spatial range.
        return self.on(scans.SitesLater.of(indices, grid), indices, features)

    def parts(self, x: SparseTensor) -> tuple[Coordinates, Tensor]:
        return x.sites, x.feats

    def replaced(self, x: SparseTensor, features: Tensor) -> SparseTensor:
        return x._with(features)

    def fresh(self, x: SparseTensor) -> SparseTensor:
        return SparseTensor(x.feats.detach(), x.coords, x.stride, x.spatial_range)


def _range(items: int, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if shape is None else (items, *shape)


scans.know(_Tensors())
