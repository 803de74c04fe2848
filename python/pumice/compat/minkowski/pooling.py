"""Pooling layers. Only active inputs count."""

from __future__ import annotations

from typing import Any

import torch

from ... import ops
from .convolution import MinkowskiModuleBase
from .enums import PoolingMode
from .field import TensorField
from .kernels import KernelGenerator, find_map
from .tensor import SparseTensor


class _Pooling(MinkowskiModuleBase):
    _kind = "sum"
    is_transpose = False

    def __init__(
        self, kernel_size: Any, stride: Any = 1, dilation: Any = 1,
        kernel_generator: KernelGenerator | None = None, expand_coordinates: bool = False,
        dimension: int = -1,
    ) -> None:
        super().__init__()
        self.dimension = dimension
        self.kernel_generator = kernel_generator or KernelGenerator(
            kernel_size, stride, dilation, expand_coordinates=expand_coordinates, dimension=dimension
        )

    def forward(self, input: SparseTensor, coordinates: Any = None) -> SparseTensor:
        """`coordinates`: a tensor, key or matrix of the sites to go to."""
        kernel = self.kernel_generator
        map, sites = find_map(
            input, kernel, coordinates, self.is_transpose, kernel.expand_coordinates
        )
        features = ops.pool(input.F, map, self._kind)
        return SparseTensor._at(features, sites, input._manager, input._key.get_key()[1])


class MinkowskiSumPooling(_Pooling):
    """The sum of the active inputs."""


class MinkowskiAvgPooling(_Pooling):
    """The mean of the active inputs."""

    _kind = "average"


class MinkowskiMaxPooling(_Pooling):
    """The largest active input."""

    _kind = "max"


class MinkowskiPoolingTranspose(_Pooling):
    """Back to finer sites: the mean of the coarse ones that reach each."""

    _kind = "average"
    is_transpose = True


class _GlobalPooling(MinkowskiModuleBase):
    """One row for each batch item, at the origin."""

    _kind = "average"

    def __init__(self, mode: Any = None) -> None:
        super().__init__()

    def forward(self, input: Any, coordinates: Any = None) -> SparseTensor:
        manager = input._manager
        if isinstance(input, TensorField):
            key = manager.origin()
            kind = {"average": "mean"}.get(self._kind, self._kind)
            features = ops.reduce_rows(input.F, input.C[:, 0].long(), manager.size(key), kind)
        else:
            features = ops.global_pool(input.F, input.sites, self._kind)
            key = manager.origin(len(features))
        return SparseTensor(features, coordinate_map_key=key, coordinate_manager=manager)


class MinkowskiGlobalSumPooling(_GlobalPooling):
    _kind = "sum"


class MinkowskiGlobalAvgPooling(_GlobalPooling):
    _kind = "average"


class MinkowskiGlobalMaxPooling(_GlobalPooling):
    _kind = "max"


class MinkowskiGlobalPooling(_GlobalPooling):
    """By a PoolingMode; the mean without one."""

    def __init__(self, mode: PoolingMode = PoolingMode.GLOBAL_AVG_POOLING_PYTORCH_INDEX) -> None:
        super().__init__()
        self._kind = {"S": "sum", "A": "average", "M": "max"}[mode.name[len("GLOBAL_")]]
