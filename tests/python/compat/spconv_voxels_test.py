"""Points into voxels, and back, against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pumice.compat.spconv as spconv
from pumice.compat.spconv.cumm import tensorview as tv
from pumice.compat.spconv.pytorch.utils import PointToVoxel, gather_features_by_pc_voxel_id

SIZE, RANGE = [0.5, 0.25, 1.0], [0.0, -1.0, -2.0, 4.0, 1.0, 2.0]


def points(count: int = 500) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    spread = torch.rand(count, 4, generator=generator) * torch.tensor([5.0, 3.0, 5.0, 1.0])
    return spread - torch.tensor([0.5, 1.5, 2.5, 0.0])


def by_loop(cloud: torch.Tensor, most: int, each: int) -> tuple[list, dict, list]:
    """(points of each voxel, row of each cell, row of each point)"""
    kept: list[list] = []
    rows: dict[tuple, int] = {}
    of_point = []
    low, extent = torch.tensor(RANGE[:3]), torch.tensor([8, 8, 4])
    for point in cloud:
        cell = torch.floor((point[:3] - low) / torch.tensor(SIZE)).int()
        row = -1
        if bool(((cell >= 0) & (cell < extent)).all()):
            key = tuple(cell.flip(0).tolist())
            if key not in rows and len(rows) < most:
                rows[key] = len(rows)
                kept.append([])
            row = rows.get(key, -1)
        if row >= 0 and len(kept[row]) < each:
            kept[row].append(point)
        of_point.append(row)
    return kept, rows, of_point


@pytest.mark.parametrize("most, each", [(1000, 5), (60, 2), (1, 1)])
@pytest.mark.parametrize("empty_mean", [False, True])
def test_point_to_voxel(device: torch.device, most: int, each: int, empty_mean: bool) -> None:
    cloud = points()
    generator = PointToVoxel(SIZE, RANGE, 4, most, each, device)
    assert generator.grid_size == [4, 8, 8]
    voxels, indices, counts, of_point = generator.generate_voxel_with_id(
        cloud.to(device), empty_mean=empty_mean
    )
    kept, rows, expected_of_point = by_loop(cloud, most, each)
    assert indices.dtype == counts.dtype == torch.int32
    assert indices.tolist() == [list(cell) for cell in rows]
    assert counts.tolist() == [len(each_one) for each_one in kept]
    assert of_point.tolist() == expected_of_point
    expected = torch.zeros(len(kept), each, 4)
    for row, inside in enumerate(kept):
        if empty_mean:
            expected[row] = torch.stack(inside).mean(0)
        expected[row, : len(inside)] = torch.stack(inside)
    torch.testing.assert_close(voxels.cpu(), expected)
    assert len(generator(cloud.to(device))) == 3


def test_what_is_no_number_is_in_no_voxel(device: torch.device) -> None:
    cloud = torch.tensor([[float("nan"), 0, 0, 0], [float("inf"), 0, 0, 0], [1, 0, 0, 7]])
    found = PointToVoxel(SIZE, RANGE, 4, 9, 2, device).generate_voxel_with_id(cloud.to(device))
    assert found[3].tolist() == [-1, -1, 0] and found[0][0, 0, 3] == 7


def test_no_points(device: torch.device) -> None:
    voxels, indices, counts = PointToVoxel(SIZE, RANGE, 4, 9, 2, device)(
        torch.zeros(0, 4, device=device)
    )
    assert voxels.shape == (0, 2, 4) and indices.shape == (0, 3) and counts.shape == (0,)


def test_results_back_to_points(device: torch.device) -> None:
    scores = torch.arange(6.0, device=device).reshape(3, 2).requires_grad_()
    of_point = torch.tensor([2, -1, 0, 2], device=device)
    found = gather_features_by_pc_voxel_id(scores, of_point, -5)
    assert found.tolist() == [[4, 5], [-5, -5], [0, 1], [4, 5]]
    found.sum().backward()
    assert scores.grad[:, 0].tolist() == [1, 0, 2]


@pytest.mark.parametrize("name", ["Point2VoxelCPU3d", "Point2VoxelGPU3d"])
def test_arrays_of_cumm(name: str) -> None:
    generator = getattr(spconv.utils, name)(
        vsize_xyz=SIZE,
        coors_range_xyz=np.array(RANGE),
        num_point_features=4,
        max_num_points_per_voxel=5,
        max_num_voxels=1000,
    )
    found = [array.numpy() for array in generator.point_to_voxel(tv.from_numpy(points().numpy()))]
    expected = PointToVoxel(SIZE, RANGE, 4, 1000, 5)(points())
    for mine, theirs in zip(found, expected):
        assert np.array_equal(mine, theirs.numpy()) and mine.dtype == theirs.numpy().dtype


def test_names_of_version_1_are_absent() -> None:
    for name in ("VoxelGenerator", "VoxelGeneratorV2"):
        assert not hasattr(spconv.utils, name)


def test_a_range_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no cell"):
        PointToVoxel([1, 1, 1], [0, 0, 0, 0, 1, 1], 3, 9, 9)


def test_hash_table(device: torch.device) -> None:
    table = spconv.hash.HashTable(device, torch.int32, torch.int64, max_size=100)
    keys = torch.tensor([5, 3, 7, -4], dtype=torch.int32, device=device)
    values = torch.tensor([1, 6, 4, 77], device=device)
    assert table.query(keys)[1].all()
    table.insert(keys, values)
    asked = torch.tensor([7, 8, -4, 5], dtype=torch.int32, device=device)
    found, missing = table.query(asked)
    assert found.tolist() == [4, 0, 77, 1] and missing.tolist() == [False, True, False, False]
    assert table.insert_exist_keys(asked, found + 1).tolist() == [0, 1, 0, 0]
    table.insert(keys[:1], values[:1] * 9)
    kept_keys, kept_values, count = table.items()
    assert dict(zip(kept_keys.tolist(), kept_values.tolist())) == {5: 9, 3: 6, 7: 5, -4: 78}
    assert count.item() == 4 == table.assign_arange_().item()
    assert table.items()[1].tolist() == [0, 1, 2, 3]
