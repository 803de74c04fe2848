"""The name under which MinkowskiEngine keeps its convolutions, and the functions behind them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .convolution import (
    MinkowskiConvolution,
    MinkowskiConvolutionBase,
    MinkowskiConvolutionTranspose,
    MinkowskiGenerativeConvolutionTranspose,
    MinkowskiModuleBase,
)
from .coordinates import CoordinateManager, CoordinateMapKey
from .enums import ConvolutionMode, RegionType
from .function import MinkowskiFunction
from .kernels import KernelGenerator
from .keyed import convolve, tensor_at
from .tensor import SparseTensor


class MinkowskiConvolutionFunction(MinkowskiFunction):
    """Of features [N, in] at a key by `kernel_weights` [K, in, out]; the sites are those of the output's key,
    or a new key, where one is given, gets those that the convolution leads to."""

    @staticmethod
    def forward(
        ctx: Any, input_features: Tensor, kernel_weights: Tensor, kernel_generator: KernelGenerator,
        convolution_mode: ConvolutionMode, in_coordinate_map_key: CoordinateMapKey,
        out_coordinate_map_key: CoordinateMapKey | None = None,
        coordinate_manager: CoordinateManager | None = None,
    ) -> Tensor:
        x = tensor_at(input_features, in_coordinate_map_key, coordinate_manager)
        return convolve(x, kernel_weights, kernel_generator, out_coordinate_map_key, transposed=False)


class MinkowskiConvolutionTransposeFunction(MinkowskiFunction):
    """The same to finer sites."""

    @staticmethod
    def forward(
        ctx: Any, input_features: Tensor, kernel_weights: Tensor, kernel_generator: KernelGenerator,
        convolution_mode: ConvolutionMode, in_coordinate_map_key: CoordinateMapKey,
        out_coordinate_map_key: CoordinateMapKey | None = None,
        coordinate_manager: CoordinateManager | None = None,
    ) -> Tensor:
        x = tensor_at(input_features, in_coordinate_map_key, coordinate_manager)
        return convolve(x, kernel_weights, kernel_generator, out_coordinate_map_key, transposed=True)


__all__ = [
    "ConvolutionMode", "CoordinateManager", "CoordinateMapKey", "KernelGenerator", "MinkowskiConvolution",
    "MinkowskiConvolutionBase", "MinkowskiConvolutionFunction", "MinkowskiConvolutionTranspose",
    "MinkowskiConvolutionTransposeFunction", "MinkowskiGenerativeConvolutionTranspose", "MinkowskiModuleBase",
    "RegionType", "SparseTensor",
]
