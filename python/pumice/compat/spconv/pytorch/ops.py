"""What custom layers call below the level of layers: tables of pairs, products and pooling through them,
sizes of outputs."""

from __future__ import annotations

from ..constants import (
    ALL_WEIGHT_IS_KRSC,
    FILTER_HWIO,
    SPCONV_ALLOW_TF32,
    SPCONV_CPP_GEMM,
    SPCONV_CPP_INDICE_PAIRS,
    SPCONV_CPP_INDICE_PAIRS_IGEMM,
    SPCONV_DIRECT_TABLE_HASH_SIZE_SCALE,
    SPCONV_DO_SORT,
    SPCONV_USE_DIRECT_TABLE,
    AllocKeys,
)
from ..core import AlgoHint, ConvAlgo
from ..cppconstants import CPU_ONLY_BUILD
from ..tools import CUDAKernelTimer
from ..utils import nullcontext
from .cppcore import get_arch, get_current_stream, torch_tensor_to_tv
from .pair_pooling import (
    global_pool_rearrange,
    indice_avgpool_implicit_gemm,
    indice_avgpool_implicit_gemm_backward,
    indice_maxpool,
    indice_maxpool_backward,
    indice_maxpool_implicit_gemm,
    indice_maxpool_implicit_gemm_backward,
    maximum_value_int_,
)
from .pair_products import (
    fused_indice_conv,
    implicit_gemm,
    implicit_gemm_backward,
    indice_conv,
    indice_conv_backward,
)
from .pairs import get_indice_pairs, get_indice_pairs_implicit_gemm
from .sizes import get_conv_output_size, get_deconv_output_size

# Without effect: what spconv checks, and where its hash tables change from 32 bits to 64.
DEBUG = False
DEBUG_INT64_HASH_K = False
INT32_MAX = 2**31 - 1

__all__ = [name for name in dir() if not name.startswith("_") and name != "annotations"]
