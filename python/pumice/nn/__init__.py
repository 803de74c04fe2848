"""Provides layers. They take and return sparse tensors; parameters, training and optimisers are PyTorch's.

An ordinary PyTorch module works on `.features`: `Sequential` applies it there.
"""

from typing import TYPE_CHECKING

from .. import _needs_torch  # noqa: F401  (first, since it says what is missing)
from . import graph, init
from .activation import (
    ELU,
    GELU,
    Dropout,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Tanh,
)
from .bev import ToBEV
from .container import Identity, OnFeatures, Residual, Sequential, in_order, residual
from .convolution import Convolution
from .join import Add, Cat
from .kept import freeze
from .linear import Linear
from .normalization import BatchNorm, InstanceNorm, LayerNorm, SyncBatchNorm
from .pooling import AvgPool, GlobalPool, MaxPool, SumPool, ToDense
from .strided import Conv1d, Conv2d, Conv3d, Conv4d
from .submanifold import SubMConv1d, SubMConv2d, SubMConv3d, SubMConv4d
from .transposed import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    ConvTranspose4d,
    GenerativeConvTranspose1d,
    GenerativeConvTranspose2d,
    GenerativeConvTranspose3d,
    GenerativeConvTranspose4d,
    InverseConv1d,
    InverseConv2d,
    InverseConv3d,
    InverseConv4d,
)

__all__ = [
    "Add",
    "AvgPool",
    "BatchNorm",
    "Cat",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "Conv4d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "ConvTranspose4d",
    "Convolution",
    "Dropout",
    "ELU",
    "GELU",
    "GenerativeConvTranspose1d",
    "GenerativeConvTranspose2d",
    "GenerativeConvTranspose3d",
    "GenerativeConvTranspose4d",
    "GlobalPool",
    "Identity",
    "InstanceNorm",
    "InverseConv1d",
    "InverseConv2d",
    "InverseConv3d",
    "InverseConv4d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MaxPool",
    "OnFeatures",
    "PReLU",
    "ReLU",
    "ReLU6",
    "Residual",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SubMConv1d",
    "SubMConv2d",
    "SubMConv3d",
    "SubMConv4d",
    "SumPool",
    "SyncBatchNorm",
    "Tanh",
    "ToBEV",
    "ToDense",
    "freeze",
    "graph",
    "in_order",
    "init",
    "residual",
]

# Names of other libraries and the names here, without the number of axes at the end.
_NAMED_OTHERWISE = {
    "SparseConv": "Conv", "SparseInverseConv": "InverseConv", "SparseConvTranspose": "ConvTranspose",
    "SparseSequential": "Sequential", "SparseMaxPool": "MaxPool", "MaxPool": "MaxPool", "AvgPool": "AvgPool",
    "BatchNorm": "BatchNorm", "MinkowskiConvolution": "Conv", "MinkowskiConvolutionTranspose": "ConvTranspose",
    "MinkowskiBatchNorm": "BatchNorm", "MinkowskiReLU": "ReLU", "MinkowskiLinear": "Linear",
    "MinkowskiMaxPooling": "MaxPool", "MinkowskiAvgPooling": "AvgPool",
}  # fmt: skip


if not TYPE_CHECKING:  # where it would be an attribute of any name

    def __getattr__(name: str) -> object:
        """Raises AttributeError, which says what a layer of another library is called here."""
        bare = name[:-2] if name[-2:] in ("1d", "2d", "3d", "4d") else name
        axes = name[len(bare) :] or "3d"
        known = _NAMED_OTHERWISE.get(bare)
        if known is None:
            raise AttributeError(f"module 'pumice.nn' has no attribute {name!r}")
        there = known if known in __all__ else known + axes
        raise AttributeError(
            f"module 'pumice.nn' has no attribute {name!r}: it is nn.{there}; pumice.compat has the interfaces of other "
            "libraries"
        )
