"""Pooling layers. Only active inputs count."""

from __future__ import annotations

from typing import Any

import torch

from ... import ops
from ..._checks import shown
from ..foreign import PeerAssertionError
from .base import explaining_layer
from .convolution import MinkowskiModuleBase
from .enums import PoolingMode
from .kernels import KernelGenerator, check_dimension, find_map, kernel_of, needed_dimension
from .tensor import SparseTensor, TensorField


def kind_of(mode: PoolingMode) -> str:
    """The engine's name of what a mode does; how it does that, the engine chooses."""
    for name, kind in (("SUM", "sum"), ("AVG", "average"), ("MAX", "max")):
        if isinstance(mode, PoolingMode) and name in mode.name:
            return kind
    raise PeerAssertionError(
        f"pooling mode {shown(mode)}: give a PoolingMode, as ME.PoolingMode.LOCAL_MAX_POOLING"
    )


class MinkowskiPoolingBase(MinkowskiModuleBase):
    """By a PoolingMode, to coarser sites; to finer ones by sums, in any mode. Only the way to finer ones obeys
    `expand_coordinates` of a kernel_generator. A kernel as large as its stride goes over the cells that a coarser one holds,
    where that of a convolution is centred if it is odd."""

    def __init__(
        self, kernel_size: Any, stride: Any = 1, dilation: Any = 1,
        kernel_generator: KernelGenerator | None = None, is_transpose: bool = False,
        pooling_mode: PoolingMode = PoolingMode.LOCAL_AVG_POOLING, dimension: int | None = -1,
    ) -> None:
        super().__init__()
        kind_of(pooling_mode)  # which refuses others
        self.dimension = needed_dimension(dimension)
        self.is_transpose, self.pooling_mode = is_transpose, pooling_mode
        self.kernel_generator = kernel_of(
            kernel_generator, kernel_size, stride, dilation, dimension=self.dimension
        )

    @explaining_layer
    def forward(self, input: SparseTensor, coordinates: Any = None) -> SparseTensor:
        """`coordinates`: a tensor, key or matrix of the sites to go to."""
        check_dimension(self.dimension, input)
        kernel = self.kernel_generator
        generative = self.is_transpose and kernel.expand_coordinates
        map, sites = find_map(input, kernel, coordinates, self.is_transpose, generative, pools=True)
        features = ops.pool(input.F, map, "sum" if self.is_transpose else kind_of(self.pooling_mode))
        return SparseTensor._at(features, sites, input._manager, input._key.get_key()[1])

    def extra_repr(self) -> str:
        kernel = self.kernel_generator
        return (
            f"kernel_size={kernel.kernel_size}, stride={kernel.kernel_stride}, "
            f"dilation={kernel.kernel_dilation}"
        )


class _ToCoarser(MinkowskiPoolingBase):
    """By the mode of its class."""

    MODE: PoolingMode

    def __init__(
        self, kernel_size: Any, stride: Any = 1, dilation: Any = 1,
        kernel_generator: KernelGenerator | None = None, dimension: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, dilation, kernel_generator, False, self.MODE, dimension)


class MinkowskiSumPooling(_ToCoarser):
    """The sum of the active inputs."""

    MODE = PoolingMode.LOCAL_SUM_POOLING


class MinkowskiAvgPooling(_ToCoarser):
    """The mean of the active inputs."""

    MODE = PoolingMode.LOCAL_AVG_POOLING

    def __init__(
        self, kernel_size: Any = -1, stride: Any = 1, dilation: Any = 1,
        kernel_generator: KernelGenerator | None = None, dimension: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, dilation, kernel_generator, dimension)


class MinkowskiMaxPooling(_ToCoarser):
    """The largest active input."""

    MODE = PoolingMode.LOCAL_MAX_POOLING


class MinkowskiPoolingTranspose(MinkowskiPoolingBase):
    """Back to finer sites: the sum of the coarse ones that reach each, whatever the mode, as in MinkowskiEngine."""

    def __init__(
        self, kernel_size: Any, stride: Any, dilation: Any = 1,
        kernel_generator: KernelGenerator | None = None, expand_coordinates: bool = False,
        dimension: int | None = None,
    ) -> None:
        kernel = kernel_of(
            kernel_generator, kernel_size, stride, dilation, expand_coordinates=expand_coordinates,
            dimension=needed_dimension(dimension),
        )
        mode = PoolingMode.LOCAL_AVG_POOLING
        super().__init__(kernel_size, stride, dilation, kernel, True, mode, dimension)


class MinkowskiGlobalPooling(MinkowskiModuleBase):
    """One row for each batch item, at the origin, by a PoolingMode; the mean without one."""

    def __init__(self, mode: PoolingMode = PoolingMode.GLOBAL_AVG_POOLING_PYTORCH_INDEX) -> None:
        super().__init__()
        kind_of(mode)  # which refuses others
        self.pooling_mode = mode

    @explaining_layer
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
