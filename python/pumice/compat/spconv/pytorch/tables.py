"""Bringing branches together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import functional
from .core import SparseConvTensor, check_same_sites
from .windowed import SparseModule


class JoinTable(SparseModule):
    """Channels side by side, on the same sites."""

    def forward(self, input: Sequence[SparseConvTensor]) -> SparseConvTensor:
        check_same_sites(type(self).__name__, input)
        return input[0].replace_feature(torch.cat([x.features for x in input], 1))

    def input_spatial_size(self, out_size: Any) -> Any:
        return out_size


class AddTable(SparseModule):
    """The sum, on the same sites."""

    def forward(self, input: Sequence[SparseConvTensor]) -> SparseConvTensor:
        check_same_sites(type(self).__name__, input)
        return input[0].replace_feature(sum(x.features for x in input))

    def input_spatial_size(self, out_size: Any) -> Any:
        return out_size


class AddTableMisaligned(SparseModule):
    """The sum on the sites of any; see functional.sparse_add."""

    def forward(self, input: Sequence[SparseConvTensor]) -> SparseConvTensor:
        return functional.sparse_add(*input)

    def input_spatial_size(self, out_size: Any) -> Any:
        return out_size


class ConcatTable(SparseModule):
    """A list of what every module makes of the input."""

    def forward(self, input: Any) -> list[Any]:
        return [module(input) for module in self._modules.values()]

    def add(self, module: torch.nn.Module) -> ConcatTable:
        self.add_module(str(len(self._modules)), module)
        return self

    def input_spatial_size(self, out_size: Any) -> Any:
        return self._modules["0"].input_spatial_size(out_size)
