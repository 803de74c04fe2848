"""MinkowskiEngine 0.5's interface, for 1 to 4 dimensions, on Pumice's operators.

Coordinates are (batch, first axis, ...) in cells of the finest level, of any sign; kernels keep
MinkowskiEngine's layout, first axis fastest.
"""

from __future__ import annotations

import importlib

from .. import foreign
from .unprefixed import EXTENSION, SUBMODULES, find_unprefixed

# Seven modules have the name of a layer in them. The package shows the layer, so the modules come first.
for _name in (*SUBMODULES, EXTENSION):
    importlib.import_module(f".{_name}", __name__)

from . import MinkowskiFunctional, MinkowskiOps, modules, planned, utils  # noqa: E402
from .convolution import (
    MinkowskiChannelwiseConvolution,
    MinkowskiConvolution,
    MinkowskiConvolutionTranspose,
    MinkowskiGenerativeConvolutionTranspose,
    MinkowskiModuleBase,
)
from .coordinates import CoordinateManager, CoordinateMapKey, CoordsManager
from .diagnostics import (
    cuda_version,
    cudart_version,
    get_gpu_memory_info,
    is_cuda_available,
    print_diagnostics,
)
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
from .kernels import KernelGenerator
from .layers import *  # noqa: F403
from .MinkowskiBroadcast import MinkowskiBroadcastFunction
from .MinkowskiCommon import convert_to_int_tensor
from .MinkowskiConvolution import (
    MinkowskiConvolutionFunction,
    MinkowskiConvolutionTransposeFunction,
)
from .MinkowskiCoordinateManager import set_gpu_allocator, set_memory_manager_backend
from .MinkowskiInterpolation import MinkowskiInterpolation, MinkowskiInterpolationFunction
from .MinkowskiKernelGenerator import KernelRegion
from .MinkowskiNormalization import MinkowskiInstanceNormFunction
from .MinkowskiPooling import (
    MinkowskiDirectMaxPoolingFunction,
    MinkowskiGlobalPoolingFunction,
    MinkowskiLocalPoolingFunction,
    MinkowskiLocalPoolingTransposeFunction,
)
from .MinkowskiPruning import MinkowskiPruningFunction
from .MinkowskiUnion import MinkowskiUnionFunction
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
    MinkowskiNetwork,
    MinkowskiPruning,
    MinkowskiStackCat,
    MinkowskiStackMean,
    MinkowskiStackSum,
    MinkowskiStackVar,
    MinkowskiToDenseTensor,
    MinkowskiToFeature,
    MinkowskiToSparseTensor,
    MinkowskiUnion,
    cat,
    dense_coordinates,
    mean,
    to_sparse,
    to_sparse_all,
    var,
)
from .structure import _sum as sum
from .regions import convert_region_type, get_kernel_volume
from .sparse_matrix_functions import (
    MinkowskiSPMMAverageFunction,
    MinkowskiSPMMFunction,
    spmm,
)
from .tensor import SparseTensor, TensorField

__version__ = "0.5.4"


def install() -> None:
    """From here on `import MinkowskiEngine` finds this package, in this process, and `import MinkowskiOps` and
    so on its modules, where nothing else has that name."""
    foreign.install_packages({"MinkowskiEngine": __name__})
    find_unprefixed(__name__)
