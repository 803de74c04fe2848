"""Sparse tensors: making, moving, keeping, and what is refused."""

from __future__ import annotations

import copy
import io
import os
import pickle
import resource

import pytest
import torch
from conftest import dense_of, random_sites, random_tensor

import pumice
from pumice import nn


def test_sites_stay_when_the_callers_tensor_changes(device: torch.device) -> None:
    cells = torch.tensor([[0, 1, 2, 3], [0, 4, 5, 6]], dtype=torch.int32, device=device)
    x = pumice.SparseTensor(cells, torch.ones(2, 1, device=device))
    cells.zero_()
    assert x.indices.tolist() == [[0, 1, 2, 3], [0, 4, 5, 6]]


def test_coordinates_beyond_int32_are_refused(device: torch.device) -> None:
    cells = torch.tensor([[0, 2**32 + 5, 0, 0]], device=device)
    with pytest.raises(ValueError, match="int32"):
        pumice.SparseTensor(cells, torch.ones(1, 1, device=device))


def test_names_people_know(device: torch.device) -> None:
    x = random_tensor(device=device, dtype=torch.float32)
    assert x.F is x.features
    assert x.C is x.indices
    assert x.indices.dtype == torch.int32
    assert (x.batch_size, x.spatial_shape, x.stride, x.dimension) == (2, (9, 9, 9), (1, 1, 1), 3)
    assert x.device.type == device.type
    assert "batch_size=2" in repr(x)


def test_dense_and_back(device: torch.device) -> None:
    x = random_tensor(device=device, dtype=torch.float32)
    dense = x.dense()
    assert torch.equal(dense, dense_of(x, 9))
    back = pumice.SparseTensor.from_dense(dense)
    assert len(back) == len(x)
    assert torch.equal(back.dense([9, 9, 9]), dense)
    (dense * 2).sum().backward()
    assert torch.equal(x.features.grad, torch.full_like(x.features, 2))


def test_replace_keeps_sites_and_maps() -> None:
    x = random_tensor()
    y = x.replace(features=x.features * 2)
    assert y.coords is x.coords
    window = nn.SubMConv3d(1, 1, 3).window
    assert pumice.ops.submanifold_map(x.coords, window).is_same(
        pumice.ops.submanifold_map(y.coords, nn.SubMConv3d(5, 7, 3).window)
    )
    with pytest.raises(ValueError, match="rows"):
        x.replace(features=x.features[1:])


def test_pickle_and_deepcopy(device: torch.device) -> None:
    x = random_tensor(device=device, dtype=torch.float32).detach()
    y = pickle.loads(pickle.dumps(x))
    assert torch.equal(x.features, y.features)
    assert torch.equal(x.indices, y.indices)
    assert (y.spatial_shape, y.batch_size) == (x.spatial_shape, x.batch_size)
    assert copy.deepcopy(x).coords is x.coords
    left, right = pickle.loads(pickle.dumps((x, x.replace(features=x.features + 1))))
    assert left.coords is right.coords


def test_state_dict_round_trip(device: torch.device) -> None:
    def make() -> torch.nn.Module:
        return nn.Sequential(
            nn.SubMConv3d(4, 8, 3), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), nn.Conv3d(8, 4, 2, 2)
        ).to(device)

    x = random_tensor(device=device, dtype=torch.float32)
    first, second = make().eval(), make().eval()
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file))
    assert list(first.state_dict())[:2] == ["0.weight", "0.bias"]
    assert torch.equal(first(x).features, second(x).features)
    assert torch.equal(copy.deepcopy(first)(x).features, first(x).features)
    assert torch.equal(pickle.loads(pickle.dumps(first))(x).features, first(x).features)


def test_moves_between_devices() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here to move to")
    x = random_tensor(dtype=torch.float32)
    module = nn.SubMConv3d(4, 8, 3)
    here = module(x).features
    there = module.cuda()(x.cuda()).features
    torch.testing.assert_close(here, there.cpu(), rtol=1e-5, atol=1e-5)
    back = x.cuda().cpu()
    assert torch.equal(back.indices, x.indices)


def test_prune_union_and_collate(device: torch.device) -> None:
    x = random_tensor(device=device, dtype=torch.float32)
    keep = x.features[:, 0] > 0
    part = pumice.ops.prune(x, keep)
    assert torch.equal(part.indices, x.indices[keep])
    assert torch.equal(part.features, x.features[keep])
    whole = pumice.ops.union_add(x, part)
    expected = dense_of(x, 9) + dense_of(part, 9)
    assert torch.equal(whole.dense([9, 9, 9]), expected)
    one = pumice.SparseTensor(random_sites(3, 9, 50, batch=1).to(device), torch.ones(1, 1).expand(
        len(random_sites(3, 9, 50, batch=1)), 1).to(device))
    both = pumice.collate([one, one])
    assert both.batch_size == 2 and len(both) == 2 * len(one)


def test_layers_on_features(device: torch.device) -> None:
    x = random_tensor(device=device, dtype=torch.float32)
    net = nn.Sequential(
        nn.ReLU(), nn.Linear(4, 6), torch.nn.Dropout(0.0), nn.LayerNorm(6), nn.Tanh()
    ).to(device)
    plain = torch.nn.Sequential(
        torch.nn.ReLU(), torch.nn.Linear(4, 6), torch.nn.Dropout(0.0),
        torch.nn.LayerNorm(6), torch.nn.Tanh(),
    ).to(device)
    plain.load_state_dict(net.state_dict())
    assert torch.equal(net(x).features, plain(x.features))
    normal = nn.InstanceNorm(4).to(device)(x).features
    for item in range(2):
        rows = normal[x.indices[:, 0] == item]
        torch.testing.assert_close(rows.mean(0), torch.zeros_like(rows[0]), rtol=0, atol=1e-5)
        torch.testing.assert_close(rows.var(0, unbiased=False), torch.ones_like(rows[0]), rtol=0, atol=1e-3)


def test_what_is_refused(device: torch.device) -> None:
    cells = random_sites(3, 9, 100).to(device)
    rows = torch.randn(len(cells), 4, device=device)
    x = pumice.SparseTensor(cells, rows)
    layer = nn.SubMConv3d(4, 8, 3).to(device)
    refused = {
        "one row for each site": lambda: pumice.SparseTensor(cells, rows[1:]),
        "give int32": lambda: pumice.SparseTensor(cells.float(), rows),
        "the batch index first": lambda: pumice.SparseTensor(cells[:, :1], rows),
        "spatial_shape": lambda: pumice.SparseTensor(cells, rows, spatial_shape=[2, 2, 2]),
        "convert one of them": lambda: layer(x.replace(features=rows.half())),
        "the layer takes 4": lambda: layer(x.replace(features=rows[:, :3])),
        "none to invert": lambda: nn.InverseConv3d(4, 8, 2, 2).to(device)(x),
        "pass the tensor that has the sites to go to": lambda: nn.ConvTranspose3d(4, 8, 2, 2).to(device)(x),
        "choose a divisor": lambda: nn.SubMConv3d(4, 8, 3, groups=3),
        "one number, or one for each of 3 axes": lambda: nn.SubMConv3d(4, 8, (3, 3)),
        "on different sites": lambda: pumice.cat([x, pumice.SparseTensor(cells[1:], rows[1:])]),
    }
    for sentence, mistake in refused.items():
        with pytest.raises(ValueError) as raised:
            mistake()
        assert sentence in str(raised.value), str(raised.value)


def test_a_site_that_repeats_is_refused(device: torch.device) -> None:
    cells = random_sites(3, 9, 100).to(device)
    with pytest.raises(pumice.UserError):
        pumice.SparseTensor(torch.cat([cells, cells[:1]]), torch.ones(len(cells) + 1, 1, device=device))


def test_map_of_other_sites_is_refused() -> None:
    x, y = random_tensor(seed=1), random_tensor(seed=2)
    layer = nn.SubMConv3d(4, 8, 3)
    map = pumice.ops.submanifold_map(y.coords, layer.window)
    with pytest.raises(ValueError, match="rows"):
        pumice.ops.convolution(x.features, layer.weight.double(), map)


def test_unique_merges_sites_that_repeat(device: torch.device) -> None:
    cells = random_sites(3, 9, 200).to(device)
    twice = torch.cat([cells, cells.flip(0)])
    coords, row_of, first = pumice.Coordinates.unique(twice)
    assert len(coords) == len(cells)
    assert torch.equal(coords.indices[row_of.long()], twice)
    assert torch.equal(twice[first.long()], coords.indices)
    assert first.max() < len(cells)


def test_declared_grids_need_no_wait(device: torch.device) -> None:
    cells = random_sites(3, 9, 200).to(device)
    rows = torch.randn(len(cells), 4, device=device)
    x = pumice.SparseTensor(cells, rows, spatial_shape=[9] * 3, batch_size=2)
    assert torch.equal(x.coords.sites.coordinates(), cells)
    empty = pumice.SparseTensor(cells[:0], rows[:0], spatial_shape=[9] * 3, batch_size=2)
    assert len(empty) == 0


def test_memory_does_not_grow(device: torch.device) -> None:
    cells = random_sites(3, 9, 200).to(device)
    rows = torch.randn(len(cells), 4, device=device)
    net = nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.Conv3d(8, 8, 2, 2), nn.MaxPool(2)).to(device)

    def step() -> None:
        x = pumice.SparseTensor(cells, rows.clone().requires_grad_(), batch_size=2)
        net(x).features.sum().backward()

    def in_use() -> int:
        if device.type == "cuda":
            torch.cuda.synchronize()
            return torch.cuda.memory_allocated()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    for _ in range(20):
        step()
    before = in_use()
    for _ in range(10_000 if "PUMICE_LARGE" in os.environ else 200):
        step()
    # On the host the allocator may keep a little; a leak of one tensor a step would be 1.3 MB.
    assert in_use() - before <= (0 if device.type == "cuda" else 600_000)
