"""MinkowskiEngine 0.5's interface, for 1 to 4 dimensions, on Pumice's operators.

Coordinates are (batch, first axis, ...) in cells of the finest level, of any sign; kernels keep
MinkowskiEngine's layout, first axis fastest.
"""

from __future__ import annotations

import torch

from .. import foreign
from . import MinkowskiFunctional, MinkowskiOps, modules, utils
from .convolution import (
    MinkowskiChannelwiseConvolution,
    MinkowskiConvolution,
    MinkowskiConvolutionTranspose,
    MinkowskiGenerativeConvolutionTranspose,
    MinkowskiModuleBase,
)
from .coordinates import CoordinateManager, CoordinateMapKey, CoordsManager
from .enums import (
    BroadcastMode,
    CoordinateMapType,
    GPUMemoryAllocatorType,
    MinkowskiAlgorithm,
    PoolingMode,
    RegionType,
    SparseTensorOperationMode,
    SparseTensorQuantizationMode,
)
from .field import TensorField
from .kernels import KernelGenerator
from .layers import *  # noqa: F403
from .operation_mode import (
    clear_global_coordinate_manager,
    global_coordinate_manager,
    set_global_coordinate_manager,
    set_sparse_tensor_operation_mode,
    sparse_tensor_operation_mode,
)
from .pooling import (
    MinkowskiAvgPooling,
    MinkowskiGlobalAvgPooling,
    MinkowskiGlobalMaxPooling,
    MinkowskiGlobalPooling,
    MinkowskiGlobalSumPooling,
    MinkowskiMaxPooling,
    MinkowskiPoolingTranspose,
    MinkowskiSumPooling,
)
from .structure import (
    MinkowskiBroadcast,
    MinkowskiBroadcastAddition,
    MinkowskiBroadcastConcatenation,
    MinkowskiBroadcastMultiplication,
    MinkowskiInterpolation,
    MinkowskiNetwork,
    MinkowskiPruning,
    MinkowskiStackCat,
    MinkowskiStackSum,
    MinkowskiToDenseTensor,
    MinkowskiToFeature,
    MinkowskiToSparseTensor,
    MinkowskiUnion,
    cat,
    dense_coordinates,
    to_sparse,
    to_sparse_all,
)
from .tensor import SparseTensor

__version__ = "0.5.4"


def is_cuda_available() -> bool:
    return torch.cuda.is_available()


def set_gpu_allocator(backend: GPUMemoryAllocatorType) -> None:
    """Has no effect: memory is PyTorch's."""


def install() -> None:
    """From here on `import MinkowskiEngine` finds this package, in this process."""
    foreign.install_packages({"MinkowskiEngine": __name__})
