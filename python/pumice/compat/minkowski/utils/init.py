"""Initialisation of kernels."""

from __future__ import annotations

import math
from typing import Any

import torch


def kaiming_normal_(
    tensor: torch.Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Any:
    """Of a kernel [K, in, out] or [in, out]."""
    fan = tensor.shape[-2 if mode == "fan_in" else -1] * (tensor.shape[0] if tensor.dim() == 3 else 1)
    gain = torch.nn.init.calculate_gain(nonlinearity, a)
    with torch.no_grad():
        return tensor.normal_(0, gain / math.sqrt(fan))
