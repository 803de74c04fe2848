"""Norms, linear layers, activations and dropout: PyTorch's modules on features, under the names by which
MinkowskiEngine keeps them."""

from __future__ import annotations

from typing import Any

import torch

from ... import ops
from ..._checks import whole_number
from ...nn import deferred
from ...nn.fused import is_watched
from .base import Tensor as SparseRows
from .base import explaining_layer
from .convolution import MinkowskiModuleBase


class MinkowskiLinear(MinkowskiModuleBase):
    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        in_features = whole_number("in_features", in_features, 1)
        out_features = whole_number("out_features", out_features, 1)
        self.linear = torch.nn.Linear(in_features, out_features, bias=bias)

    @explaining_layer
    def forward(self, input: Any) -> Any:
        return input._with(self.linear(input.F))


class MinkowskiBatchNorm(MinkowskiModuleBase):
    """A batch without rows stays as it is."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.bn = torch.nn.BatchNorm1d(num_features, eps, momentum, affine, track_running_stats)

    @explaining_layer
    def forward(self, input: Any) -> Any:
        if type(self.bn) is torch.nn.BatchNorm1d and not is_watched(self.bn):
            later = deferred.normalized(input._held, self.bn)
            if later is not None:
                return input._with(later)
        return input if len(input) == 0 else input._with(self.bn(input.F))


class MinkowskiSyncBatchNorm(MinkowskiBatchNorm):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None,
    ) -> None:
        MinkowskiModuleBase.__init__(self)
        self.bn = torch.nn.SyncBatchNorm(
            num_features, eps, momentum, affine, track_running_stats, process_group
        )

    @classmethod
    def convert_sync_batchnorm(cls, module: torch.nn.Module, process_group: Any = None) -> torch.nn.Module:
        """Every MinkowskiBatchNorm in `module` as a synchronised one with its parameters."""
        if isinstance(module, MinkowskiBatchNorm) and not isinstance(module, cls):
            module.bn = torch.nn.SyncBatchNorm.convert_sync_batchnorm(module.bn, process_group)
            module.__class__ = cls
        for child in module.children():
            cls.convert_sync_batchnorm(child, process_group)
        return module


def instance_normed(input: Any, eps: float) -> torch.Tensor:
    """[rows, C] of mean 0 and variance 1 within each batch item and channel, in float32 at least: in float16 eps
    is 0, and an item of one row has no variance."""
    item = input.C[:, 0].long()
    features = input.F.float() if input.F.dtype.itemsize < 4 else input.F
    centred = features - ops.global_pool(features, input.sites, "average")[item]
    variance = ops.global_pool(centred * centred, input.sites, "average")
    return centred * torch.rsqrt(variance + eps)[item]


class MinkowskiInstanceNorm(MinkowskiModuleBase):
    """Over the rows of each batch item; `weight` and `bias` [1, C]."""

    eps = 1e-8

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.weight = torch.nn.Parameter(torch.ones(1, num_features))
        self.bias = torch.nn.Parameter(torch.zeros(1, num_features))

    def reset_parameters(self) -> None:
        torch.nn.init.ones_(self.weight)
        torch.nn.init.zeros_(self.bias)

    @explaining_layer
    def forward(self, input: Any) -> Any:
        normed = instance_normed(input, self.eps) * self.weight + self.bias
        return input._with(normed.to(input.F.dtype))


class MinkowskiStableInstanceNorm(MinkowskiInstanceNorm):
    eps = 1e-6

    @explaining_layer
    def forward(self, x: Any) -> Any:
        return super().forward(x)


class MinkowskiNonlinearityBase(MinkowskiModuleBase):
    """A module of PyTorch's on the features."""

    MODULE: type[torch.nn.Module]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.module = self.MODULE(*args, **kwargs)

    @explaining_layer
    def forward(self, input: Any) -> Any:
        module = self.module
        if type(module) is torch.nn.ReLU and not is_watched(module):
            later = deferred.rectified(input._held, module.inplace)
            if later is not None:
                return input._with(later)
        return input._with(module(input.F))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.module.extra_repr()})"


class MinkowskiAdaptiveLogSoftmaxWithLoss(MinkowskiModuleBase):
    """torch.nn.AdaptiveLogSoftmaxWithLoss of the features; what comes out is no sparse tensor, but its
    (output [rows], loss)."""

    MODULE = torch.nn.AdaptiveLogSoftmaxWithLoss

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.module = self.MODULE(*args, **kwargs)

    @explaining_layer
    def forward(self, input: Any, target: torch.Tensor) -> Any:
        return self.module(input.F, target)


class MinkowskiSinusoidal(MinkowskiModuleBase):
    """sin(x W + b) c with `kernel` [in, out], `bias` [1, out] and `coef` [1, out]."""

    def __init__(self, in_channel: int, out_channel: int) -> None:
        super().__init__()
        self.in_channel, self.out_channel = in_channel, out_channel
        self.kernel = torch.nn.Parameter(torch.rand(in_channel, out_channel))
        self.bias = torch.nn.Parameter(torch.rand(1, out_channel))
        self.coef = torch.nn.Parameter(torch.rand(1, out_channel))

    @explaining_layer
    def forward(self, input: Any) -> Any:
        return input._with(torch.sin(input.F @ self.kernel + self.bias) * self.coef)


_ACTIVATIONS = """ELU Hardshrink Hardsigmoid Hardtanh Hardswish LeakyReLU LogSigmoid PReLU ReLU ReLU6 RReLU
SELU CELU GELU Sigmoid SiLU Softplus Softshrink Softsign Tanh Tanhshrink Threshold Softmin Softmax
LogSoftmax Dropout AlphaDropout""".split()

for _name in _ACTIVATIONS:
    globals()[f"Minkowski{_name}"] = type(
        f"Minkowski{_name}",
        (MinkowskiNonlinearityBase,),
        {"MODULE": getattr(torch.nn, _name), "__module__": __name__,
         "__doc__": f"torch.nn.{_name} of the features."},
    )

__all__ = [name for name in dir() if name.startswith("Minkowski") and not name.endswith("Base")]

SparseRows._has_layers("ME.", __all__, start="Minkowski")
