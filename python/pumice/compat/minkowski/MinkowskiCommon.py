"""The name under which MinkowskiEngine keeps what its modules share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import torch

from ..foreign import PeerAssertionError
from .convolution import MinkowskiModuleBase
from .coordinates import int_list

StrideType = Union[int, Sequence[int], np.ndarray, torch.Tensor]


def convert_to_int_list(arg: Any, dimension: int) -> list[int]:
    """One number for all axes, or one each."""
    return int_list("arg", arg, dimension)


def convert_to_int_tensor(arg: Any, dimension: int) -> torch.Tensor:
    """int32 [D] of one number for all axes, or one each; such a tensor itself."""
    if isinstance(arg, torch.Tensor) and arg.dtype is torch.int32 and arg.numel() == dimension:
        return arg
    return torch.tensor(convert_to_int_list(arg, dimension), dtype=torch.int32)


def prep_args(
    tensor_stride: Any, stride: Any, kernel_size: Any, dilation: Any, region_type: Any, D: int = -1  # noqa: N803
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Every one as int32 [D], and the number of the region type."""
    if D < 1:
        raise PeerAssertionError(f"D = {D}: give at least 1")
    values = (convert_to_int_tensor(v, D) for v in (tensor_stride, stride, kernel_size, dilation))
    strides, steps, size, spread = values
    if int(size.min()) < 1:
        raise PeerAssertionError(f"kernel_size = {size.tolist()}: give at least 1")
    return strides, steps, size, spread, int(getattr(region_type, "value", region_type))


def get_postfix(tensor: torch.Tensor) -> str:
    return "GPU" if tensor.is_cuda else "CPU"


__all__ = [
    "MinkowskiModuleBase", "StrideType", "convert_to_int_list", "convert_to_int_tensor", "get_postfix",
    "prep_args",
]
