"""The interface of `spconv.pytorch`, computed by Pumice."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from ..core import AlgoHint, ConvAlgo
from . import (
    constants,
    conv,
    core,
    cppcore,
    functional,
    hash,
    identity,
    modules,
    ops,
    planned,
    pool,
    spatial,
    tables,
    utils,
)
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
from .spatial import RemoveDuplicate
from .tables import AddTable, AddTableMisaligned, ConcatTable, JoinTable


class ToDense(SparseModule):
    """[batch_size, C, shape…]"""

    def forward(self, x: SparseConvTensor) -> torch.Tensor:
        self._check_sparse(x)
        return x.dense()


class RemoveGrid(SparseModule):
    """Forgets a grid that was allocated ahead, which nothing here uses."""

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        self._check_sparse(x)
        x.grid = None
        return x


# Without `constants`, `core` and `utils`, which lie beside this package under the same names.
__all__ = [
    *(name for name in dir() if name[0].isupper() and name != "Any"),
    "assign_name_for_sparse_modules",
    "conv",
    "cppcore",
    "functional",
    "hash",
    "identity",
    "modules",
    "ops",
    "pool",
    "spatial",
    "tables",
]

_MISSING = ("interpreter", "quantization")


def __getattr__(name: str) -> Any:
    if name in _MISSING:
        importlib.import_module(f"{__name__}.{name}")  # says why it is not there
    raise AttributeError(f"module 'spconv.pytorch' (pumice.compat.spconv) has no {name!r}")
