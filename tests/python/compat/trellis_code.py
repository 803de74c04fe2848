"""TRELLIS's sparse modules and networks, unmodified, on Pumice's interfaces or on their dense peers."""

from __future__ import annotations

import importlib
import os
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import attention_stand_in
import dense_spconv
import dense_torchsparse
import torch
from conftest import random_sites
from standing_in import bare_package, by_name, checkout, forgotten_afterwards, stand_in
from torch import Tensor

BACKENDS = ["spconv", "torchsparse"]


class Code(NamedTuple):
    """Imported modules, good inside `trellis` alone, since TRELLIS imports more as it runs."""

    sparse: types.ModuleType  # trellis.modules.sparse
    models: types.ModuleType  # trellis.models


@contextmanager
def trellis(backend: str, attention: str = "flash_attn", dense: bool = False) -> Iterator[Code]:
    """On the interface `backend`: Pumice's, or its dense peer. With TRELLIS's own assertions."""
    folder = checkout("TRELLIS")
    settings = {
        "SPARSE_BACKEND": backend, "SPARSE_ATTN_BACKEND": attention, "ATTN_BACKEND": "sdpa",
        "SPARSE_DEBUG": "1",
    }  # fmt: skip
    with forgotten_afterwards() if dense else by_name(backend), patch.dict(os.environ, settings):
        if dense:
            _install_dense_peers()
        attention_stand_in.install()
        bare_package("trellis", folder)
        _stand_in_for_representations()
        sparse = importlib.import_module("trellis.modules.sparse")
        assert (backend, attention, True) == (sparse.BACKEND, sparse.ATTN, sparse.DEBUG)
        # Of its assertions those hold for no input: they compare a torch.Size with a list, and all
        # columns of coordinates with the batch index.
        importlib.import_module("trellis.modules.sparse.attention.full_attn").DEBUG = False
        yield Code(sparse, importlib.import_module("trellis.models"))


def compared(backend: str, work: Callable[[Code], list[Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    """What `work` gives on Pumice, and on the dense peer."""
    with trellis(backend) as code:
        mine = work(code)
    with trellis(backend, dense=True) as code:
        return mine, work(code)


def _install_dense_peers() -> None:
    stand_in("spconv")
    stand_in(
        "spconv.pytorch",
        SparseConvTensor=dense_spconv.SparseConvTensor,
        SubMConv3d=dense_spconv.SubMConv3d,
        SparseConv3d=dense_spconv.SparseConv3d,
        SparseInverseConv3d=dense_spconv.SparseInverseConv3d,
    )
    stand_in("torchsparse", SparseTensor=dense_torchsparse.SparseTensor, nn=dense_torchsparse)


def _stand_in_for_representations() -> None:
    """What decoders hand their features to, which is drawn on a GPU, and is no part of sparse modules."""

    class Gaussian(types.SimpleNamespace):
        pass

    class Features2Mesh:
        feats_channels = 7

        def __init__(self, res: int, use_color: bool) -> None:
            pass

        def __call__(self, features: Any, training: bool) -> Any:
            return features

    stand_in("trellis.representations", Gaussian=Gaussian, Strivec=None, MeshExtractResult=None)
    stand_in("trellis.representations.mesh", SparseFeatures2Mesh=Features2Mesh)


def let_forward_see_spconv(sparse: types.ModuleType) -> None:
    """TRELLIS imports spconv inside __init__ alone, so that `forward`, which sorts a batch of several
    items after a strided convolution, does not find the name; and if it were there before,
    __init__ would not. To be called when all layers are made."""
    conv = importlib.import_module("trellis.modules.sparse.conv.conv_spconv")
    conv.spconv = importlib.import_module("spconv.pytorch")


def batch_of_cells(device: torch.device, extent: int, count: int, items: int = 2) -> Tensor:
    """int32 [N, 4], items one after the other, with the last cell of the grid in each."""
    cells = random_sites(3, extent, count, items)
    corner = torch.tensor([[item, *[extent - 1] * 3] for item in range(items)], dtype=torch.int32)
    cells = torch.unique(torch.cat([cells, corner]), dim=0)
    shuffled = cells[torch.randperm(len(cells), generator=torch.Generator().manual_seed(1))]
    return shuffled[shuffled[:, 0].argsort(stable=True)].to(device)


def randomise(net: torch.nn.Module) -> None:
    """Also what starts at zero, so that gradients reach everything."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in net.parameters():
            scale = 0.5 / max(1, parameter[0].numel()) ** 0.5 if parameter.dim() > 1 else 0.2
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
