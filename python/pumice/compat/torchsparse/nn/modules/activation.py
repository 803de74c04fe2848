"""Activations as modules."""

from __future__ import annotations

import torch

from .....nn import deferred
from ...tensor import SparseTensor, explaining_layer


class ReLU(torch.nn.ReLU):
    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        later = deferred.rectified(input._held, self.inplace)
        return input._with(super().forward(input.feats) if later is None else later)


class LeakyReLU(torch.nn.LeakyReLU):
    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        return input._with(super().forward(input.feats))


class SiLU(torch.nn.SiLU):
    @explaining_layer
    def forward(self, input: SparseTensor) -> SparseTensor:
        return input._with(super().forward(input.feats))
