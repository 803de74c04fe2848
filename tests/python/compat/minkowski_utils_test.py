"""MinkowskiEngine's helpers: kinds of arrays, cells of points at borders, labels of any kind."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch

from pumice.compat import minkowski as ME


def borders(dtype: type) -> np.ndarray:
    """Points at, and one rounding beside, multiples of 0.1."""
    steps = (np.arange(-60, 60)[:, None] * np.array([0.1, 0.1, 0.3])).astype(dtype)
    return np.concatenate([steps, np.nextafter(steps, -np.inf, dtype=dtype), np.nextafter(steps, np.inf, dtype=dtype)])


@pytest.mark.parametrize("size", [0.1, [0.1, 0.1, 0.3], 1, np.float32(0.1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_cells_are_points_divided_in_their_own_type(kind: str, labelled: bool, dtype: type, size: Any) -> None:
    points: Any = borders(dtype) if dtype is not np.int32 else np.random.default_rng(0).integers(-90, 90, (300, 3), np.int32)
    if kind == "tensor":
        points = torch.from_numpy(points)
        expected = torch.floor(points / (torch.Tensor(size) if isinstance(size, list) else size)).int().numpy()
    else:
        expected = np.floor(points / (np.array(size) if isinstance(size, list) else size)).astype(np.int32)
    labels = {"labels": np.zeros(len(points), np.int32) if kind == "array" else torch.zeros(len(points)).int()}
    cells, *_, inverse = ME.utils.sparse_quantize(
        points, quantization_size=size, return_index=True, return_inverse=True, **(labels if labelled else {})
    )
    assert np.array_equal(np.asarray(cells)[np.asarray(inverse)], expected)


@pytest.mark.parametrize("features", ["array", "tensor"])
def test_cells_and_maps_of_arrays_are_tensors_and_features_what_they_were(features: str) -> None:
    points = np.random.default_rng(1).uniform(-2, 2, (50, 3))
    rows: Any = np.arange(100.0).reshape(50, 2)
    if features == "tensor":
        rows = torch.from_numpy(rows)
    cells, kept, index, inverse = ME.utils.sparse_quantize(points, rows, return_index=True, return_inverse=True)
    assert {type(part) for part in (cells, index, inverse)} == {torch.Tensor} and type(kept) is type(rows)
    assert cells.dtype == torch.int32 and index.dtype == inverse.dtype == torch.int64
    assert np.array_equal(np.asarray(kept), np.asarray(rows)[index.numpy()])
    maps = ME.utils.sparse_quantize(points, return_index=True, return_inverse=True, return_maps_only=True)
    assert torch.equal(maps[0], index) and torch.equal(maps[1], inverse)
    parts = ME.utils.sparse_quantize(points, labels=np.zeros(50, np.int32), return_index=True)
    assert {type(part) for part in parts} == {np.ndarray}


@pytest.mark.parametrize("labels", [["car", "tree"], [3, 4], [{"box": 1}, {}], (None, None)])
def test_labels_that_are_no_arrays_come_as_a_list(labels: Any) -> None:
    clouds = [torch.zeros(2, 3), torch.ones(3, 3)]
    cells, features, found = ME.utils.sparse_collate(clouds, clouds, labels)
    assert found == list(labels) and len(cells) == len(features) == 5


def test_labels_that_are_arrays_come_as_one_tensor() -> None:
    clouds = [np.zeros((2, 3)), np.ones((3, 3))]
    for labels in ([np.zeros(2), np.ones(3)], [torch.zeros(2), np.ones(3, np.float32)]):
        found = ME.utils.sparse_collate(clouds, clouds, labels)[2]
        assert found.tolist() == [0, 0, 1, 1, 1]
    assert ME.utils.sparse_collate(clouds, clouds, [torch.tensor(3), torch.tensor(4)])[2].tolist() == [3, 4]


def test_clouds_that_are_left_out_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    cloud = (torch.zeros(4, 3), torch.zeros(4, 1), torch.zeros(4))
    with caplog.at_level(logging.WARNING):
        assert len(ME.utils.SparseCollation(limit_numpoints=8)([cloud] * 2)[0]) == 8
        assert not caplog.records
        assert len(ME.utils.SparseCollation(limit_numpoints=11)([cloud] * 5)[0]) == 8
    assert [record.getMessage() for record in caplog.records] == [
        "SparseCollation: 3 of 5 clouds are left out, since limit_numpoints = 11"
    ]
