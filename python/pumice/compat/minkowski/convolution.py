"""Convolution layers, with MinkowskiEngine's parameters."""

from __future__ import annotations

import math
from typing import Any

import torch

from ... import _C, ops
from ..foreign import ForeignWeight
from .kernels import CrossWeight, KernelGenerator, find_map
from .enums import RegionType
from .tensor import SparseTensor, sites_given


class MinkowskiModuleBase(torch.nn.Module):
    pass


class MinkowskiConvolutionBase(MinkowskiModuleBase):
    """`kernel` [K, in, out], or [in, out] of one offset and stride 1, and `bias` [1, out]."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = -1, stride: Any = 1,
        dilation: Any = 1, bias: bool = False, kernel_generator: KernelGenerator | None = None,
        is_transpose: bool = False, expand_coordinates: bool = False, dimension: int = -1,
    ) -> None:
        super().__init__()
        kernel = kernel_generator or KernelGenerator(
            kernel_size, stride, dilation, expand_coordinates=expand_coordinates, dimension=dimension
        )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.is_transpose, self.dimension = is_transpose, dimension
        self.kernel_generator = kernel
        self.use_mm = kernel.kernel_volume == 1 and kernel.requires_strided_coordinates
        shape = (in_channels, out_channels)
        if not self.use_mm:
            shape = (kernel.kernel_volume, *shape)
        self.kernel = torch.nn.Parameter(torch.empty(shape))
        self.bias = torch.nn.Parameter(torch.empty(1, out_channels)) if bias else None
        if kernel.region_type is RegionType.HYPER_CROSS:
            self._kept: ForeignWeight = CrossWeight(kernel.kernel_size, kernel.window)
        else:
            self._kept = ForeignWeight("minkowski", kernel.kernel_size, not self.use_mm)
        self.reset_parameters(is_transpose)

    def reset_parameters(self, is_transpose: bool = False) -> None:
        """Uniform in ±1 / sqrt(K · channels), of the output where it is transposed."""
        channels = self.out_channels if is_transpose else self.in_channels
        bound = 1 / math.sqrt(channels * self.kernel_generator.kernel_volume)
        for parameter in self.parameters(recurse=False):
            torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input: SparseTensor, coordinates: Any = None) -> SparseTensor:
        """`coordinates`: a tensor, key or matrix of the sites to go to."""
        if input.D != self.dimension:
            raise _C.UserError(f"the layer has dimension {self.dimension}, and its input {input.D}")
        if self.use_mm and coordinates is None:
            bias = None if self.bias is None else self.bias[0]
            return input._with(torch.nn.functional.linear(input.F, self.kernel.T, bias))
        given = self._given(input, coordinates)
        kernel = self.kernel_generator
        map, sites = find_map(input, kernel, given, self.is_transpose, kernel.expand_coordinates)
        features = self._kept.convolve(input.F, self.kernel, map, self.bias, self.training)
        return SparseTensor._at(features, sites, input._manager, input._key.get_key()[1])

    def _given(self, input: SparseTensor, coordinates: Any) -> Any:
        if coordinates is None:
            return None
        steps = self.kernel_generator.kernel_stride
        if self.is_transpose:
            stride = [max(1, s // step) for s, step in zip(input.tensor_stride, steps)]
        else:
            stride = [s * step for s, step in zip(input.tensor_stride, steps)]
        return sites_given(coordinates, input._manager, stride)

    def extra_repr(self) -> str:
        kernel = self.kernel_generator
        return (
            f"in={self.in_channels}, out={self.out_channels}, kernel_size={kernel.kernel_size}, "
            f"stride={kernel.kernel_stride}, dilation={kernel.kernel_dilation}"
        )


class MinkowskiConvolution(MinkowskiConvolutionBase):
    """Stride 1 keeps the sites; a larger one goes to every occupied coarser cell."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = -1, stride: Any = 1,
        dilation: Any = 1, bias: bool = False, kernel_generator: KernelGenerator | None = None,
        expand_coordinates: bool = False, convolution_mode: Any = None, dimension: int = -1,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, bias, kernel_generator, False,
            expand_coordinates, dimension,
        )


class MinkowskiConvolutionTranspose(MinkowskiConvolutionBase):
    """To the finer sites that the manager has, or else to all that it reaches."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = -1, stride: Any = 1,
        dilation: Any = 1, bias: bool = False, kernel_generator: KernelGenerator | None = None,
        expand_coordinates: bool = False, convolution_mode: Any = None, dimension: int = -1,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, bias, kernel_generator, True,
            expand_coordinates, dimension,
        )


class MinkowskiGenerativeConvolutionTranspose(MinkowskiConvolutionBase):
    """To every finer site that it reaches."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any = -1, stride: Any = 1,
        dilation: Any = 1, bias: bool = False, kernel_generator: KernelGenerator | None = None,
        convolution_mode: Any = None, dimension: int = -1,
    ) -> None:
        if kernel_generator is not None:
            kernel_generator.expand_coordinates = True
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, bias, kernel_generator, True,
            True, dimension,
        )


class MinkowskiChannelwiseConvolution(MinkowskiModuleBase):
    """Each channel on its own: `kernel` [K, C] and `bias` [1, C]."""

    def __init__(
        self, in_channels: int, kernel_size: Any = -1, stride: Any = 1, dilation: Any = 1,
        bias: bool = False, kernel_generator: KernelGenerator | None = None, dimension: int = -1,
    ) -> None:
        super().__init__()
        kernel = kernel_generator or KernelGenerator(kernel_size, stride, dilation, dimension=dimension)
        self.in_channels = self.out_channels = in_channels
        self.dimension, self.kernel_generator = dimension, kernel
        self.kernel = torch.nn.Parameter(torch.empty(kernel.kernel_volume, in_channels))
        self.bias = torch.nn.Parameter(torch.empty(1, in_channels)) if bias else None
        if kernel.region_type is RegionType.HYPER_CROSS:
            self._kept: ForeignWeight = CrossWeight(kernel.kernel_size, kernel.window)
        else:
            self._kept = ForeignWeight("minkowski", kernel.kernel_size, True)
        bound = 1 / math.sqrt(kernel.kernel_volume * in_channels)
        for parameter in self.parameters(recurse=False):
            torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input: SparseTensor, coordinates: Any = None) -> SparseTensor:
        given = MinkowskiConvolutionBase._given(self, input, coordinates)  # type: ignore[arg-type]
        map, sites = find_map(input, self.kernel_generator, given, False)
        weight = self._kept.turn(self.kernel[:, None])
        bias = None if self.bias is None else self.bias[0]
        features = ops.convolution(input.F, weight, map, bias, groups=self.in_channels)
        return SparseTensor._at(features, sites, input._manager, input._key.get_key()[1])

    is_transpose = False
