"""The tensor, containers and joins."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
import torch
from conftest import close, random_sites, working_type

import pumice
import pumice.compat.spconv as spconv


def tensor(device: torch.device, seed: int = 0, channels: int = 4) -> spconv.SparseConvTensor:
    cells = random_sites(3, 7, 150, seed=seed).to(device)
    features = torch.randn(len(cells), channels, dtype=working_type(device)).to(device)
    return spconv.SparseConvTensor(features, cells, np.array([7, 7, 7]), 2)


def dense_of(x: spconv.SparseConvTensor) -> torch.Tensor:
    grid = x.features.new_zeros((x.batch_size, *x.spatial_shape, x.features.shape[1]))
    return grid.index_put(tuple(x.indices.long().unbind(1)), x.features)


def test_members(device: torch.device) -> None:
    x = tensor(device)
    assert x.spatial_shape == [7, 7, 7] and x.spatial_size == 343 and x.batch_size == 2
    assert x.indice_dict == {} and x.voxel_num is None and not x.benchmark
    assert x.grid.numel() == 0 and spconv.RemoveGrid()(x).grid is None
    with pytest.raises(ValueError, match="replace_feature"):
        x.features = x.features
    x._features = x.features * 2  # as some code does
    assert torch.equal(x.minus().features, -x.features)
    copy = x.shadow_copy()
    assert copy.indices is x.indices and copy.indice_dict is x.indice_dict
    assert not x.is_quantized and "SparseConvTensor" in repr(x)


def test_dense_there_and_back(device: torch.device) -> None:
    x = tensor(device)
    x.features.requires_grad_()
    expected = dense_of(x)
    assert torch.equal(x.dense(False), expected)
    assert torch.equal(x.dense(), expected.movedim(-1, 1))
    assert torch.equal(spconv.ToDense()(x), expected.movedim(-1, 1))
    weights = torch.randn_like(expected)
    mine = torch.autograd.grad((x.dense(False) * weights).sum(), x.features)[0]
    assert torch.equal(mine, torch.autograd.grad((expected * weights).sum(), x.features)[0])
    back = spconv.SparseConvTensor.from_dense(expected.detach())
    assert torch.equal(back.dense(False), expected) and back.spatial_shape == [7, 7, 7]


def test_pumices_own_layers_take_its_sites(device: torch.device) -> None:
    x = tensor(device)
    own = pumice.SparseTensor(x.coords, x.features)
    assert pumice.nn.MaxPool(2)(own).spatial_shape == (3, 3, 3)
    assert x.replace_feature(x.features).coords is x.coords


def test_wrong_arguments_are_named(device: torch.device) -> None:
    x = tensor(device)
    for changed, words in [
        (dict(indices=x.indices.long()), "int32"),
        (dict(spatial_shape=[7, 7]), "spatial_shape has 2"),
        (dict(batch_size=0), "batch_size = 0"),
        (dict(features=x.features[:, 0]), "features have shape"),
    ]:
        given = dict(features=x.features, indices=x.indices, spatial_shape=[7] * 3, batch_size=2)
        with pytest.raises(ValueError, match=words):
            spconv.SparseConvTensor(**{**given, **changed})
    layer = spconv.SubMConv3d(5, 4, 3).to(device)
    with pytest.raises(ValueError, match="4 channels, the layer takes 5"):
        layer(x)
    with pytest.raises(ValueError, match="takes 2 axes"):
        spconv.SubMConv2d(4, 4, 3).to(device)(x)
    with pytest.raises(ValueError, match="odd"):
        spconv.SubMConv3d(4, 4, 2)
    with pytest.raises(ValueError, match="groups = 3"):
        spconv.SparseConv3d(4, 4, 2, groups=3)


def test_sums(device: torch.device) -> None:
    x, y = tensor(device), tensor(device, 1)
    assert torch.equal((x + x.minus()).features, torch.zeros_like(x.features))
    assert torch.equal((x + x.features).features, 2 * x.features)
    with pytest.raises(ValueError, match="sparse_add"):
        x + y
    same = spconv.SparseConvTensor(x.features, x.indices.clone(), [7] * 3, 2)
    assert torch.equal((x + same).features, 2 * x.features)
    for add in (spconv.functional.sparse_add, spconv.functional.sparse_add_hash_based):
        total = add(x, y, x)
        close(dense_of(total), dense_of(x) * 2 + dense_of(y))
        close(total.dense(False), dense_of(total))
    assert torch.equal(spconv.AddTable()([x, x, x]).features, x.features * 3)
    joined = spconv.JoinTable()([x, x])
    assert torch.equal(joined.features, torch.cat([x.features, x.features], 1))
    close(dense_of(spconv.AddTableMisaligned()([x, y])), dense_of(x) + dense_of(y))


def test_a_sum_that_adds_no_site_keeps_rows_and_maps(device: torch.device) -> None:
    x = tensor(device)
    module = spconv.SubMConv3d(4, 4, 3, indice_key="a").to(device, working_type(device))
    y = module(x)
    some = x.select_by_index(torch.arange(0, len(x.indices), 3, device=device))
    total = spconv.functional.sparse_add(some, y)
    assert total.indices is y.indices and total.indice_dict is y.indice_dict
    expected = y.features.clone()
    expected[::3] += x.features[::3]
    close(total.features, expected)


def test_sequential_gives_features_to_all_but_its_own(device: torch.device) -> None:
    class Doubling(torch.nn.Module):
        def forward(self, features: torch.Tensor) -> torch.Tensor:
            return features * 2

    class Own(spconv.SparseModule):
        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            assert isinstance(x, spconv.SparseConvTensor)
            return x

    x = tensor(device)
    net = spconv.SparseSequential(OrderedDict(twice=Doubling(), own=Own()), relu=torch.nn.ReLU())
    net.add(spconv.Identity())
    net.add(spconv.SparseBatchNorm(4).to(device, working_type(device)).eval())
    net.add(spconv.ToDense())
    net.add(torch.nn.Flatten())
    assert len(net) == 7 and net[-1] is list(net)[6] and isinstance(net.twice, Doubling)
    assert net(x).shape == (2, 4 * 343)
    assert spconv.modules.is_spconv_module(net) and not spconv.modules.is_spconv_module(net[0])
    table = spconv.ConcatTable().add(Own()).add(Own())
    assert len(table(x)) == 2


def test_recording_how_many_voxels_came_out(device: torch.device) -> None:
    layer = spconv.SparseConv3d(4, 4, 2, 2, record_voxel_count=True)
    layer = layer.to(device, working_type(device))
    rows = len(layer(tensor(device)).indices)
    assert layer.get_max_num_voxels().tolist() == [rows]
    assert spconv.SparseConv3d(4, 4, 2).get_max_num_voxels() is None


def test_duplicates_are_removed(device: torch.device) -> None:
    cells = torch.tensor([[0, 3], [0, 1], [0, 3]], dtype=torch.int32, device=device)
    x = spconv.SparseConvTensor(torch.arange(3.0, device=device)[:, None], cells, [5], 1)
    y = spconv.pytorch.RemoveDuplicate()(x)
    assert y.indices.tolist() == [[0, 1], [0, 3]] and y.features.tolist() == [[1], [0]]
