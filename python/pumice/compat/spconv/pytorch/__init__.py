"""The interface of `spconv.pytorch`, computed by Pumice."""

from __future__ import annotations

from typing import Any

import torch

from ..core import AlgoHint, ConvAlgo
from . import conv, core, functional, hash, identity, modules, ops, pool, tables, utils
from .conv import *  # noqa: F403
from .core import SparseConvTensor
from .identity import Identity
from .modules import (
    SparseBatchNorm,
    SparseIdentity,
    SparseModule,
    SparseReLU,
    SparseSequential,
    SparseSyncBatchNorm,
    assign_name_for_sparse_modules,
)
from .pool import (
    SparseAvgPool1d,
    SparseAvgPool2d,
    SparseAvgPool3d,
    SparseAvgPool4d,
    SparseGlobalAvgPool,
    SparseGlobalMaxPool,
    SparseMaxPool1d,
    SparseMaxPool2d,
    SparseMaxPool3d,
    SparseMaxPool4d,
)
from .tables import AddTable, AddTableMisaligned, ConcatTable, JoinTable


class ToDense(SparseModule):
    """[batch_size, C, shape…]"""

    def forward(self, x: SparseConvTensor) -> torch.Tensor:
        return x.dense()


class RemoveGrid(SparseModule):
    """Forgets a grid that was allocated ahead, which nothing here uses."""

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        x.grid = None
        return x


class RemoveDuplicate(SparseModule):
    """The first row of each site that occurs more than once, in order of the sites."""

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        _, row_of = torch.unique(x.indices, dim=0, return_inverse=True)
        rows = torch.arange(len(row_of), device=row_of.device)
        count = int(row_of.max()) + 1 if len(row_of) else 0
        first = rows.new_full((count,), len(row_of)).scatter_reduce(0, row_of, rows, "amin")
        return x.select_by_index(first)


# Without `core` and `utils`, which lie beside this package under the same names.
__all__ = [
    *(name for name in dir() if name[0].isupper() and name != "Any"),
    "assign_name_for_sparse_modules",
    "conv",
    "functional",
    "hash",
    "identity",
    "modules",
    "ops",
    "pool",
    "tables",
]

_MISSING = {
    "quantization": "int8 layers and their calibration",
    "cppcore": "spconv's own bridge to C++",
    "interpreter": "the conversion of torch.fx graphs to TensorRT",
}


def __getattr__(name: str) -> Any:
    if name in _MISSING:
        raise ImportError(f"spconv.pytorch.{name} ({_MISSING[name]}) is not there in pumice.compat")
    raise AttributeError(f"module 'spconv.pytorch' (pumice.compat.spconv) has no {name!r}")
