"""Layers, where TorchSparse has them."""

from ... import tensor as _tensor
from .activation import LeakyReLU, ReLU, SiLU
from .bev import ToBEVConvolution, ToBEVHeightCompression, ToBEVReduction, ToDenseBEVConvolution
from .conv import Conv3d
from .crop import SparseCrop
from .norm import BatchNorm, GroupNorm, InstanceNorm, SyncBatchNorm
from .pooling import GlobalAvgPool, GlobalMaxPool

__all__ = [name for name in dir() if name[0].isupper()]

_tensor.SparseTensor._has_layers("torchsparse.nn.", __all__)
