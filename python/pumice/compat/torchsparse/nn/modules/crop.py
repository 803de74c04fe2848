"""Cropping as a module."""

from __future__ import annotations

from typing import Any

import torch

from .. import functional as F
from ...tensor import SparseTensor, explaining_layer


class SparseCrop(torch.nn.Module):
    """The rows from coords_min up to, but without, coords_max."""

    def __init__(self, coords_min: Any = None, coords_max: Any = None) -> None:
        super().__init__()
        self.coords_min, self.coords_max = coords_min, coords_max

    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        return F.spcrop(input, self.coords_min, self.coords_max)
