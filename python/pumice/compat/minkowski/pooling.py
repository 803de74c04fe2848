"""Pooling layers. Only active inputs count."""

from __future__ import annotations

from typing import Any

import torch

from ... import ops
from ..foreign import PeerAssertionError
from .convolution import MinkowskiModuleBase
from .enums import PoolingMode
from .field import TensorField
from .kernels import KernelGenerator, find_map
from .tensor import SparseTensor


def kind_of(mode: PoolingMode) -> str:
    """The engine's name of what a mode does; how it does that, the engine chooses."""
    for name, kind in (("SUM", "sum"), ("AVG", "average"), ("MAX", "max")):
        if isinstance(mode, PoolingMode) and name in mode.name:
            return kind
    raise PeerAssertionError(f"pooling mode = {mode!r}: give a PoolingMode")


class _Pooling(MinkowskiModuleBase):
    pooling_mode = PoolingMode.LOCAL_SUM_POOLING
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
        features = ops.pool(input.F, map, kind_of(self.pooling_mode))
        return SparseTensor._at(features, sites, input._manager, input._key.get_key()[1])


class MinkowskiSumPooling(_Pooling):
    """The sum of the active inputs."""


class MinkowskiAvgPooling(_Pooling):
    """The mean of the active inputs."""

    pooling_mode = PoolingMode.LOCAL_AVG_POOLING


class MinkowskiMaxPooling(_Pooling):
    """The largest active input."""

    pooling_mode = PoolingMode.LOCAL_MAX_POOLING


class MinkowskiPoolingTranspose(_Pooling):
    """Back to finer sites: the mean of the coarse ones that reach each."""

    pooling_mode = PoolingMode.LOCAL_AVG_POOLING
    is_transpose = True


class MinkowskiGlobalPooling(MinkowskiModuleBase):
    """One row for each batch item, at the origin, by a PoolingMode; the mean without one."""

    def __init__(self, mode: PoolingMode = PoolingMode.GLOBAL_AVG_POOLING_PYTORCH_INDEX) -> None:
        super().__init__()
        kind_of(mode)  # which refuses others
        self.pooling_mode = mode

    def forward(self, input: Any, coordinates: Any = None) -> SparseTensor:
        manager, kind = input._manager, kind_of(self.pooling_mode)
        if isinstance(input, TensorField):
            key = manager.origin()
            reduction = {"average": "mean"}.get(kind, kind)
            features = ops.reduce_rows(input.F, input.C[:, 0].long(), manager.size(key), reduction)
        else:
            features = ops.global_pool(input.F, input.sites, kind)
            key = manager.origin(len(features))
        return SparseTensor(features, coordinate_map_key=key, coordinate_manager=manager)


class MinkowskiGlobalSumPooling(MinkowskiGlobalPooling):
    def __init__(self, mode: PoolingMode = PoolingMode.GLOBAL_SUM_POOLING_PYTORCH_INDEX) -> None:
        super().__init__(mode)


class MinkowskiGlobalAvgPooling(MinkowskiGlobalPooling):
    def __init__(self, mode: PoolingMode = PoolingMode.GLOBAL_AVG_POOLING_PYTORCH_INDEX) -> None:
        super().__init__(mode)


class MinkowskiGlobalMaxPooling(MinkowskiGlobalPooling):
    def __init__(self, mode: PoolingMode = PoolingMode.GLOBAL_MAX_POOLING_PYTORCH_INDEX) -> None:
        super().__init__(mode)
