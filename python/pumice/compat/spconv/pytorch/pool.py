"""Pooling over active inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .... import ops
from .. import constants
from ..core import ConvAlgo
from .core import SparseConvTensor
from .find import find
from .layers import of_dimension
from .modules import Numbers, SparseModule, WindowedModule


class _Pool(WindowedModule):
    _kind: str

    def __init__(
        self,
        ndim: int,
        kernel_size: Numbers = 3,
        stride: Numbers | None = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        indice_key: str | None = None,
        subm: bool = False,
        algo: ConvAlgo | None = None,
        record_voxel_count: bool = False,
        name: str | None = None,
    ) -> None:
        """`stride` None: the kernel's size. `subm`: outputs are the inputs."""
        stride = kernel_size if stride is None else stride
        super().__init__(
            ndim, kernel_size, stride, padding, dilation, indice_key, subm, algo,
            record_voxel_count, name,
        )  # fmt: skip

    def forward(self, input: SparseConvTensor) -> SparseConvTensor:
        self._check_dimension(input)
        found = find(self, input)
        result = self._pool(input.features, found.map)
        self._count_voxels(result.shape[0])
        return found.output(input, result)

    def _pool(self, features: Tensor, map: ops.Map) -> Tensor:
        return ops.pool(features, map, self._kind)


class SparseMaxPool(_Pool):
    """The largest active input. `from_zero`: of the active inputs and 0, as spconv has it; None
    leaves that to `constants.MAX_POOL_FROM_ZERO`."""

    _kind = "max"
    from_zero: bool | None = None

    def _pool(self, features: Tensor, map: ops.Map) -> Tensor:
        largest = super()._pool(features, map)
        from_zero = constants.MAX_POOL_FROM_ZERO if self.from_zero is None else self.from_zero
        return torch.relu(largest) if from_zero else largest


class SparseAvgPool(_Pool):
    """The mean of the active inputs."""

    _kind = "average"


def _with_dimension(base: type) -> type:
    def __init__(
        self: Any,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        record_voxel_count: bool = False,
        name: str | None = None,
    ) -> None:
        base.__init__(
            self, self._ndim, kernel_size, stride, padding, dilation, indice_key, False, algo,
            record_voxel_count, name,
        )  # fmt: skip

    return type(f"_{base.__name__}", (base,), {
        "__init__": __init__, "__module__": __name__, "__doc__": base.__doc__,
    })  # fmt: skip


_Max, _Avg = _with_dimension(SparseMaxPool), _with_dimension(SparseAvgPool)
SparseMaxPool1d, SparseMaxPool2d, SparseMaxPool3d, SparseMaxPool4d = (
    of_dimension(_Max, f"SparseMaxPool{d}d", d) for d in range(1, 5)
)
SparseAvgPool1d, SparseAvgPool2d, SparseAvgPool3d, SparseAvgPool4d = (
    of_dimension(_Avg, f"SparseAvgPool{d}d", d) for d in range(1, 5)
)


class _GlobalPool(SparseModule):
    _kind: str

    def forward(self, input: SparseConvTensor) -> Tensor:
        return ops.global_pool(input.features, input.coords, self._kind)


class SparseGlobalMaxPool(_GlobalPool):
    """[batch_size, C], the largest of each batch item; 0 for one without rows."""

    _kind = "max"


class SparseGlobalAvgPool(_GlobalPool):
    """[batch_size, C], the mean of each batch item (spconv gives the first channel alone)."""

    _kind = "average"
