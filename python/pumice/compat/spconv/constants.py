"""Switches of `spconv.constants`. Code may set any of them; those below say what each does here."""

from __future__ import annotations

import os
from pathlib import Path

# How weights that are loaded are laid out where their shape does not tell: "RSCK" is spconv 1 and
# mmcv, "RSKC" spconv 2.0 and 2.1 with the native algorithm, "KRSC" spconv 2.2 and later.
SAVED_WEIGHT_LAYOUT = os.environ.get("SPCONV_SAVED_WEIGHT_LAYOUT", "")

# What follows makes this package do as spconv does where it does otherwise by default.

# True: a maximum is taken over the active inputs and 0.
MAX_POOL_FROM_ZERO = False
# True: the gradient of average pooling is multiplied by the number of inputs instead of divided.
AVG_POOL_GRADIENT_TIMES_COUNT = False
# True: SparseGlobalAvgPool gives [batch_size], the mean of the first channel.
GLOBAL_AVG_POOL_FIRST_CHANNEL = False
# True: in evaluation, layers leave autocast alone and compute in the type of their weights, which is
# several times slower on a GPU.
EVAL_IGNORES_AUTOCAST = False
# True: raises what spconv raises where there is no need to: for input without rows, where all sites
# vanish, for groups, for `add_input` in evaluation, for `select_by_index`, and for `benchmark` of a
# layer without a name.
REFUSE_AS_SPCONV = False

# Without effect: that TF32 may be used is said by torch.set_float32_matmul_precision.
SPCONV_ALLOW_TF32 = False
SPCONV_USE_DIRECT_TABLE = True
SPCONV_DIRECT_TABLE_HASH_SIZE_SCALE = 1.1
SPCONV_CPP_INDICE_PAIRS = True
SPCONV_CPP_INDICE_PAIRS_IGEMM = False
SPCONV_CPP_GEMM = True
SPCONV_FX_TRACE_MODE = os.environ.get("SPCONV_FX_TRACE_MODE", "0") == "1"
SPCONV_DO_SORT = True
SPCONV_BWD_SPLITK = [1, 2, 4, 8, 16, 32, 64]
SPCONV_DEBUG_WEIGHT = False
SPCONV_DEBUG_SAVE_PATH = os.environ.get("SPCONV_DEBUG_SAVE_PATH", "")
SPCONV_DEBUG_NVRTC_KERNELS = False
SPCONV_DEBUG_CPP_ONLY = False
SPCONV_INT8_DEBUG = False
ALL_WEIGHT_IS_KRSC = True
FILTER_HWIO = False
NDIM_DONT_CARE = 3
DISABLE_JIT = False
EDITABLE_INSTALLED = False
BOOST_ROOT = None

PACKAGE_NAME = "spconv"
# The folder of this package.
PACKAGE_ROOT = Path(__file__).parent.resolve()


class AllocKeys:
    """Names that spconv's C++ asks for memory by."""

    PairBwd = "PairBwd"
    IndiceNumPerLoc = "IndiceNumPerLoc"
    PairMask = "PairMask"
    MaskArgSort = "MaskArgSort"
    OutIndices = "OutIndices"
    PairFwd = "PairFwd"
    PairMaskBwd = "PairMaskBwd"
    MaskArgSortBwd = "MaskArgSortBwd"
    MaskOutputFwd = "MaskOutputFwd"
    OutFeatures = "OutFeatures"
    Features = "Features"
    Filters = "Filters"
    OutBp = "OutBp"
    DIn = "DIn"
    DFilters = "DFilters"
    InpBuffer = "InpBuffer"
    OutBuffer = "OutBuffer"
    IndicePairsUniq = "IndicePairsUniq"
    IndicePairsUniqBackup = "IndicePairsUniqBackup"
    HashKOrKV = "HashKOrKV"
    HashV = "HashV"
    ThrustTemp = "ThrustTemp"
    TightUniqueCount = "TightUniqueCount"
