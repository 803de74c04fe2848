"""Other forms of MinkowskiEngine's tensors, joins of several, and layers on features: against loops and PyTorch."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from conftest import agree, close, random_sites, working_type

from pumice.compat import minkowski as ME
from pumice.compat.minkowski.MinkowskiTensorField import create_splat_coordinates
from pumice.compat.minkowski.modules.senet_block import SEBasicBlock, SEBottleneck, SELayer
from pumice.compat.minkowski.utils.coords import get_coords_map


def tensor(
    device: torch.device, rows: int = 33, channels: int = 3, stride: tuple[int, int] = (1, 1)
) -> ME.SparseTensor:
    cells = random_sites(2, 9, rows).to(device)
    cells[:, 1:] = (cells[:, 1:] - 4) * cells.new_tensor(stride)
    features = torch.randn(len(cells), channels, dtype=working_type(device)).to(device)
    return ME.SparseTensor(features.requires_grad_(), cells, tensor_stride=list(stride))


@pytest.mark.parametrize("rows", [0, 1, 33])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("contract", [False, True])
@pytest.mark.parametrize("box", [False, True])
def test_torch_sparse(
    device: torch.device, rows: int, stride: tuple[int, int], contract: bool, box: bool
) -> None:
    x = tensor(device, rows, stride=stride)
    bounds = [torch.tensor([step * s for s in stride], dtype=torch.int32) for step in (-5, 7)]
    sparse, low, strides = x.sparse(*bounds if box else (), contract_coords=contract)
    assert strides.tolist() == list(stride) and sparse.is_sparse and low.shape == (1, 2)
    dense = sparse.to_dense()
    steps = stride if contract else (1, 1)
    first = [-5 * s for s in stride] if box else x.C[:, 1:].amin(0).tolist() if rows else [0, 0]
    assert low[0].tolist() == [f // s for f, s in zip(first, steps)]
    if box:
        assert dense.shape[1:3] == torch.Size([12 * s // step + 1 for s, step in zip(stride, steps)])
    expected = torch.zeros_like(dense)
    for cell, row in zip(x.C.tolist(), x.F):
        expected[cell[0], *((c - f) // s for c, f, s in zip(cell[1:], first, steps))] = row
    if rows == 0:
        assert dense.numel() == 0 or not bool(dense.any())
        return
    agree(dense, expected, (x.F,), 1)


def test_torch_sparse_refuses_other_boxes(device: torch.device) -> None:
    x = tensor(device, stride=(2, 2))
    for low, high, words in (
        ([-7, -8], [8, 8], "multiples of the stride"), ([-8], None, "2 numbers"),
        ([0, 0], None, "outside"), ([-8, -8], [0, 0], "outside"),
    ):
        with pytest.raises(AssertionError, match=words):
            x.sparse(torch.tensor(low), None if high is None else torch.tensor(high))


@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("shaped", [False, True])
def test_dense_in_cells_of_the_finest_level(device: torch.device, rows: int, shaped: bool) -> None:
    x = tensor(device, rows, stride=(2, 3))
    shape = torch.Size([3, 3, 20, 30]) if shaped else None
    grid, low, stride = x.dense(shape, min_coordinate=torch.tensor([-8, -12]), contract_stride=False)
    assert low.tolist() == [[-8, -12]] and stride.tolist() == [2, 3]
    assert not shaped or grid.shape == shape
    expected = torch.zeros_like(grid)
    for (item, *cell), row in zip(x.C.tolist(), x.F):
        expected[item, :, cell[0] + 8, cell[1] + 12] = row
    agree(grid, expected, (x.F,), 1)


def test_a_dense_tensor_begins_at_a_cell(device: torch.device) -> None:
    x = tensor(device, 33, stride=(2, 3))
    for low in ([-7, -12], [-8, -11]):
        with pytest.raises(AssertionError, match=r"min_coordinate = .*: give multiples of the tensor stride \[2, 3\]"):
            x.dense(min_coordinate=torch.IntTensor(low))


@pytest.mark.parametrize("remove_zeros", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_a_dense_tensor_becomes_the_cells_that_the_original_takes(remove_zeros: bool, given: bool) -> None:
    dense = torch.tensor([0.0, 1, 0, 2])[None, None]
    cells = torch.IntTensor([[0, 5], [0, 6], [0, 7], [0, 8]]) if given else None
    x = ME.MinkowskiToSparseTensor(remove_zeros, cells)(dense)
    expected = {(True, True): [(1, 1), (3, 2)], (False, True): [(5, 0), (6, 1), (7, 0), (8, 2)]}.get(
        (remove_zeros, given), [(0, 0), (1, 1), (2, 0), (3, 2)]
    )
    assert [(cell, row) for (_, cell), (row,) in zip(x.C.tolist(), x.F.tolist())] == expected


def variance(*parts: torch.Tensor) -> torch.Tensor:
    mean = sum(parts) / len(parts)
    return sum((part - mean) ** 2 for part in parts) / len(parts)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_several_tensors_at_one_key(device: torch.device, count: int) -> None:
    x = tensor(device)
    parts = [x._with(torch.randn_like(x.F).requires_grad_()) for _ in range(count)]
    leaves = tuple(part.F for part in parts)
    for given in (parts, [parts]):
        agree(ME.sum(*given).F, sum(leaves), leaves, 10)
        agree(ME.mean(*given).F, sum(leaves) / count, leaves, 10)
        agree(ME.var(*given).F, variance(*leaves), leaves, 10)
    field = ME.TensorField(x.F, x.C.float())
    assert isinstance(ME.mean(field, field), ME.TensorField)
    other = tensor(device, 5)
    for join in (ME.cat, ME.sum, ME.mean, ME.var):
        with pytest.raises(AssertionError, match="give tensors at the same coordinates|another coordinate manager"):
            join(x, other)


def test_stacks(device: torch.device) -> None:
    x = tensor(device)
    layers = [ME.MinkowskiLinear(3, 4).to(device, x.dtype) for _ in range(3)]
    leaves = (x.F, *(p for layer in layers for p in layer.parameters()))
    mean = sum(layer(x).F for layer in layers) / 3
    agree(ME.MinkowskiStackMean(*layers)(x).F, mean, leaves, 10)
    agree(ME.MinkowskiStackVar(*layers)(x).F, variance(*(layer(x).F for layer in layers)), leaves, 10)


def test_sinusoidal(device: torch.device) -> None:
    x = tensor(device)
    layer = ME.MinkowskiSinusoidal(3, 5).to(device, x.dtype)
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {
        "kernel": (3, 5), "bias": (1, 5), "coef": (1, 5)
    }
    expected = torch.sin(x.F @ layer.kernel + layer.bias) * layer.coef
    agree(layer(x).F, expected, (x.F, *layer.parameters()), 10)
    assert isinstance(layer(ME.TensorField(x.F, x.C.float())), ME.TensorField)


def test_adaptive_softmax(device: torch.device) -> None:
    x = tensor(device, channels=8)
    layer = ME.MinkowskiAdaptiveLogSoftmaxWithLoss(8, 10, cutoffs=[3, 6]).to(device, x.dtype)
    target = torch.arange(len(x), device=device) % 10
    output, loss = layer(x, target)
    expected = layer.module.log_prob(x.F)[torch.arange(len(x)), target]
    close(output.detach(), expected.detach(), 100)
    close(loss.detach(), -expected.detach().mean(), 100)


LOSSES = {
    "poisson_nll_loss": lambda x: torch.rand_like(x),
    "hinge_embedding_loss": lambda x: torch.ones_like(x) - 2 * (x.detach() > 0),
    "multilabel_margin_loss": lambda x: torch.tensor([[0, -1, -1]], device=x.device).expand(len(x), 3),
    "multilabel_soft_margin_loss": lambda x: (x.detach() > 0).to(x.dtype),
    "multi_margin_loss": lambda x: torch.zeros(len(x), dtype=torch.int64, device=x.device),
    "soft_margin_loss": lambda x: torch.ones_like(x),
    "cross_entropy": lambda x: torch.zeros(len(x), dtype=torch.int64, device=x.device),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(device: torch.device, name: str) -> None:
    x = tensor(device)
    target = LOSSES[name](x.F)
    found = getattr(ME.MinkowskiFunctional, name)(x, target, reduction="sum")
    assert torch.equal(found, getattr(F, name)(x.F, target, reduction="sum"))


def test_functional_batch_norm(device: torch.device) -> None:
    x = tensor(device)
    mean, variance = torch.zeros(3, device=device, dtype=x.dtype), torch.ones(3, device=device, dtype=x.dtype)
    y = ME.MinkowskiFunctional.batch_norm(x, mean, variance, training=True)
    assert y.coordinate_map_key == x.coordinate_map_key
    agree(y.F, F.batch_norm(x.F, None, None, training=True), (x.F,), 10)
    assert bool((mean != 0).all())


@pytest.mark.parametrize("points", [0, 1, 31])
@pytest.mark.parametrize("dimension", [1, 3])
def test_corners_of_points(device: torch.device, points: int, dimension: int) -> None:
    field = torch.rand(points, 1 + dimension, device=device) * 8 - 4
    field[:, 0] = 1
    expected = [
        [1, *(int(c // 1) + s for c, s in zip(point[1:], step))]
        for point in field.tolist() for step in itertools.product((0, 1), repeat=dimension)
    ]
    assert create_splat_coordinates(field).tolist() == expected


def test_rows_of_two_tensors_of_a_network(device: torch.device) -> None:
    x = tensor(device)
    y = ME.MinkowskiMaxPooling(2, 2, dimension=2)(x)
    for row, coarse in zip(*(rows.tolist() for rows in get_coords_map(x, y))):
        cell = x.C[row].tolist()
        assert y.C[coarse].tolist() == [cell[0], cell[1] // 2 * 2, cell[2] // 2 * 2]
    with pytest.raises(AssertionError, match="different coordinate managers"):
        get_coords_map(x, tensor(device))


@pytest.mark.parametrize("block", [SEBasicBlock, SEBottleneck])
def test_blocks_that_weigh_channels(device: torch.device, block: type[torch.nn.Module]) -> None:
    wide = 4 * block.expansion
    x = tensor(device, channels=wide)
    net = block(wide, 4, reduction=2, D=2).to(device, x.dtype)
    y = net(x)
    weighed = net.se
    assert isinstance(weighed, SELayer) and y.F.shape == (len(x), wide)
    inner = net._residual(x)  # that is weighed already
    net.se = torch.nn.Identity()
    plain = net._residual(x)
    items = torch.stack([plain.F[x.C[:, 0] == item].mean(0) for item in (0, 1)])
    first, _, second, _ = weighed.fc
    weights = torch.sigmoid(second.linear(torch.relu(first.linear(items))))
    close(inner.F.detach(), (plain.F * weights[x.C[:, 0].long()]).detach(), 100)
    close(y.F.detach(), torch.relu(inner.F + x.F).detach(), 100)
    y.F.sum().backward()
    assert all(p.grad is not None for p in weighed.parameters())
