"""The sites of strided convolutions before TorchSparse 2.1, as `spdownsample` of 1.4 and 2.0 defines them: multiples of
the new stride that an offset of the kernel leads to from a row, and none below the lowest coordinate of the batch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from conftest import random_sites, working_type
from torchsparse_state import switches

import pumice
from pumice.compat.torchsparse import SparseTensor
from pumice.compat.torchsparse import nn as spnn
from pumice.compat.torchsparse.nn import functional as F
from pumice.compat.torchsparse.utils.utils import make_ntuple

SIZES = [
    (3, 2), (5, 2), (4, 2), (6, 3), (2, 3), (5, 3), ((3, 1, 3), (2, 1, 2)), ((4, 3, 2), (2, 2, 2)),
    ((3, 3, 2), (1, 2, 2)), (2, 2), (3, 3), ((3, 2, 1), (1, 2, 1)),
]  # fmt: skip
Axes = tuple[int, int, int]


def offsets(size: Axes, last: list[int]) -> list[Axes]:
    axes = [range(end - k + 1, end + 1) for k, end in zip(size, last)]
    if np.prod(size) % 2 == 1:  # the first axis fastest
        return [(x, y, z) for z, y, x in itertools.product(*reversed(axes))]
    return list(itertools.product(*axes))


def expected_sites(release: str, coords: np.ndarray, size: Axes, stride: Axes, before: int, border: bool) -> np.ndarray:
    """coords and results [N, 4]: x, y, z, batch index, in cells of the finest level; `before`: their stride."""
    step = before * np.array(stride)
    if all(s in (1, k) for k, s in zip(size, stride)):
        made = np.concatenate([coords[:, :3] // step * step, coords[:, 3:]], 1)
    else:
        last = [k - 1 if release == "2.0" and k % 2 == 0 else k // 2 for k in size]
        made = np.concatenate([coords + before * np.array([*offset, 0]) for offset in offsets(size, last)])
        kept = made[:, :3] % step == 0
        if border:
            kept &= made[:, :3] >= coords[:, :3].min(0)
        made = made[kept.all(1)]
    return np.unique(made[:, [3, 0, 1, 2]], axis=0)[:, [1, 2, 3, 0]]


def tensor(device: torch.device, count: int = 40, low: int = -5, extent: int = 11) -> SparseTensor:
    """Whose lowest coordinates differ by batch item."""
    cells = random_sites(3, extent, count).to(device)
    cells[:, 1:] += low + 3 * cells[:, :1]
    rows = torch.randn(len(cells), 3, dtype=working_type(device), device=device)
    return SparseTensor(rows, cells[:, [1, 2, 3, 0]])


@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("release", ["1.4", "2.0"])
@pytest.mark.parametrize("size, stride", SIZES)
def test_sites_and_sums_are_those_of_the_release(
    device: torch.device, size: object, stride: object, release: str, border: bool
) -> None:
    """On two levels: the lowest coordinate is that of each level's own sites."""
    with switches(release, border):
        x, before = tensor(device), 1
        sizes, steps = make_ntuple(size, 3), make_ntuple(stride, 3)
        for _ in range(2 if len(set(steps)) == 1 else 1):
            layer = spnn.Conv3d(3, 3, size, stride).to(device, working_type(device))
            y = layer(x)
            sites = expected_sites(release, x.coords.cpu().numpy(), sizes, steps, before, border)
            assert y.coords.tolist() == sites.tolist()
            rows = {tuple(cell): row for row, cell in enumerate(x.coords.tolist())}
            kernels = list(zip(offsets(sizes, [k // 2 for k in sizes]), layer.kernel.reshape(-1, 3, 3)))
            for number, (*cell, item) in list(enumerate(sites.tolist()))[::7]:
                total = torch.zeros(3, dtype=y.feats.dtype, device=device)
                for offset, kernel in kernels:
                    row = rows.get((*(c + before * o for c, o in zip(cell, offset)), item))
                    total = total if row is None else total + x.feats[row] @ kernel
                torch.testing.assert_close(y.feats[number], total, rtol=1e-4, atol=1e-5)
            x, before = y, before * steps[0]


@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("release", ["1.4", "2.0"])
@pytest.mark.parametrize("size, stride", SIZES)
def test_spdownsample(device: torch.device, size: object, stride: object, release: str, border: bool) -> None:
    with switches(release, border):
        for before in (1, 2):
            cells = tensor(device).coords
            cells[:, :3] *= before
            made = F.spdownsample(coords=cells, stride=stride, kernel_size=size, tensor_stride=before)
            axes = make_ntuple(size, 3), make_ntuple(stride, 3)
            assert made.tolist() == expected_sites(release, cells.cpu().numpy(), *axes, before, border).tolist()


def test_the_border_is_chosen_and_can_be_chosen_later(device: torch.device) -> None:
    """A scan that begins at an odd cell: without the border a cell is made below it."""
    cells = torch.tensor([[1, 1, 1, 0], [2, 2, 2, 0]], dtype=torch.int32, device=device)
    with switches("1.4"):
        layer = spnn.Conv3d(1, 1, 3, 2).to(device)
        x = SparseTensor(torch.ones(2, 1, device=device), cells)
        assert layer(x).coords[0].tolist() == [0, 0, 0, 0] and len(layer(x)) == 8
        pumice.compat.torchsparse.use_border()
        assert layer(x).coords.tolist() == [[2, 2, 2, 0]]


def test_back_from_sites_that_are_cut(device: torch.device) -> None:
    """Rows that no site is left for come back as zero."""
    with switches("1.4", border=True):
        cells = torch.tensor([[1, 1, 1, 0], [3, 3, 3, 0]], dtype=torch.int32, device=device)
        x = SparseTensor(torch.ones(2, 1, device=device), cells)
        down = spnn.Conv3d(1, 1, 3, 4).to(device)
        up = spnn.Conv3d(1, 1, 3, 4, transposed=True).to(device)
        y = down(x)
        back = up(y)
        assert y.coords.tolist() == [[4, 4, 4, 0]] and back.coords is x.coords
        assert back.feats[0].item() == 0
        torch.testing.assert_close(back.feats[1], y.feats[0] @ up.kernel[0])


def test_nothing_and_nothing_left(device: torch.device) -> None:
    with switches("2.0", border=True):
        layer = spnn.Conv3d(1, 2, 3, (4, 4, 4)).to(device)
        for rows in (0, 1):
            cells = torch.ones(rows, 4, dtype=torch.int32, device=device) * 2
            y = layer(SparseTensor(torch.ones(rows, 1, device=device), cells))
            assert y.coords.shape == (0, 4) and y.feats.shape == (0, 2)


def test_names_of_arguments_before_2_1() -> None:
    with switches("2.0"):
        cells = tensor(torch.device("cpu")).coords
        assert torch.equal(F.spdownsample(coords=cells), F.spdownsample(cells, 2, 2, 1))
        with pytest.raises(pumice.UserError, match="_coords is no argument before TorchSparse 2.1"):
            F.spdownsample(_coords=cells)
        with pytest.raises(pumice.UserError, match="data_loader has no items"):
            pumice.compat.torchsparse.tune(
                spnn.ReLU(), [], 1, lambda data: data, False, "hashmap", save_dir="folder", tune_id="one"
            )
