"""Usual mistakes of users of the three interfaces get a sentence that names the argument and the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pumice
import pumice.compat.minkowski as ME
import pumice.compat.spconv as spconv

CELLS = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]], dtype=torch.int32)
FEATURES = torch.ones(2, 4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: spconv.SparseConvTensor(FEATURES.numpy(), CELLS, [9] * 3, 1), "features are a numpy.ndarray: give a tensor"),
        (lambda: spconv.SparseConvTensor(FEATURES, CELLS.numpy(), [9] * 3, 1), "indices are a numpy.ndarray: give a tensor"),
        (lambda: spconv.SparseConvTensor(FEATURES[:1], CELLS, [9] * 3, 1), "features have 1 rows and indices 2"),
        (lambda: spconv.SparseConvTensor(FEATURES, CELLS, [9] * 3, "1"), "batch_size = '1'"),
        (lambda: ME.SparseTensor(np.ones((2, 4)), CELLS), "features are a numpy.ndarray: give a tensor"),
        (lambda: ME.MinkowskiConvolution(4, 4, kernel_size=3, dimension=3)(FEATURES), "takes a SparseTensor, and got a Tensor"),
        (lambda: ME.MinkowskiConvolution(4, 4, kernel_size=3, dimension=3)(ME.SparseTensor(FEATURES, CELLS[:, 1:].contiguous())), "pad"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_to_give(call: Any, words: str) -> None:
    with pytest.raises(pumice.UserError, match=words):
        call()


def test_a_name_of_another_module_says_where_it_is() -> None:
    with pytest.raises(AttributeError, match="it is in spconv.pytorch.utils"):
        spconv.PointToVoxel


def test_layers_and_promises_take_what_they_are_for() -> None:
    with pytest.raises(pumice.UserError, match=r"in_channels = 4.0: give a whole number"):
        pumice.nn.SubMConv3d(4.0, 8, 3)  # type: ignore[arg-type]
    with pytest.raises(pumice.UserError, match="model is a dict: give a module"):
        pumice.nn.freeze({})  # type: ignore[type-var,arg-type]
