"""TorchSparse's layers."""

from . import functional, modules, utils
from .modules import (
    BatchNorm,
    Conv3d,
    GlobalAvgPool,
    GlobalMaxPool,
    GroupNorm,
    InstanceNorm,
    LeakyReLU,
    ReLU,
    SiLU,
    SparseCrop,
    SyncBatchNorm,
    ToBEVConvolution,
    ToBEVHeightCompression,
    ToBEVReduction,
    ToDenseBEVConvolution,
)

__all__ = [name for name in dir() if name[0].isupper()]
