"""Convolution layers, with MinkowskiEngine's parameters."""

from __future__ import annotations

import math
from typing import Any

import torch

from ... import ops
from ..._checks import whole_number
from ...nn import deferred
from .base import explaining_layer
from .enums import ConvolutionMode, check_member
from .kernels import (
    KernelGenerator,
    check_dimension,
    check_generator,
    find_map,
    kernel_of,
    needed_dimension,
    weight_of,
)
from .tensor import SparseTensor


class MinkowskiModuleBase(torch.nn.Module):
    """The base of all layers."""


class _WithKernel(MinkowskiModuleBase):
    """Has a `kernel`, and a `bias` [1, out] or None, behind a KernelGenerator."""

    is_transpose = False

    def _make(
        self, generator: KernelGenerator, kernel: tuple[int, ...], in_channels: int,
        out_channels: int, dimension: int | None, bias: bool,
    ) -> None:
        self.in_channels = whole_number("in_channels", in_channels, 1)
        self.out_channels = whole_number("out_channels", out_channels, 1)
        self.dimension = needed_dimension(dimension)
        self.kernel_generator = generator
        self.kernel = torch.nn.Parameter(torch.empty(kernel))
        self.bias = torch.nn.Parameter(torch.empty(1, out_channels)) if bias else None
        self.reset_parameters(self.is_transpose)

    def reset_parameters(self, is_transpose: bool = False) -> None:
        """Uniform in ±1 / sqrt(K · channels), of the output where it is transposed."""
        channels = self.out_channels if is_transpose else self.in_channels
        bound = 1 / math.sqrt(channels * self.kernel_generator.kernel_volume)
        for parameter in self.parameters(recurse=False):
            torch.nn.init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        kernel = self.kernel_generator
        return (
            f"in={self.in_channels}, out={self.out_channels}, kernel_size={kernel.kernel_size}, "
            f"stride={kernel.kernel_stride}, dilation={kernel.kernel_dilation}"
        )


class MinkowskiConvolutionBase(_WithKernel):
    """`kernel` [K, in, out], or [in, out] of one offset and stride 1, and `bias` [1, out]."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = -1, stride: Any = 1,
        dilation: Any = 1, bias: bool = False, kernel_generator: KernelGenerator | None = None,
        is_transpose: bool = False, expand_coordinates: bool = False,
        convolution_mode: ConvolutionMode = ConvolutionMode.DEFAULT, dimension: int | None = -1,
    ) -> None:
        super().__init__()
        check_member("convolution_mode", convolution_mode, ConvolutionMode)
        kernel = kernel_of(
            kernel_generator, kernel_size, stride, dilation, expand_coordinates=expand_coordinates,
            dimension=dimension,
        )
        self.is_transpose = is_transpose
        self.convolution_mode = convolution_mode
        self.use_mm = kernel.kernel_volume == 1 and kernel.requires_strided_coordinates
        shape = () if self.use_mm else (kernel.kernel_volume,)
        self._kept = weight_of(kernel, strided=not self.use_mm)
        self._make(
            kernel, (*shape, in_channels, out_channels), in_channels, out_channels, dimension, bias
        )

    @explaining_layer
    def forward(self, input: SparseTensor, coordinates: Any = None) -> SparseTensor:
        """`coordinates`: a tensor, key or matrix of the sites to go to."""
        check_dimension(self.dimension, input)
        if self.use_mm and coordinates is None:
            if self.bias is None and deferred.can_wait(input._held):
                map = ops.submanifold_map(input.sites, self.kernel_generator.window)
                later = deferred.convolved(
                    input._held, self.kernel, self._kept, self.training, map, None
                )
                if later is not None:
                    return input._with(later)
            bias = None if self.bias is None else self.bias[0]
            return input._with(torch.nn.functional.linear(input.F, self.kernel.T, bias))
        kernel = self.kernel_generator
        keeps_sites = kernel.requires_strided_coordinates and coordinates is None
        # Others begin a chain: a device computes while sites are counted.
        held = input._held if keeps_sites else input.F
        map, sites = find_map(
            input, kernel, coordinates, self.is_transpose, kernel.expand_coordinates
        )
        features = self._kept.convolve(held, self.kernel, map, self.bias, self.training)
        return SparseTensor._at(features, sites, input._manager, input._key.get_key()[1])


class _OfOneDirection(MinkowskiConvolutionBase):
    _transposed: bool

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = -1, stride: Any = 1,
        dilation: Any = 1, bias: bool = False, kernel_generator: KernelGenerator | None = None,
        expand_coordinates: bool = False,
        convolution_mode: ConvolutionMode = ConvolutionMode.DEFAULT, dimension: int | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, bias, kernel_generator,
            self._transposed, expand_coordinates, convolution_mode, dimension,
        )


class MinkowskiConvolution(_OfOneDirection):
    """Stride 1 keeps the sites; a larger one goes to every occupied coarser cell."""

    _transposed = False


class MinkowskiConvolutionTranspose(_OfOneDirection):
    """To the finer sites that the manager has, or else to all that it reaches."""

    _transposed = True


class MinkowskiGenerativeConvolutionTranspose(MinkowskiConvolutionBase):
    """To every finer site that it reaches."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = -1, stride: Any = 1,
        dilation: Any = 1, bias: bool = False, kernel_generator: KernelGenerator | None = None,
        convolution_mode: ConvolutionMode = ConvolutionMode.DEFAULT, dimension: int | None = None,
    ) -> None:
        if kernel_generator is not None:
            check_generator(kernel_generator)
            kernel_generator.expand_coordinates = True
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, bias, kernel_generator, True,
            True, convolution_mode, dimension,
        )


class MinkowskiChannelwiseConvolution(_WithKernel):
    """Each channel on its own: `kernel` [K, C] and `bias` [1, C]."""

    def __init__(
        self, in_channels: int, kernel_size: Any = -1, stride: Any = 1, dilation: Any = 1,
        bias: bool = False, kernel_generator: KernelGenerator | None = None, dimension: int = -1,
    ) -> None:
        super().__init__()
        kernel = kernel_of(kernel_generator, kernel_size, stride, dilation, dimension=dimension)
        self._kept = weight_of(kernel, strided=True)
        self._make(
            kernel, (kernel.kernel_volume, in_channels), in_channels, in_channels, dimension, bias
        )

    @explaining_layer
    def forward(self, input: SparseTensor, coords: Any = None) -> SparseTensor:
        """`coords`: a tensor, key or matrix of the sites to go to."""
        check_dimension(self.dimension, input)
        map, sites = find_map(input, self.kernel_generator, coords, False)
        weight = self._kept.turn(self.kernel[:, None])
        bias = None if self.bias is None else self.bias[0]
        features = ops.convolution(input.F, weight, map, bias, groups=self.in_channels)
        return SparseTensor._at(features, sites, input._manager, input._key.get_key()[1])
