"""The convolution layers where spconv has them: their base, and those for one to four dimensions."""

from __future__ import annotations

from .. import constants
from ..cumm import tensorview as tv  # noqa: F401  (spconv has it here)
from ..utils import nullcontext  # noqa: F401  (and this)
from ..version import SPCONV_VERSION_NUMBERS  # noqa: F401  (and this)
from .convolution import SparseConvolution
from .core import SparseConvTensor
from .layers import *  # noqa: F403
from .layers import __all__ as _layers

# What code looks for layers by.
DEFAULT_SPARSE_CONV_TYPES = {globals()[name] for name in _layers}
FILTER_HWIO = constants.FILTER_HWIO

__all__ = [*_layers, "SparseConvTensor", "SparseConvolution"]
