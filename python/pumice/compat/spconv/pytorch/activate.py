"""What a convolution layer may apply to its sums."""

from __future__ import annotations

import torch
from torch import Tensor

from .... import _C
from ..cumm.tensorview.gemm import Activation


def activate(features: Tensor, kind: Activation, alpha: float) -> Tensor:
    """Element by element; `alpha` is the slope of a leaky ReLU below 0."""
    if kind is Activation.ReLU:
        return torch.relu(features)
    if kind is Activation.Sigmoid:
        return torch.sigmoid(features)
    if kind is Activation.LeakyReLU:
        return torch.nn.functional.leaky_relu(features, alpha)
    raise _C.UserError(f"act_type = {kind}: there are None_, ReLU, Sigmoid and LeakyReLU")
