"""Points of PyTorch into voxels and back, beside PyTorch's own operators."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import working_type

import pumice
from pumice import _C

SIZE = [0.5, 0.25, 1.0]
RANGE = [-1.5, -2.0, -1.0, 2.0, 1.5, 1.5]
SIZES = [0, 1, 33, 3001]


def random_points(count: int, device: torch.device, extra: int = 2) -> torch.Tensor:
    """float32 [count, 3 + extra], around 0."""
    return (torch.randn(count, 3 + extra) * 1.5).to(device)


def cells_of(points: torch.Tensor, batch: torch.Tensor | None, origin: list[float]) -> torch.Tensor:
    """int32 [P, 4] with PyTorch's arithmetic, on the CPU."""
    where = (points[:, :3].detach().cpu() - torch.tensor(origin)) / torch.tensor(SIZE)
    items = torch.zeros(len(points), 1) if batch is None else batch.cpu()[:, None]
    return torch.cat([items.int(), where.floor().int()], 1)


def merged(features: torch.Tensor, row_of: torch.Tensor, rows: int, reduction: str) -> torch.Tensor:
    """With PyTorch's scatter, for the points whose row is not -1."""
    kept = row_of >= 0
    features, row_of = features[kept], row_of[kept]
    index = row_of[:, None].expand(-1, features.shape[1])
    if reduction == "first":
        first = torch.stack([(row_of == row).nonzero()[0, 0] for row in range(rows)])
        return features[first]
    return features.new_zeros(rows, features.shape[1]).scatter_reduce(
        0, index, features, {"max": "amax"}.get(reduction, reduction), include_self=False
    )


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("ranged", [False, True])
def test_cells_and_where_each_point_went(
    device: torch.device, count: int, batched: bool, ranged: bool
) -> None:
    points = random_points(count, device)
    batch = torch.randint(0, 3, (count,), device=device) if batched else None
    box = RANGE if ranged else None
    voxels = pumice.voxelize(
        points, size=SIZE, range=box, batch=batch, batch_size=3 if batched else None
    )
    inside = torch.ones(count, dtype=torch.bool)
    if ranged:
        where, (low, high) = points[:, :3].cpu(), torch.tensor(RANGE).reshape(2, 3)
        inside = ((where >= low) & (where < high)).all(1)
    cells = cells_of(points, batch, RANGE[:3] if ranged else [0, 0, 0])
    assert voxels.point_to_voxel.dtype == torch.int64 and voxels.point_to_voxel.device == points.device
    went = voxels.point_to_voxel.cpu()
    assert torch.equal(went >= 0, inside)
    assert torch.equal(voxels.coordinates.cpu()[went[inside]], cells[inside])
    assert len(voxels) == len(torch.unique(cells[inside], dim=0))
    assert voxels.tensor.batch_size == (3 if batched else 1)
    # They are sites like any others.
    layer = pumice.nn.SubMConv3d(5, 2, 3).to(device)
    assert layer(voxels.tensor).features.shape == (len(voxels), 2)


@pytest.mark.parametrize("reduction", ["mean", "sum", "max", "first"])
def test_reductions_and_their_gradients(device: torch.device, reduction: str) -> None:
    points = random_points(700, device)
    features = torch.randn(700, 5, dtype=working_type(device), device=device, requires_grad=True)
    voxels = pumice.voxelize(points, features, size=SIZE, range=RANGE, reduction=reduction)
    expected = merged(features, voxels.point_to_voxel, len(voxels), reduction)
    torch.testing.assert_close(voxels.features, expected, rtol=1e-6, atol=1e-5)
    weights = torch.randn_like(expected)
    mine = torch.autograd.grad((voxels.features * weights).sum(), features)[0]
    theirs = torch.autograd.grad((expected * weights).sum(), features)[0]
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-5)
    assert not mine[voxels.point_to_voxel < 0].any() and bool((voxels.point_to_voxel < 0).any())


def test_numpy_gives_the_same_bits(device: torch.device) -> None:
    points = random_points(2000, device)
    for box in (None, RANGE):
        for reduction in ("mean", "sum", "max", "first"):
            there = pumice.voxelize(points, size=SIZE, range=box, reduction=reduction)
            here = pumice.voxelize(points.cpu().numpy(), size=SIZE, range=box, reduction=reduction)
            assert np.array_equal(there.coordinates.cpu().numpy(), here.coordinates)
            assert np.array_equal(there.point_to_voxel.cpu().numpy(), here.point_to_voxel)
            if device.type == "cpu" or reduction in ("max", "first"):
                assert np.array_equal(there.features.cpu().numpy(), here.features)


def test_a_spatial_shape_is_the_grid_and_cuts(device: torch.device) -> None:
    points = random_points(500, device)
    voxels = pumice.voxelize(points, size=SIZE, range=RANGE, spatial_shape=[4, 7, 2])
    assert voxels.tensor.spatial_shape == (4, 7, 2)
    cells = cells_of(points, None, RANGE[:3])[:, 1:]
    kept = ((cells >= 0) & (cells < torch.tensor([4, 7, 2]))).all(1)
    low, high = torch.tensor(RANGE).reshape(2, 3)
    kept &= ((points[:, :3].cpu() >= low) & (points[:, :3].cpu() < high)).all(1)
    assert torch.equal(voxels.point_to_voxel.cpu() >= 0, kept) and bool(kept.any())
    assert pumice.nn.ToBEV()(voxels.tensor).shape == (1, 2 * 5, 4, 7)


def test_by_default_all_columns_are_features_and_have_gradients(device: torch.device) -> None:
    points = random_points(90, device).requires_grad_()
    voxels = pumice.voxelize(points, size=1.0)
    assert voxels.features.shape == (len(voxels), 5)
    back = voxels.at_points(voxels.tensor)
    assert torch.equal(back, voxels.features[voxels.point_to_voxel])
    back.square().sum().backward()
    assert points.grad is not None and bool(points.grad.any())


def test_voxels_go_into_a_compiled_network(device: torch.device) -> None:
    voxels = pumice.voxelize(random_points(90, device), size=1.0)
    model = pumice.nn.Sequential(pumice.nn.SubMConv3d(5, 4, 3), pumice.nn.ReLU()).to(device).eval()
    with torch.no_grad():
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        found = compiled(voxels.tensor).features
        torch.testing.assert_close(found, model(voxels.tensor).features)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"points": torch.zeros(3, 2)}, "3 or more"),
        ({"points": torch.zeros(3, 3, dtype=torch.int32)}, "floating"),
        ({"features": torch.zeros(2, 3)}, "one for each of 3"),
        ({"features": torch.zeros(3)}, "points, channels"),
        ({"batch": torch.zeros(3)}, "integers"),
        ({"batch": torch.tensor([0, 1, -1])}, "batch item -1"),
        ({"batch": torch.tensor([0, 1, 2]), "batch_size": 2}, "batch item 2 in a batch of 2"),
        ({"size": [1, 2]}, "size has 2"),
        ({"size": 0.0}, "voxel size along x"),
        ({"range": [0, 0, 0, 1, 1]}, "range has 5"),
        ({"range": [0, 0, 0, 1, 0, 1]}, "range along y"),
        ({"reduction": "median"}, "mean, sum, max, first"),
        ({"spatial_shape": [2, 2]}, r"spatial_shape = \[2, 2\] has 2 numbers"),
        ({"points": torch.full((2, 3), torch.nan)}, "no cell in 32 bits"),
    ],
)
def test_what_is_refused(arguments: dict, said: str) -> None:
    with pytest.raises(pumice.UserError, match=said):
        pumice.voxelize(**({"points": torch.zeros(3, 3), "size": 1.0} | arguments))


def test_points_without_a_cell_are_known_by_the_class_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise _C.NoCellError("too far")

    far = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1e20, 0.0]])
    with pytest.raises(_C.NoCellError, match="no cell in 32 bits"):
        _C.voxel_sites(far, None, [1.0] * 3, None, None, 1, None)
    monkeypatch.setattr(_C, "voxel_sites", refuse)
    with pytest.raises(pumice.UserError, match="point 1 has y = 1e\\+20 m"):
        pumice.voxelize(far, size=1.0)


def test_a_batch_is_for_tensors() -> None:
    with pytest.raises(pumice.UserError, match="tensors of PyTorch"):
        pumice.voxelize(np.zeros((3, 3)), size=1, batch_size=2)


def test_a_point_that_is_no_number_is_refused_on_a_gpu(device: torch.device) -> None:
    points = random_points(50, device)
    points[7, 1] = torch.nan
    for box in (None, RANGE):
        with pytest.raises(pumice.UserError):
            pumice.voxelize(points, size=SIZE, range=box)


def test_rows_are_taken_with_zeros_for_none(device: torch.device) -> None:
    features = torch.randn(9, 4, dtype=working_type(device), device=device, requires_grad=True)
    for kind in (torch.int32, torch.int64):
        rows = torch.tensor([3, -1, 3, 0, 8], dtype=kind, device=device)
        taken = pumice.ops.take_rows(features, rows)
        expected = torch.where(rows[:, None] < 0, 0, features[rows.clamp_min(0).long()])
        assert torch.equal(taken, expected)
        weights = torch.randn_like(taken)
        mine = torch.autograd.grad((taken * weights).sum(), features)[0]
        theirs = torch.autograd.grad((expected * weights).sum(), features)[0]
        torch.testing.assert_close(mine, theirs)
    assert pumice.ops.take_rows(features, rows[:0]).shape == (0, 4)


def test_rows_out_of_range_are_refused() -> None:
    with pytest.raises(pumice.UserError, match="rows"):
        pumice.ops.take_rows(torch.zeros(3, 2), torch.tensor([0, 3]))


def test_second_derivatives() -> None:
    features = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([0, 2, -1, 2, 1, 2])
    take = lambda f: pumice.ops.take_rows(f, rows)  # noqa: E731
    for reduction in ("mean", "sum", "max", "first"):
        reduce = lambda f, kind=reduction: pumice.ops.reduce_rows(f, rows, 4, kind)  # noqa: E731
        assert torch.autograd.gradcheck(reduce, (features,))
        assert torch.autograd.gradgradcheck(reduce, (features,))
    assert torch.autograd.gradcheck(take, (features,))
    assert torch.autograd.gradgradcheck(take, (features,))


@pytest.mark.parametrize("box", [None, [0, 0, 0, 40, 40, 40]])
def test_cells_beyond_32_bits_are_refused_as_of_arrays(box: list[float] | None) -> None:
    points = torch.tensor([[0.5, 0.5, 0.5], [1.0, 18.0, 1.0], [50.0, 1.0, 1.0]])
    size = [1.0, 1e-9, 1.0]
    said = []
    for given in (points, points.numpy()):
        with pytest.raises(pumice.UserError) as error:
            pumice.voxelize(given, size=size, range=box)
        said.append(str(error.value).replace(" of cloud 0", ""))
    assert said[0] == said[1] and "at 1e-09 m a voxel" in said[0] and "use larger voxels" in said[0]
