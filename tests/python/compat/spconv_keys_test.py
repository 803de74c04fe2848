"""`indice_key`: what is shared, what is refused, and in words."""

from __future__ import annotations

import pytest
import torch
from conftest import random_sites

import pumice
import pumice.compat.spconv as spconv


def tensor(device: torch.device, channels: int = 4, seed: int = 0) -> spconv.SparseConvTensor:
    cells = random_sites(3, 9, 300, seed=seed).to(device)
    features = torch.randn(len(cells), channels, device=device)
    return spconv.SparseConvTensor(features, cells, [9, 9, 9], 2)


def test_submanifold_layers_of_one_key_share_a_map(device: torch.device) -> None:
    first = spconv.SubMConv3d(4, 4, 3, indice_key="a").to(device)
    second = spconv.SubMConv3d(4, 4, 3, indice_key="a").to(device)
    x = tensor(device)
    y = first(x)
    assert "a" not in x.indice_dict and list(y.indice_dict) == ["a"]
    z = second(y)
    assert z.find_indice_pair("a") is y.find_indice_pair("a")
    assert z.find_indice_pair("b") is None and z.find_indice_pair(None) is None


@pytest.mark.parametrize("other", [dict(kernel_size=5), dict(kernel_size=3, dilation=2)])
def test_another_window_is_refused(device: torch.device, other: dict) -> None:
    y = spconv.SubMConv3d(4, 4, 3, indice_key="a").to(device)(tensor(device))
    net = spconv.SparseSequential(block=spconv.SubMConv3d(4, 4, indice_key="a", **other)).to(device)
    spconv.assign_name_for_sparse_modules(net)
    with pytest.raises(ValueError, match="'block'.*indice_key 'a'.*kernel_size"):
        net(y)


def test_other_sites_are_refused_though_as_many(device: torch.device) -> None:
    layer = spconv.SubMConv3d(4, 4, 3, indice_key="a").to(device)
    y = layer(tensor(device))
    moved = spconv.SparseConvTensor(
        y.features, y.indices.flip(0).contiguous(), [9, 9, 9], 2, indice_dict=y.indice_dict
    )
    with pytest.raises(ValueError, match="SubMConv3d.*indice_key 'a'.*sites"):
        layer(moved)
    y.indices = y.indices.flip(0).contiguous()
    with pytest.raises(ValueError, match="indice_key 'a'"):
        layer(y)


def test_sites_changed_in_place_are_other_sites(device: torch.device) -> None:
    layer = spconv.SubMConv3d(4, 4, 3, indice_key="a").to(device)
    x = tensor(device)
    x.spatial_shape = [20, 20, 20]
    y = layer(x)
    y.indices[:, 1:] *= 2
    with pytest.raises(ValueError, match="indice_key 'a'"):
        layer(y)
    y.indice_dict = {}
    doubled = layer(y).features
    own = y.features @ layer.weight[:, 1, 1, 1].T + layer.bias  # nothing is near any more
    torch.testing.assert_close(doubled, own, rtol=0, atol=1e-5)


def test_equal_sites_in_a_new_tensor_are_the_same(device: torch.device) -> None:
    down = spconv.SparseConv3d(4, 4, 2, 2, indice_key="d").to(device)
    up = spconv.SparseInverseConv3d(4, 4, 2, "d").to(device)
    y = down(tensor(device))
    rebuilt = spconv.SparseConvTensor(
        y.features, y.indices.clone(), y.spatial_shape, 2, indice_dict=y.indice_dict
    )
    assert torch.equal(up(rebuilt).features, up(y).features)


def test_an_inverse_without_its_forward_layer_is_refused(device: torch.device) -> None:
    up = spconv.SparseInverseConv3d(4, 4, 2, "d").to(device)
    y = spconv.SubMConv3d(4, 4, 3, indice_key="a").to(device)(tensor(device))
    with pytest.raises(ValueError, match="SparseInverseConv3d.*indice_key 'd'.*\\['a'\\]"):
        up(y)
    up.indice_key = "a"
    with pytest.raises(ValueError, match="submanifold"):
        up(y)
    z = spconv.SparseConv3d(4, 4, 3, 2, 1, indice_key="d").to(device)(y)
    up.indice_key = "d"
    with pytest.raises(ValueError, match="kernel_size"):
        up(z)
    with pytest.raises(ValueError, match="sites"):
        same = spconv.SparseInverseConv3d(4, 4, 3, "d").to(device)
        same(spconv.SparseConv3d(4, 4, 2, 2).to(device)(z))


def test_a_key_that_is_taken_is_refused(device: torch.device) -> None:
    y = spconv.SparseConv3d(4, 4, 3, padding=1, indice_key="d").to(device)(tensor(device))
    with pytest.raises(ValueError, match="is taken"):
        spconv.SparseConv3d(4, 4, 3, padding=1, indice_key="d").to(device)(y)
    with pytest.raises(ValueError, match="changes sites"):
        spconv.SubMConv3d(4, 4, 3, indice_key="d").to(device)(y)


def test_inverse_of_a_pooling(device: torch.device) -> None:
    x = tensor(device)
    y = spconv.SparseMaxPool3d(2, 2, indice_key="p").to(device)(x)
    up = spconv.SparseInverseConv3d(4, 6, 2, "p").to(device)
    assert up(y).indices is x.indices


def test_coordinates_of_an_output_belong_to_their_owner(device: torch.device) -> None:
    """What is written into them changes neither the sites nor what the sites say, and is seen by the next layer."""
    x = tensor(device)
    down = spconv.SparseConv3d(4, 4, 2, 2, indice_key="d").to(device)
    y = down(x)
    expected, coords = y.indices.clone(), y.coords
    y.indices.zero_()
    assert torch.equal(coords.indices, expected) and torch.equal(coords.sites.coordinates(), expected)
    assert torch.equal(y.find_indice_pair("d").out_coords.indices, expected)
    assert not y.stands_on(coords)
    assert torch.equal(down(x).indices, expected)
    coords.indices.zero_()
    with pytest.raises(pumice.UserError, match="indices were written into"):
        _ = coords.sites
    assert torch.equal(down(x).indices, expected)


def test_coordinates_are_ordinary_tensors_whoever_reads_them_first(device: torch.device) -> None:
    x = tensor(device)
    y = spconv.SparseConv3d(4, 4, 2, 2).to(device)(x)
    with torch.inference_mode():
        assert len(y.coords.indices) == len(y.indices)
    assert not y.coords.indices.is_inference()

    class Own(torch.Tensor):
        pass

    z = spconv.SparseConv3d(4, 4, 2, 2).to(device)(
        spconv.SparseConvTensor(x.features, x.indices.as_subclass(Own), x.spatial_shape, x.batch_size)
    )
    assert type(z.indices) is torch.Tensor and torch.equal(z.indices, y.indices)


def test_numbers_of_a_window(device: torch.device) -> None:
    layer = spconv.SparseConv3d(4, 4, [3, 2, 1], [2, 1, 3], [1, 0, 0], [2, 1, 1], indice_key="d")
    data = layer.to(device)(tensor(device)).find_indice_pair("d")
    assert (data.ksize, data.stride, data.padding, data.dilation) == ([3, 2, 1], [2, 1, 3], [1, 0, 0], [2, 1, 1])


def test_pairs_can_be_read(device: torch.device) -> None:
    x = tensor(device)
    y = spconv.SparseConv3d(4, 4, 3, 2, 1, indice_key="d").to(device)(x)
    data = y.find_indice_pair("d")
    assert data.ksize == [3, 3, 3] and data.stride == [2, 2, 2] and not data.is_subm
    pairs, numbers = data.indice_pairs, data.indice_pair_num
    assert pairs.shape == (2, 27, len(x.indices)) and numbers.shape == (27,)
    for k in (0, 13, 26):
        count = int(numbers[k])
        fine = data.indices[pairs[0, k, :count].long()]
        coarse = data.out_indices[pairs[1, k, :count].long()]
        offset = torch.tensor([k // 9, k // 3 % 3, k % 3], device=device)
        assert torch.equal(fine[:, 1:], (coarse[:, 1:] * 2 - 1 + offset).int())
        assert (pairs[:, k, count:] == -1).all()
