"""Layers. They take and return sparse tensors; parameters, training and optimisers are PyTorch's.

An ordinary PyTorch module works on `.features`: `Sequential` applies it there.
"""

from . import init
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
from .convolutions import (
    Conv1d,
    Conv2d,
    Conv3d,
    Conv4d,
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
    SubMConv1d,
    SubMConv2d,
    SubMConv3d,
    SubMConv4d,
)
from .join import Add, Cat
from .kept import freeze
from .linear import Linear
from .normalization import BatchNorm, InstanceNorm, LayerNorm, SyncBatchNorm
from .pooling import AvgPool, GlobalPool, MaxPool, SumPool, ToDense

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
    "in_order",
    "init",
    "residual",
]
