"""The border that TorchSparse 2.1 has without `spatial_range`: against dense convolution over the box from
0 to the last site, level by level."""

from __future__ import annotations

import pytest
import torch
from conftest import agree, at_sites, random_sites, working_type
from torchsparse_state import switches

import pumice
from pumice import _C
from pumice.compat import torchsparse
from pumice.compat.torchsparse import SparseTensor
from pumice.compat.torchsparse import nn as spnn
from pumice.compat.torchsparse.nn import functional as F

SIZES = [(2, 2, 0), (3, 2, 0), (3, 2, 1), (5, 2, 2), (5, 3, 2), (3, 3, 0), ((1, 3, 2), (2, 1, 2), 0)]


def tensor(device: torch.device, extent: int = 11, count: int = 40) -> SparseTensor:
    cells = random_sites(3, extent, count).to(device)
    rows = torch.randn(len(cells), 3, dtype=working_type(device)).to(device).requires_grad_()
    return SparseTensor(rows, cells)


def boxed(x: SparseTensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[B, C, X, Y, Z] from 0 to the last site of the batch, and where sites are."""
    extents = (x.coords.amax(0) + 1).tolist()
    places = tuple(x.coords.long().unbind(1))
    grid = x.feats.new_zeros((*extents, x.feats.shape[1])).index_put(places, x.feats)
    there = x.feats.new_zeros((*extents, 1)).index_put(places, x.feats.new_ones(len(x), 1))
    return grid.movedim(-1, 1), there.movedim(-1, 1)


def weight_of(layer: spnn.Conv3d) -> torch.Tensor:
    x, y, z = layer.kernel_size
    kernel = layer.kernel.reshape(-1, layer.in_channels, layer.out_channels)
    if layer.kernel_volume % 2 == 1:
        return kernel.reshape(z, y, x, *kernel.shape[1:]).permute(4, 3, 2, 1, 0)
    return kernel.reshape(x, y, z, *kernel.shape[1:]).permute(4, 3, 0, 1, 2)


def check(layer: spnn.Conv3d, x: SparseTensor) -> SparseTensor:
    y = layer(x)
    grid, there = boxed(x)
    options = {"stride": layer.stride, "padding": layer.padding}
    expected = torch.nn.functional.conv3d(grid, weight_of(layer), **options)
    ones = there.new_ones((1, 1, *layer.kernel_size))
    reached = torch.nn.functional.conv3d(there, ones, **options)[:, 0] > 0.5
    assert torch.equal(y.coords.unique(dim=0).long(), reached.nonzero())
    agree(y.feats, at_sites(expected, y.coords), (x.feats, layer.kernel), 400)
    return y


@pytest.mark.parametrize("size, stride, padding", SIZES)
def test_outputs_end_where_those_of_a_dense_convolution_end(
    device: torch.device, size: object, stride: object, padding: object
) -> None:
    """Twice, as the second level ends at the last site of the first."""
    with switches("2.1", border=True):
        first = spnn.Conv3d(3, 4, size, stride, padding).to(device, working_type(device))
        second = spnn.Conv3d(4, 2, size, stride, padding).to(device, working_type(device))
        y = check(first, tensor(device))
        leaf = SparseTensor(y.feats.detach().requires_grad_(), y.coords, y.stride)
        leaf._caches = y._caches
        if bool((y.coords.amax(0)[1:] + 1 + 2 * y.coords.new_tensor(second.padding)
                 >= y.coords.new_tensor(second.kernel_size)).all()):
            check(second, leaf)


def test_it_is_off_by_default(device: torch.device) -> None:
    with switches("2.1"):
        x = SparseTensor(torch.ones(2, 1, device=device), torch.tensor([[0, 0, 0, 0], [0, 4, 1, 1]], device=device))
        layer = spnn.Conv3d(1, 1, 2, 2).to(device)
        assert layer(x).coords.tolist() == [[0, 0, 0, 0], [0, 2, 0, 0]]
        torchsparse.use_border()
        x._caches = SparseTensor(x.feats, x.coords)._caches
        assert layer(x).coords.tolist() == [[0, 0, 0, 0]]


def test_what_is_beyond_the_border_comes_back_as_zero(device: torch.device) -> None:
    with switches("2.1", border=True):
        cells = torch.tensor([[0, 4, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]], device=device)
        x = SparseTensor(torch.ones(3, 2, device=device), cells)
        down, up = spnn.Conv3d(2, 2, 2, 2).to(device), spnn.Conv3d(2, 2, 2, 2, transposed=True).to(device)
        y = down(x)
        back = up(y)
        assert back.coords is x.coords and not back.feats[0].any()
        for row, offset in ((1, 0), (2, 6)):
            torch.testing.assert_close(back.feats[row], y.feats[0] @ up.kernel[offset])
        again = down(x)  # finds what the first call left out
        assert torch.equal(again.coords, y.coords) and again.sites.is_same(y.sites)


def test_a_spatial_range_is_the_border(device: torch.device) -> None:
    x = tensor(device)
    layer = spnn.Conv3d(3, 4, 3, 2).to(device, working_type(device))
    results = []
    for border in (False, True):
        with switches("2.1", border=border):
            y = layer(SparseTensor(x.feats, x.coords, spatial_range=(2, 11, 11, 11)))
            results.append((y.coords, y.feats, y.spatial_range))
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])
    assert results[1][2] == (2, 5, 5, 5)


@pytest.mark.parametrize("negative", [False, True])
def test_negative_cells(device: torch.device, negative: bool) -> None:
    """They are left out, unless they are allowed: then TorchSparse begins at the first cell minus twice
    the padding plus the kernel's reach, divided, which for a kernel of 2 leaves out half a cell."""
    cells = torch.tensor([[0, -8, 0, 0], [0, -6, 0, 0], [0, 3, 1, 1]], device=device)
    with switches("2.1", border=True):
        torchsparse.tensor.set_allow_negative_coordinates(negative)
        assert torchsparse.tensor.get_allow_negative_coordinates() is negative
        y = spnn.Conv3d(1, 1, 2, 2).to(device)(SparseTensor(torch.ones(3, 1, device=device), cells))
    expected = [[0, -3, 0, 0], [0, 1, 0, 0]] if negative else [[0, 1, 0, 0]]
    assert y.coords.unique(dim=0).tolist() == expected


def test_nothing_and_nothing_left(device: torch.device) -> None:
    with switches("2.1", border=True):
        layer = spnn.Conv3d(1, 2, 3, 2).to(device)
        for rows in (0, 1):
            cells = torch.zeros(rows, 4, dtype=torch.int32, device=device)
            y = layer(SparseTensor(torch.ones(rows, 1, device=device), cells))
            assert y.coords.shape == (0, 4) and y.feats.shape == (0, 2)


def floored(cells: torch.Tensor, stride: int) -> torch.Tensor:
    steps = cells.new_tensor([1, stride, stride, stride])
    return torch.div(cells, steps, rounding_mode="floor").unique(dim=0)


@pytest.mark.parametrize("mode, size, stride", [("spconv", 2, 2), ("spconv", 3, 3), ("minkowski", 3, 2)])
def test_maps_by_table_floor_and_have_no_border(device: torch.device, mode: str, size: int, stride: int) -> None:
    """kmap_mode = "hashmap": one output of each coarse cell, and a kernel around its centre."""
    with switches("2.1", border=True):
        config = F.conv_config.get_default_conv_config().copy()
        config.kmap_mode, config.downsample_mode = "hashmap", mode
        x = tensor(device)
        layers = [spnn.Conv3d(3, 4, size, stride, config=config), spnn.Conv3d(3, 4, size, stride)]
        layers[1].load_state_dict(layers[0].state_dict())
        y = layers[0].to(device, working_type(device))(x)
        assert torch.equal(y.coords.unique(dim=0), floored(x.coords, stride))
        rows = {tuple(cell): row for row, cell in enumerate(x.coords.tolist())}
        offsets = spnn.utils.get_kernel_offsets(size).tolist()
        for number, (item, *cell) in list(enumerate(y.coords.tolist()))[::5]:
            total = torch.zeros(4, dtype=x.feats.dtype, device=device)
            for offset, kernel in zip(offsets, layers[0].kernel):
                row = rows.get((item, *(c * stride + o for c, o in zip(cell, offset))))
                total = total if row is None else total + x.feats[row] @ kernel
            torch.testing.assert_close(y.feats[number], total, rtol=1e-4, atol=1e-5)
        F.conv_config.set_global_conv_config({"kmap_mode": "hashmap", "downsample_mode": mode})
        again = layers[1].to(device, working_type(device))(SparseTensor(x.feats, x.coords))
        assert torch.equal(again.coords, y.coords)
        torch.testing.assert_close(again.feats, y.feats)


def test_a_site_outside_of_the_spatial_range_is_named_as_its_argument(device: torch.device) -> None:
    cells = torch.tensor([[0, 1, 2, 3], [1, 0, 0, 7]], dtype=torch.int32, device=device)
    for extents, named in (((2, 4, 4, 4), r"spatial_range\[1:\]"), ((1, 8, 8, 8), r"spatial_range\[0\] = 1")):
        if device.type == "cuda":  # which says so when it is next waited for
            _ = SparseTensor(torch.ones(2, 1, device=device), cells, spatial_range=extents).sites
            with pytest.raises(pumice.UserError, match="outside the declared bounds"):
                _C.wait(str(device))
            continue
        with pytest.raises(pumice.UserError, match=named) as raised:
            _ = SparseTensor(torch.ones(2, 1, device=device), cells, spatial_range=extents).sites
        assert "spatial_shape" not in str(raised.value) and "batch_size" not in str(raised.value)
