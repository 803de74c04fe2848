"""Devices, random sites, and dense references for all tests."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator, Sequence

os.environ.setdefault("PUMICE_PLANS", "off")  # what the user has tuned changes no test

import pytest
import torch

import pumice

NO_GPU = "no CUDA device here: the same test runs on the CPU"


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Every test that takes it runs on both."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip(NO_GPU)
    return torch.device(request.param)


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    torch.manual_seed(20)
    torch.backends.cudnn.allow_tf32 = False  # which references on a GPU would be computed in


def random_sites(
    dimension: int, extent: int, count: int, batch: int = 2, seed: int = 0
) -> torch.Tensor:
    """int32 [N, 1 + D], distinct, in no order, N at most `count`."""
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randint(0, extent, (count, dimension), generator=generator)
    items = torch.randint(0, batch, (count, 1), generator=generator)
    distinct = torch.unique(torch.cat([items, cells], 1), dim=0).to(torch.int32)
    return distinct[torch.randperm(len(distinct), generator=generator)]


def random_tensor(
    dimension: int = 3,
    extent: int = 9,
    count: int = 300,
    channels: int = 4,
    batch: int = 2,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
    seed: int = 0,
) -> pumice.SparseTensor:
    """Features that want gradients, in a grid of `extent` cells an axis."""
    cells = random_sites(dimension, extent, count, batch, seed).to(device)
    features = torch.randn(len(cells), channels, dtype=dtype).to(device).requires_grad_()
    return pumice.SparseTensor(
        cells, features, spatial_shape=[extent] * dimension, batch_size=batch
    )


def dense_of(x: pumice.SparseTensor, extent: int) -> torch.Tensor:
    """[B, C, extent…] with PyTorch's own indexing."""
    cells = x.indices.long()
    grid = x.features.new_zeros(
        (x.batch_size, *[extent] * x.dimension, x.features.shape[1])
    )
    grid = grid.index_put(tuple(cells.unbind(1)), x.features)
    return grid.movedim(-1, 1)


def at_sites(dense: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """[N, C] of [B, C, extent…]"""
    return dense.movedim(1, -1)[tuple(indices.long().unbind(1))]


def working_type(device: torch.device) -> torch.dtype:
    """What a GPU computes in at best; the CPU computes in float64 too."""
    return torch.float32 if device.type == "cuda" else torch.float64


def close(left: torch.Tensor, right: torch.Tensor, sums: int = 1) -> None:
    """Equal up to the rounding of `sums` products in either order."""
    bound = {torch.float64: 1e-12, torch.float32: 2e-6}[left.dtype] * max(1, sums) ** 0.5
    scale = max(1.0, right.abs().max().item()) if right.numel() else 1.0
    torch.testing.assert_close(left, right, rtol=0, atol=bound * scale * 4)


def agree(
    y: torch.Tensor, expected: torch.Tensor, wanted: Sequence[torch.Tensor], sums: int
) -> None:
    """`y`, sums of `sums` products each, is `expected`; and so are the gradients to all of `wanted` of
    a weighted sum, in which every output counts differently."""
    close(y, expected, sums)
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype, device=y.device).reshape(y.shape)
    mine = torch.autograd.grad((y * weights).sum(), wanted)
    theirs = torch.autograd.grad((expected * weights).sum(), wanted)
    for left, right, of in zip(mine, theirs, wanted, strict=True):
        assert left.shape == of.shape
        close(left, right, 1000)


@pytest.fixture
def process_group(device: torch.device, tmp_path: pathlib.Path) -> Iterator[None]:
    """Of this process alone, for what adds up over processes."""
    if not torch.distributed.is_available():
        pytest.skip("PyTorch was built without torch.distributed")
    backend = "gloo" if device.type == "cpu" else "nccl"
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()
