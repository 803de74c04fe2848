"""Where layers lead: back to the sites of an earlier stage, and never to others."""

from __future__ import annotations

import pytest
import torch
from conftest import close, random_tensor, working_type

import pumice
from pumice import nn


def up_layer(kernel: int, device: torch.device, stride: int = 2) -> torch.nn.Module:
    layer = nn.ConvTranspose3d(4, 3, kernel, stride, padding=(kernel - 1) // 2)
    return layer.to(device, working_type(device))


@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("down", ["Conv3d", "MaxPool"])
def test_transposed_goes_back_by_itself(device: torch.device, down: str, kernel: int) -> None:
    """To where a layer of its stride came from, whatever the kernels."""
    type_ = working_type(device)
    fine = random_tensor(dtype=type_, device=device)
    layer = nn.Conv3d(4, 4, 2, 2).to(device, type_) if down == "Conv3d" else nn.MaxPool(2)
    coarse = layer(fine)
    up = up_layer(kernel, device)
    back = up(coarse)
    assert back.coords.is_same(fine.coords)
    assert torch.equal(back.features, up(coarse, fine).features)
    far = random_tensor(dtype=type_, device=device)  # the same cells, and none of its maps
    assert not back.coords.is_same(far.coords)
    with torch.no_grad():
        searched = up(coarse, far)  # through a map of its own
    close(back.features, searched.features, 100)


def test_transposed_goes_back_through_all_stages(device: torch.device) -> None:
    type_ = working_type(device)
    stages = [random_tensor(extent=16, dtype=type_, device=device)]
    for _ in range(3):
        stages.append(nn.Conv3d(4, 4, 2, 2).to(device, type_)(stages[-1]))
    x = stages[-1]
    for stage in reversed(stages[:-1]):
        x = up_layer(3, device)(x)
        assert x.coords.is_same(stage.coords)
        x = x.replace(features=torch.cat([x.features, x.features[:, :1]], 1))


def test_nothing_leads_to_sites_that_are_only_equal(device: torch.device) -> None:
    type_ = working_type(device)
    fine = random_tensor(dtype=type_, device=device)
    coarse = nn.Conv3d(4, 4, 2, 2).to(device, type_)(fine)
    same = pumice.SparseTensor(coarse.indices, coarse.features, batch_size=2, stride=[2, 2, 2])
    with pytest.raises(pumice.UserError, match="no layer of stride"):
        up_layer(2, device)(same)
    with pytest.raises(pumice.UserError, match="no layer of stride"):
        up_layer(3, device, stride=3)(coarse)


def test_a_way_up_is_not_taken_for_a_way_down(device: torch.device) -> None:
    """A map onto finer sites leads to them, but no strided convolution does."""
    type_ = working_type(device)
    fine = random_tensor(dtype=type_, device=device)
    coarse = nn.Conv3d(4, 4, 3, 2, 1).to(device, type_)(fine)
    nn.ConvTranspose3d(4, 4, 2, 2).to(device, type_)(coarse, fine)
    with pytest.raises(pumice.UserError, match="none to invert"):
        nn.InverseConv3d(4, 3, 2, 2).to(device, type_)(fine)
    with pytest.raises(pumice.UserError, match="no layer of stride"):
        up_layer(2, device)(fine)


def test_what_leads_to_sites_from_others_as_fine_is_no_way_back(device: torch.device) -> None:
    """The offsets of a transposed map point the other way than those of a strided one, which the same window reads."""
    type_ = working_type(device)
    x = random_tensor(dtype=type_, device=device)

    def two_sets() -> tuple[pumice.SparseTensor, pumice.SparseTensor]:
        torch.manual_seed(0)
        own = pumice.SparseTensor(x.indices, x.features)
        there = nn.Conv3d(4, 4, 3, 1, 1).to(device, type_)(own)
        return there, nn.Conv3d(4, 4, (3, 1, 1), 1, (1, 0, 0)).to(device, type_)(own)

    up = up_layer(3, device, stride=1)
    there, aside = two_sets()
    expected = up(there, aside).features
    there, aside = two_sets()
    up(aside, there)
    assert torch.equal(up(there, aside).features, expected)
    assert len(up(there)) == len(x), "back to where the only strided layer came from"

