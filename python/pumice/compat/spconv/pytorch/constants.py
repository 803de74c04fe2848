"""What code asks of PyTorch through spconv."""

from __future__ import annotations

import re

import torch

# The release of PyTorch, such as [2, 8, 0].
PYTORCH_VERSION = [int(number) for number in re.findall(r"\d+", torch.__version__)[:3]]
TORCH_HAS_AMP = True


def is_amp_enabled() -> bool:
    """Whether autocast is on for GPUs."""
    return torch.is_autocast_enabled("cuda")
