"""Convolution as a module, with TorchSparse's parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from ..... import _C
from ....._checks import whole_number
from ....foreign import ForeignWeight, PeerAssertionError
from ... import conventions
from ...axis_numbers import make_ntuple
from ...tensor import SparseTensor, explaining_layer
from ..functional.conv import conv as functional
from ..functional.conv import conv_config

_BEFORE = (
    "self", "in_channels", "out_channels", "kernel_size", "stride", "dilation", "bias", "transposed",
    "config",
)  # fmt: skip


def _meaning(given: Mapping[str, Any], before: bool) -> object:
    reading = functional.reading(given, before, centred_by_itself=True)
    return reading, bool(given.get("bias", False))


class Conv3d(torch.nn.Module):
    """`kernel` [K, in, out], or [in, out] of a 1x1x1 kernel of stride 1, and `bias` [out].

    Before 2.1 arguments come in another order, without `padding` and `generative`, and a 1x1x1 kernel is
    [in, out] with any stride.

    TorchSparse ignores `dilation`, so models trained with it saw none: a dilation gives a warning, and is
    obeyed only where `Conv3d.obeys_dilation` is set.
    """

    obeys_dilation = False

    @conventions.by_release(_BEFORE, _meaning)
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
        if generative and not transposed:
            raise PeerAssertionError("generative = True: give transposed = True too")
        self.in_channels = whole_number("in_channels", in_channels, 1)
        self.out_channels = whole_number("out_channels", out_channels, 1)
        self.kernel_size = make_ntuple(kernel_size, 3, "kernel_size")
        self.stride = make_ntuple(stride, 3, "stride")
        self.padding = make_ntuple(padding, 3, "padding")
        if conventions.batch_first:
            self.padding = functional.centred(padding, self.kernel_size, self.stride)
        self.dilation = dilation
        self.transposed = transposed
        self.generative = generative
        if config is not None:
            conv_config.check("config", config)
        self._config = config
        self.kernel_volume = math.prod(self.kernel_size)
        if min(*self.kernel_size, *self.stride) < 1:
            raise _C.UserError(
                f"kernel_size = {self.kernel_size}, stride = {self.stride}: give whole numbers of at least 1"
            )
        if not self.obeys_dilation:
            functional.warn_of_dilation(dilation)
        # A single offset with a stride is a matrix before 2.1.
        strided = self.stride != (1, 1, 1) and conventions.batch_first
        shape: tuple[int, ...] = (in_channels, out_channels)
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

    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        return functional.convolve(
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
            config=self._config,
            kept=self._kept,
        )

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        if self.stride != (1, 1, 1):
            text += f", stride={self.stride}"
        if self.dilation != 1:
            text += f", dilation={self.dilation}"
        if self.bias is None:
            text += ", bias=False"
        return text + ", transposed=True" * self.transposed + ", generative=True" * self.generative
