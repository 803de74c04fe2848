"""Between rows, dense grids and points between cells."""

from __future__ import annotations

import itertools

import pytest
import torch
from conftest import close, dense_of, random_tensor, working_type

import pumice


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("count", [0, 1, 300])
def test_a_birds_eye_view_is_the_dense_array_folded(
    device: torch.device, axis: int, count: int
) -> None:
    x = random_tensor(count=count, dtype=working_type(device), device=device)
    bev = pumice.nn.ToBEV(axis)(x)
    dense = dense_of(x, 9)  # [B, C, X, Y, Z]
    expected = dense.movedim(2 + axis % 3, 2).flatten(1, 2)
    assert bev.shape == (2, 4 * 9, 9, 9) and torch.equal(bev, expected)
    weights = torch.randn_like(bev)
    mine = torch.autograd.grad((bev * weights).sum(), x.features)[0]
    theirs = torch.autograd.grad((expected * weights).sum(), x.features)[0]
    assert torch.equal(mine, theirs)


def test_a_birds_eye_view_of_another_grid(device: torch.device) -> None:
    x = random_tensor(dtype=torch.float32, device=device)
    view = pumice.nn.ToBEV(shape=[4, 5, 3], low=[2, 1, 6], crop=True)
    expected = dense_of(x, 9)[:, :, 2:6, 1:6, 6:9].permute(0, 1, 4, 2, 3).flatten(1, 2)
    assert torch.equal(view(x), expected)
    if device.type == "cpu":
        with pytest.raises(pumice.UserError, match="outside the grid"):
            pumice.nn.ToBEV(shape=[4, 5, 3])(x)
    with pytest.raises(pumice.UserError, match="axes 0 to 2"):
        pumice.nn.ToBEV(3)(x)


def interpolated(x: pumice.SparseTensor, points: torch.Tensor, renormalize: bool) -> torch.Tensor:
    """Point by point, from a table of the sites."""
    row_of = {tuple(cell): row for row, cell in enumerate(x.indices.tolist())}
    result = []
    for item, *where in points.tolist():
        total, present = x.features.new_zeros(x.features.shape[1]), 0.0
        base = [int(value // 1) for value in where]
        for corner in itertools.product((0, 1), repeat=len(where)):
            weight = 1.0
            for value, low, up in zip(where, base, corner):
                weight *= value - low if up else 1 - (value - low)
            row = row_of.get((int(item), *(low + up for low, up in zip(base, corner))))
            if row is not None and weight > 0:
                total = total + weight * x.features[row]
                present += weight
        result.append(total / present if renormalize and present > 0 else total)
    return torch.stack(result)


@pytest.mark.parametrize("renormalize", [False, True])
def test_interpolation_beside_a_table(device: torch.device, renormalize: bool) -> None:
    x = random_tensor(extent=4, count=40, dtype=working_type(device), device=device)
    points = torch.rand(50, 4, dtype=working_type(device)) * 6 - 1
    points[:, 0] = torch.randint(0, 2, (50,))
    found = pumice.ops.interpolation_map(x.coords, points.to(device), renormalize=renormalize)
    assert found.rows.shape == (50, 8) and found.in_rows == len(x)
    mine = pumice.ops.interpolate(x.features, found)
    expected = interpolated(x, points, renormalize)
    close(mine, expected, 8)
    weights = torch.randn_like(mine)
    close(
        torch.autograd.grad((mine * weights).sum(), x.features)[0],
        torch.autograd.grad((expected * weights).sum(), x.features)[0],
        50,
    )


def test_interpolation_is_differentiable_twice_and_says_what_it_wants() -> None:
    x = random_tensor(extent=4, count=20, channels=2)
    points = torch.rand(6, 4, dtype=torch.float64) * 3
    points[:, 0] = 1
    found = pumice.ops.interpolation_map(x.coords, points)
    interpolate = lambda f: pumice.ops.interpolate(f, found)  # noqa: E731
    assert torch.autograd.gradcheck(interpolate, (x.features,))
    assert torch.autograd.gradgradcheck(interpolate, (x.features,))
    with pytest.raises(pumice.UserError, match="give points"):
        pumice.ops.interpolate(x.features, x.coords)
    with pytest.raises(pumice.UserError, match="give it alone"):
        pumice.ops.interpolate(x.features, found, points)
    half = pumice.ops.interpolate(x.features.half(), found)
    assert half.dtype == torch.float16


def test_from_points_to_the_view_of_a_detector(device: torch.device) -> None:
    points = torch.rand(2000, 4, device=device) * torch.tensor([8.0, 6.0, 4.0, 1.0], device=device)
    voxels = pumice.voxelize(
        points,
        size=[0.1, 0.1, 0.1],
        range=[0, 0, 0, 8, 6, 4],
        spatial_shape=[80, 64, 41],
        batch=torch.arange(2000, device=device) % 2,
        batch_size=2,
    )
    model = pumice.nn.Sequential(pumice.models.SecondEncoder(4), pumice.nn.ToBEV()).to(device)
    view = model(voxels.tensor)
    assert view.shape == (2, 128 * 2, 10, 8)
    view.square().mean().backward()
    first = model[0].conv_input[0].weight.grad
    assert first is not None and bool(first.any())
