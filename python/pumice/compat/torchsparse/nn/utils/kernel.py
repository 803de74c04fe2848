"""Offsets of kernels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...axis_numbers import make_ntuple


def get_kernel_offsets(
    size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    device: Any = "cpu",
) -> Tensor:
    """int32 [K, 3] in the order of a kernel's first axis: an odd number of offsets with the first axis
    fastest, an even one with the last."""
    sizes, strides, dilations = (make_ntuple(value, 3) for value in (size, stride, dilation))
    along = [
        [(r - (k - 1) // 2) * s * d for r in range(k)] for k, s, d in zip(sizes, strides, dilations)
    ]
    if sizes[0] * sizes[1] * sizes[2] % 2 == 1:
        offsets = [offset[::-1] for offset in itertools.product(*along[::-1])]
    else:
        offsets = list(itertools.product(*along))
    return torch.tensor(offsets, dtype=torch.int32, device=device)
