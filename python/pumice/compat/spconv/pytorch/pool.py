"""Pooling over active inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .... import ops
from ....nn.dimensions import for_dimensions
from .. import constants
from ..core import ConvAlgo
from .core import SparseConvTensor
from .find import find
from .timing import Stopwatch
from .windowed import Numbers, SparseModule, WindowedModule


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
        if constants.REFUSE_AS_SPCONV:
            self._check_rows(input)
        stopwatch = Stopwatch(self, input) if input.benchmark else None
        found = find(self, input)
        if stopwatch is not None:
            stopwatch.lap("indice_gen_time")
        result = self._pool(input.computed(), found.map)
        self._count_voxels(result.shape[0])
        if stopwatch is not None:
            stopwatch.stop(result.shape[0])
        return found.output(input, result)

    def _pool(self, features: Tensor, map: ops.Map) -> Tensor:
        return ops.pool(features, map, self._kind)

    def _benchmark_params(self, x: SparseConvTensor) -> dict[str, Any]:
        return {**super()._benchmark_params(x), "channels": x.features.shape[1]}

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, algo={self.algo}"


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
    """The mean of the active inputs. Its gradient divides by their number, and multiplies by it as
    spconv does where `constants.AVG_POOL_GRADIENT_TIMES_COUNT` says so."""

    _kind = "average"

    def _pool(self, features: Tensor, map: ops.Map) -> Tensor:
        mean = super()._pool(features, map)
        if not constants.AVG_POOL_GRADIENT_TIMES_COUNT or not mean.requires_grad:
            return mean
        ones = torch.ones_like(features[:, :1], requires_grad=False)
        return scale_gradient(mean, ops.pool(ones, map, "sum").square())


class _ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(factor)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (factor,) = ctx.saved_tensors
        return grad * factor, None


scale_gradient = _ScaledGradient.apply


class _OfDimension(_Pool):
    """Says the dimension by its name; `stride` is the kernel's size by default."""

    _dimension: int

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        record_voxel_count: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            self._dimension, kernel_size, stride, padding, dilation, indice_key, False, algo,
            record_voxel_count, name,
        )  # fmt: skip


class _Max(_OfDimension, SparseMaxPool):
    __doc__ = SparseMaxPool.__doc__


class _Avg(_OfDimension, SparseAvgPool):
    __doc__ = SparseAvgPool.__doc__


SparseMaxPool1d, SparseMaxPool2d, SparseMaxPool3d, SparseMaxPool4d = for_dimensions(
    _Max, "SparseMaxPool"
)
SparseAvgPool1d, SparseAvgPool2d, SparseAvgPool3d, SparseAvgPool4d = for_dimensions(
    _Avg, "SparseAvgPool"
)


class _GlobalPool(SparseModule):
    _kind: str

    def forward(self, input: SparseConvTensor) -> Tensor:
        self._check_sparse(input)
        return ops.global_pool(input.computed(), input.coords, self._kind)


class SparseGlobalMaxPool(_GlobalPool):
    """[batch_size, C], the largest of each batch item; 0 for one without rows."""

    _kind = "max"


class SparseGlobalAvgPool(_GlobalPool):
    """[batch_size, C], the mean of each batch item. spconv gives the first channel alone, as here where
    `constants.GLOBAL_AVG_POOL_FIRST_CHANNEL` says so."""

    _kind = "average"

    def forward(self, input: SparseConvTensor) -> Tensor:
        mean = super().forward(input)
        return mean[:, 0] if constants.GLOBAL_AVG_POOL_FIRST_CHANNEL else mean


ALL_POOL_LAYERS = {
    SparseMaxPool, SparseMaxPool1d, SparseMaxPool2d, SparseMaxPool3d, SparseMaxPool4d,
    SparseAvgPool, SparseAvgPool1d, SparseAvgPool2d, SparseAvgPool3d,
}  # fmt: skip
