"""Views from above, in both orders of columns: against loops over sites."""

from __future__ import annotations

import pytest
import torch
from conftest import agree, random_sites, working_type
from torchsparse_state import switches

import pumice
from pumice.compat.torchsparse import SparseTensor
from pumice.compat.torchsparse import nn as spnn

SHAPE = (7, 8, 9)
STRIDE = 2  # of the tensor, so that cells of the finest level are twice those


def tensor(release: str, device: torch.device, count: int = 150) -> tuple[SparseTensor, torch.Tensor]:
    """And its cells [N, 4], batch index first, in cells of the tensor."""
    cells = random_sites(3, 6, count).to(device)
    rows = torch.randn(len(cells), 3, dtype=working_type(device)).to(device).requires_grad_()
    coords = cells
    if release != "2.1":
        coords = (cells * cells.new_tensor([1, STRIDE, STRIDE, STRIDE]))[:, [1, 2, 3, 0]]
    return SparseTensor(rows, coords, STRIDE), cells


def sites_of(y: SparseTensor, release: str) -> list[list[int]]:
    """[N, 4], batch index first, in cells of the tensor."""
    if release == "2.1":
        return y.coords.tolist()
    coords = y.coords[:, [3, 0, 1, 2]]
    return (coords // coords.new_tensor([1, *y.stride])).tolist()


@pytest.fixture(params=["1.4", "2.1"])
def release(request: pytest.FixtureRequest):
    with switches(request.param):
        yield request.param


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_dense_through_a_weight_of_each_height(
    device: torch.device, release: str, dim: int, bias: bool
) -> None:
    x, cells = tensor(release, device)
    layer = spnn.ToDenseBEVConvolution(3, 4, SHAPE, dim=dim, bias=bias).to(device, x.feats.dtype)
    if bias:
        torch.nn.init.normal_(layer.bias)
    others = [axis for axis in range(3) if axis != dim]
    expected = x.feats.new_zeros((2, 4, *(SHAPE[axis] for axis in others)))
    weight = torch.stack([layer.kernel[cell[1 + dim]] for cell in cells.tolist()])
    rows = (x.feats[:, None] @ weight)[:, 0] + layer.bias
    places = tuple(cells[:, [0, *(1 + axis for axis in others)]].long().unbind(1))
    expected = expected.movedim(1, -1).index_put(places, rows, accumulate=True).movedim(-1, 1)
    assert layer(x).shape == expected.shape and layer(x).is_contiguous()
    agree(layer(x), expected, (x.feats, *layer.parameters()), 100)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_height_into_channels(device: torch.device, release: str, dim: int) -> None:
    """From an offset on, which is in cells of the finest level before 2.1; what is below joins the first."""
    x, cells = tensor(release, device)
    offset = torch.tensor([-1, -1, -1])
    offset[dim] = 2
    layer = spnn.ToBEVHeightCompression(
        3, SHAPE, (offset * (1 if release == "2.1" else STRIDE)).tolist(), dim
    ).to(device)
    others = [axis for axis in range(3) if axis != dim]
    dense = x.feats.new_zeros((2, *(SHAPE[axis] for axis in others), SHAPE[dim], 3))
    moved = cells[:, 1:] - offset.to(cells)
    height = moved[:, dim].clamp_min(0)
    places = (cells[:, 0].long(), *(moved[:, axis].long() for axis in others), height.long())
    dense = dense.index_put(places, x.feats, accumulate=True)
    agree(layer(x), dense.flatten(3).movedim(-1, 1), (x.feats,), 3)
    assert set(layer.state_dict()) == {"offset", "shape"} and layer.offset.shape == (1, 4)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_sparse_through_a_weight_of_each_height(
    device: torch.device, release: str, dim: int, stride: int
) -> None:
    x, cells = tensor(release, device)
    layer = spnn.ToBEVConvolution(3, 4, SHAPE[dim], stride, dim, bias=True).to(device, x.feats.dtype)
    torch.nn.init.normal_(layer.bias)
    y = layer(x)
    assert y.stride == (STRIDE * stride,) * 3
    sums: dict[tuple[int, ...], torch.Tensor] = {}
    for row, (item, *cell) in enumerate(cells.tolist()):
        height = cell[dim]
        place = [c // stride for c in cell]
        place[dim] = 0
        value = x.feats[row] @ layer.kernel[height] + layer.bias[0]
        sums[(item, *place)] = sums.get((item, *place), 0) + value
    sites = sites_of(y, release)
    assert sorted(sums) == sorted(map(tuple, sites)) and len(sums) == len(y)
    expected = torch.stack([sums[tuple(site)] for site in sites])
    agree(y.feats, expected, (x.feats, *layer.parameters()), 100)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_means_of_columns(device: torch.device, release: str, dim: int) -> None:
    x, cells = tensor(release, device)
    y = spnn.ToBEVReduction(dim)(x)
    below = cells.clone()
    below[:, 1 + dim] = 0
    expected = []
    sites = sites_of(y, release)
    for site in sites:
        expected.append(x.feats[(below == below.new_tensor(site)).all(1)].mean(0))
    assert len(sites) == len(below.unique(dim=0)) and torch.equal(y.coords, y.coords.unique(dim=0))
    agree(y.feats, torch.stack(expected), (x.feats,), 10)


def test_sizes_and_what_does_not_fit(device: torch.device, release: str) -> None:
    for count in (0, 1):
        x, _ = tensor(release, device, count)
        layer = spnn.ToDenseBEVConvolution(3, 4, SHAPE).to(device, x.feats.dtype)
        grid = layer(x)
        assert grid.shape[1:] == (4, 7, 9)
        items = x.coords[:, 0 if release == "2.1" else 3].tolist()
        assert len(grid) == (items[0] + 1 if items else 0)
        assert len(spnn.ToBEVReduction()(x)) == count
    x, _ = tensor(release, device)
    with pytest.raises(pumice.UserError, match="sites are outside of heights 0 to 3 on axis 1"):
        spnn.ToBEVConvolution(3, 4, 4).to(device, x.feats.dtype)(x)
    with pytest.raises(pumice.UserError, match=r"sites are outside of the grid of \[3, 9\] cells"):
        spnn.ToDenseBEVConvolution(3, 4, (3, 8, 9)).to(device, x.feats.dtype)(x)
    with pytest.raises(pumice.UserError, match="give the cells of x, y and z"):
        spnn.ToBEVHeightCompression(3, (4, 4))
    assert "in_channels=3, out_channels=4, n_kernels=5, stride=1" in repr(spnn.ToBEVConvolution(3, 4, 5))


VIEWS = {
    "ToBEVReduction": lambda dim: spnn.ToBEVReduction(dim),
    "ToBEVConvolution": lambda dim: spnn.ToBEVConvolution(3, 4, 7, dim=dim),
    "ToDenseBEVConvolution": lambda dim: spnn.ToDenseBEVConvolution(3, 4, SHAPE, dim=dim),
    "ToBEVHeightCompression": lambda dim: spnn.ToBEVHeightCompression(3, SHAPE, dim=dim),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dim", [-1, 3, 1.5, None])
def test_an_axis_that_is_none_of_x_y_z(view: str, dim: object) -> None:
    with pytest.raises(pumice.UserError, match=f"^{view}: dim = {dim}: give 0, 1 or 2, which are x, y and z"):
        VIEWS[view](dim)
