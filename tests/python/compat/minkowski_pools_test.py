"""MinkowskiEngine's pools: which cells a window holds, also where kernel and stride are alike; sums on the way back."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from conftest import random_sites, working_type

from pumice.compat import minkowski as ME
from pumice.compat.minkowski.pooling import MinkowskiPoolingBase

REDUCED = {"Sum": lambda f: f.sum(0), "Avg": lambda f: f.mean(0), "Max": lambda f: f.amax(0)}
WINDOWS = [(2, 2), (3, 3), (4, 4), (5, 5), (3, 2), (2, 3), (5, 3), ([3, 2], [3, 2]), ([3, 2], [2, 3]), ([1, 3], [1, 3])]


def tensor(device: torch.device, rows: int, stride: Any = 1, seed: int = 0) -> ME.SparseTensor:
    cells = random_sites(2, 14, rows, seed=seed).to(device)
    cells[:, 1:] = (cells[:, 1:] - 6) * torch.tensor(stride, device=device).int()
    features = torch.randn(len(cells), 2, dtype=working_type(device)).to(device).requires_grad_()
    return ME.SparseTensor(features, cells, tensor_stride=stride)


def pairs(fine: list[Any], coarse: list[Any], size: list[int], steps: list[int], dilation: int) -> list[tuple[int, int]]:
    """(row of `fine`, row of `coarse`) of each two that a window joins: one as large as its stride holds the cells from the
    coarse one on; else odd axes are centred, and even ones begin at it."""
    row = {tuple(cell): at for at, cell in enumerate(fine)}
    found = []
    for at, (item, *cell) in enumerate(coarse):
        axes = [range(k) if size == steps else range(-(k // 2) * dilation, k // 2 * dilation + 1, dilation) if k % 2
                else range(0, k * dilation, dilation) for k in size]  # fmt: skip
        for offset in itertools.product(*axes):
            near = (item, *(c + o for c, o in zip(cell, offset)))
            if near in row:
                found.append((row[near], at))
    return found


def listed(value: Any) -> list[int]:
    return list(value) if isinstance(value, list) else [value] * 2


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("kind", REDUCED)
@pytest.mark.parametrize("rows", [1, 31, 120])
@pytest.mark.parametrize("dilation", [1, 2])
def test_pools_reduce_what_their_window_holds(
    device: torch.device, rows: int, kind: str, window: tuple[Any, Any], dilation: int
) -> None:
    x = tensor(device, rows)
    y = getattr(ME, f"Minkowski{kind}Pooling")(*window, dilation, dimension=2)(x)
    near = pairs(x.C.tolist(), y.C.tolist(), listed(window[0]), listed(window[1]), dilation)
    for row, found in enumerate(y.F):
        own = [fine for fine, coarse in near if coarse == row]
        expected = REDUCED[kind](x.F[own]) if own else torch.zeros_like(found)
        torch.testing.assert_close(found, expected)
    if listed(window[0]) == listed(window[1]):  # every point is in one window
        assert sorted(fine for fine, _ in near) == list(range(len(x)))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("given", ["there", "coordinates"])
def test_the_way_back_sums_the_coarse_ones_that_reach_a_site(
    device: torch.device, given: str, window: tuple[Any, Any]
) -> None:
    x = tensor(device, 60)
    coarse = ME.MinkowskiSumPooling(*window, dimension=2)(x)
    back = ME.MinkowskiPoolingTranspose(*window, dimension=2)
    target = x if given == "there" else tensor(device, 40, seed=1)
    y = back(coarse) if given == "there" else back(coarse, coordinates=target.C)
    near = pairs(target.C.tolist(), coarse.C.tolist(), listed(window[0]), listed(window[1]), 1)
    expected = torch.zeros_like(y.F)
    for fine, row in near:
        expected[fine] += coarse.F[row].detach()
    assert torch.equal(y.C, target.C)
    torch.testing.assert_close(y.F, expected)
    weights = torch.randn_like(y.F)
    inner = torch.autograd.grad((y.F * weights).sum(), coarse.F)[0]
    wanted = torch.zeros_like(inner)
    for fine, row in near:
        wanted[row] += weights[fine]
    torch.testing.assert_close(inner, wanted)


def test_a_mode_says_nothing_of_the_way_back(device: torch.device) -> None:
    x = tensor(device, 30)
    coarse = ME.MinkowskiSumPooling(2, 2, dimension=2)(x)
    results = [
        MinkowskiPoolingBase(3, 2, is_transpose=True, pooling_mode=mode, dimension=2)(coarse).F
        for mode in (ME.PoolingMode.LOCAL_SUM_POOLING, ME.PoolingMode.LOCAL_AVG_POOLING, ME.PoolingMode.LOCAL_MAX_POOLING)
    ]
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
    key = x.coordinate_map_key
    kernel = ME.KernelGenerator(3, 2, dimension=2)
    by_hand = ME.MinkowskiLocalPoolingTransposeFunction.apply(
        coarse.F, ME.PoolingMode.LOCAL_AVG_POOLING, kernel, coarse.coordinate_map_key, key, x.coordinate_manager
    )
    assert torch.equal(by_hand, results[0])


@pytest.mark.parametrize("region", [ME.RegionType.HYPER_CUBE, ME.RegionType.HYPER_CROSS])
def test_pools_agree_with_the_kernel_map_of_a_pool(device: torch.device, region: Any) -> None:
    x = tensor(device, 50)
    generator = ME.KernelGenerator(3, 3, region_type=region, dimension=2)
    y = ME.MinkowskiSumPooling(3, 3, kernel_generator=generator, dimension=2)(x)
    maps = x.coordinate_manager.kernel_map(
        x.coordinate_map_key, y.coordinate_map_key, stride=3, kernel_size=3, region_type=region, is_pool=True
    )
    expected = torch.zeros_like(y.F)
    for rows_in, rows_out in maps.values():
        expected = expected.index_add(0, rows_out.long(), x.F[rows_in.long()])
    torch.testing.assert_close(y.F, expected)
