"""Switches of `spconv.constants`. Code may set any of them; those below say what each does here."""

from __future__ import annotations

import os

# How weights that are loaded are laid out where their shape does not tell: "RSCK" is spconv 1 and
# mmcv, "RSKC" spconv 2.0 and 2.1 with the native algorithm, "KRSC" spconv 2.2 and later.
SAVED_WEIGHT_LAYOUT = os.environ.get("SPCONV_SAVED_WEIGHT_LAYOUT", "")

# True: a maximum is taken over the active inputs and 0, as spconv does.
MAX_POOL_FROM_ZERO = False

# Without effect: that TF32 may be used is said by torch.set_float32_matmul_precision.
SPCONV_ALLOW_TF32 = False
SPCONV_USE_DIRECT_TABLE = True
SPCONV_CPP_INDICE_PAIRS = True
SPCONV_CPP_INDICE_PAIRS_IGEMM = False
SPCONV_CPP_GEMM = True
SPCONV_FX_TRACE_MODE = False
SPCONV_DO_SORT = True
SPCONV_DEBUG_WEIGHT = False
ALL_WEIGHT_IS_KRSC = True
FILTER_HWIO = False
