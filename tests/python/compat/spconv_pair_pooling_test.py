"""Pooling through tables of pairs as spconv has it, against loops."""

from __future__ import annotations

import pytest
import torch
from conftest import random_sites

import pumice.compat.spconv as spconv
from pumice.compat.spconv.pytorch import functional, ops

Native, Mask, _ = spconv.ConvAlgo
WINDOW = ([3] * 3, [2] * 3, [1] * 3, [1] * 3, [0] * 3)


def problem(device: torch.device, count: int = 60):
    """features, both forms of pairs, and the input rows of each output."""
    indices = random_sites(3, 6, count).to(device).reshape(-1, 4)
    features = torch.randn(len(indices), 3).to(device).requires_grad_()
    out, pairs, numbers = ops.get_indice_pairs(indices, 2, [6] * 3, Native, *WINDOW)
    result = ops.get_indice_pairs_implicit_gemm(indices, 2, [6] * 3, Mask, *WINDOW)
    inputs = [[i for i in column if i >= 0] for column in result[2].T.tolist()]
    return features, (pairs, numbers), result[2:4], inputs


@pytest.mark.parametrize("count", [0, 1, 33, 60])
@pytest.mark.parametrize("form", ["native", "implicit"])
def test_the_maximum_counts_zero_too(device: torch.device, form: str, count: int) -> None:
    features, native, (forward, backward), inputs = problem(device, count)
    if form == "native":
        y = functional.indice_maxpool(features, *native, len(inputs))
    else:
        y = functional.indice_maxpool_implicit_gemm(features, forward, backward, len(inputs))
    grad = torch.randn_like(y)
    y.backward(grad)
    expected = torch.zeros_like(features)
    for row, members in enumerate(inputs):
        for channel in range(3):
            values = [float(features.detach()[i, channel]) for i in members]
            assert float(y.detach()[row, channel]) == max([*values, 0.0])
            for i, value in zip(members, values):
                if value == max([*values, 0.0]):
                    expected[i, channel] += grad[row, channel]
    torch.testing.assert_close(features.grad, expected, rtol=0, atol=1e-5)


def test_the_mean_and_its_gradient(device: torch.device) -> None:
    features, _, (forward, backward), inputs = problem(device)
    y = functional.indice_avgpool_implicit_gemm(features, forward, backward, len(inputs), True)
    _, count = ops.indice_avgpool_implicit_gemm(features.detach(), forward, len(inputs), True)
    grad = torch.randn_like(y)
    y.backward(grad)
    expected = torch.zeros_like(features)
    for row, members in enumerate(inputs):
        assert count[row] == len(members)
        torch.testing.assert_close(y[row], features[members].mean(0), rtol=0, atol=1e-6)
        for i in members:
            expected[i] += grad[row] * len(members)
    torch.testing.assert_close(features.grad, expected, rtol=0, atol=1e-4)
    without = ops.indice_avgpool_implicit_gemm(features.detach(), forward, len(inputs), False)
    assert without[1].numel() == 0


def test_rows_of_batch_items(device: torch.device) -> None:
    coords = random_sites(3, 6, 40, batch=3).to(device)
    rows, counts = ops.global_pool_rearrange(coords, 4)
    assert rows.shape == (4, len(coords)) and rows.dtype == counts.dtype == torch.int32
    for item in range(4):
        own = (coords[:, 0] == item).nonzero()[:, 0].tolist()
        assert rows[item, : counts[item]].tolist() == own and counts[item] == len(own)


def test_the_larger_number_stays(device: torch.device) -> None:
    count = torch.tensor([5], dtype=torch.int32, device=device)
    for value, after in [(9, 9), (3, 9)]:
        ops.maximum_value_int_(count, value)
        assert count.tolist() == [after]
