"""Convolution as a module, with TorchSparse's parameters."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch

from .. import functional as F
from ....foreign import ForeignWeight
from ...tensor import SparseTensor
from ...utils.utils import make_ntuple


class Conv3d(torch.nn.Module):
    """`kernel` [K, in, out], or [in, out] of a 1x1x1 kernel of stride 1, and `bias` [out].

    TorchSparse ignores `dilation`, so models trained with it saw none: a dilation gives a warning, and is
    obeyed only where `Conv3d.obeys_dilation` is set.
    """

    obeys_dilation = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        bias: bool = False,
        transposed: bool = False,
        generative: bool = False,
        config: Any = None,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = make_ntuple(kernel_size, 3)
        self.stride = make_ntuple(stride, 3)
        self.padding = make_ntuple(padding, 3)
        self.dilation = make_ntuple(dilation, 3)
        self.transposed = transposed
        self.generative = generative
        self.config = config
        self.kernel_volume = math.prod(self.kernel_size)
        if max(self.dilation) > 1 and not self.obeys_dilation:
            warnings.warn(
                f"dilation = {self.dilation} has no effect, as in TorchSparse, which ignores it: set "
                "Conv3d.obeys_dilation = True for a model not trained there",
                stacklevel=2,
            )
        strided = self.stride != (1, 1, 1)
        shape = (in_channels, out_channels)
        if self.kernel_volume > 1 or strided:
            shape = (self.kernel_volume, *shape)
        self.kernel = torch.nn.Parameter(torch.empty(shape))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self._kept = ForeignWeight("torchsparse", self.kernel_size, strided)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in ±1 / sqrt(K · channels), of the output where it is transposed."""
        channels = self.out_channels if self.transposed else self.in_channels
        bound = 1 / math.sqrt(channels * self.kernel_volume)
        for parameter in self.parameters(recurse=False):
            torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input: SparseTensor) -> SparseTensor:
        return F.conv3d(
            input,
            self.kernel,
            self.kernel_size,
            self.bias,
            self.stride,
            self.padding,
            self.dilation if self.obeys_dilation else 1,
            transposed=self.transposed,
            generative=self.generative,
            training=self.training,
            kept=self._kept,
        )

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        if self.stride != (1, 1, 1):
            text += f", stride={self.stride}"
        if self.bias is None:
            text += ", bias=False"
        return text + ", transposed=True" * self.transposed + ", generative=True" * self.generative
