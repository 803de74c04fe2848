"""Random sparse data and comparisons, for tests that code for spconv writes."""

from __future__ import annotations

import itertools
import unittest
from collections.abc import Sequence
from typing import Any

import numpy as np


class TestCase(unittest.TestCase):
    """unittest's, with comparisons of arrays."""

    def assertAllEqual(self, a: Any, b: Any) -> None:
        """Same shape and same values; NaN equals NaN."""
        np.testing.assert_array_equal(np.asarray(b), np.asarray(a), strict=False)
        self.assertEqual(np.shape(a), np.shape(b))

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str = ""
    ) -> None:
        """Same shape, and |a - b| at most atol + rtol · |b|; of two dicts, for each of their keys."""
        if isinstance(a, dict) != isinstance(b, dict):
            raise ValueError(f"one of a and b is a dict: compare like with like. {msg}")
        if not isinstance(a, dict):
            a, b = {"": a}, {"": b}
        self.assertCountEqual(a, b, msg)
        for key in a:
            self.assertEqual(np.shape(a[key]), np.shape(b[key]), f"{key} {msg}")
            np.testing.assert_allclose(a[key], b[key], rtol=rtol, atol=atol, err_msg=f"{key} {msg}")


def params_grid(*params: Sequence[Any]) -> list[list[Any]]:
    """Every choice of one of each, the last changing fastest."""
    return [list(chosen) for chosen in itertools.product(*params)]


def generate_sparse_data(
    shape: Sequence[int],
    num_points: Sequence[int],
    num_channels: int,
    integer: bool = False,
    data_range: Sequence[float] = (-1, 1),
    with_dense: bool = True,
    dtype: Any = np.float32,
    shape_scale: int = 1,
) -> dict[str, np.ndarray]:
    """"features" [N, C], "indices" int32 [N, D + 1], the batch item last, and "features_dense"
    [items, C, shape…]: `num_points[i]` distinct cells of `shape` for item i, on multiples of
    `shape_scale`. One seed of np.random gives what it gives in spconv."""
    axes = [np.arange(extent // shape_scale) for extent in shape]
    cells = np.stack(np.meshgrid(*axes), -1).reshape(-1, len(shape)) * shape_scale
    chosen = []
    for item, count in enumerate(num_points):
        np.random.shuffle(cells)
        picked = cells[:count]
        chosen.append(np.concatenate([picked, np.full((len(picked), 1), item)], 1))
    indices = np.concatenate(chosen)
    draw = np.random.randint if integer else np.random.uniform
    size = (int(np.sum(num_points)), num_channels)
    features = draw(data_range[0], data_range[1], size=size).astype(dtype)
    data = {"features": features, "indices": indices.astype(np.int32)}
    if with_dense:
        dense = np.zeros((len(num_points), *shape, num_channels), dtype)
        dense[(indices[:, -1], *indices[:, :-1].T)] = features
        data["features_dense"] = np.ascontiguousarray(np.moveaxis(dense, -1, 1))
    return data
