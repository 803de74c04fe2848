"""MinkowskiEngine's fields at sites that are there already: each site has what its own points give, 0 where there are none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from conftest import random_sites, working_type

from pumice.compat import minkowski as ME

Mode = ME.SparseTensorQuantizationMode
REDUCED: dict[Mode, Callable[[torch.Tensor], torch.Tensor]] = {
    Mode.RANDOM_SUBSAMPLE: lambda rows: rows[0],
    Mode.UNWEIGHTED_AVERAGE: lambda rows: rows.mean(0),
    Mode.UNWEIGHTED_SUM: lambda rows: rows.sum(0),
    Mode.MAX_POOL: lambda rows: rows.amax(0),
}


@pytest.mark.parametrize("mode", REDUCED)
@pytest.mark.parametrize("points", [0, 1, 31, 33, 400])
def test_sites_have_what_their_points_give(device: torch.device, points: int, mode: Mode) -> None:
    cells = random_sites(3, 5, 40).to(device)
    x = ME.SparseTensor(torch.ones(len(cells), 1, device=device), cells)
    which = torch.randint(0, len(cells) - 3, (points,), generator=torch.Generator().manual_seed(1)).to(device)
    near = cells[which].float() + torch.tensor([0, 0.25, 0.5, 0.75], device=device)
    features = torch.randn(points, 2, dtype=working_type(device)).to(device).requires_grad_()
    field = ME.TensorField(features, near, coordinate_manager=x.coordinate_manager)
    y = field.sparse(coordinate_map_key=x.coordinate_map_key, quantization_mode=mode)
    assert torch.equal(y.C, x.C)
    for row, site in zip(y.F, range(len(cells))):
        own = features[which == site]
        expected = REDUCED[mode](own) if len(own) else torch.zeros_like(row)
        torch.testing.assert_close(row, expected)
    y.F.sum().backward()
    assert features.grad is not None and bool(features.grad.isfinite().all())


def test_points_of_a_site_each_come_in_the_order_of_the_sites(device: torch.device) -> None:
    cells = random_sites(3, 5, 40).to(device)
    x = ME.SparseTensor(torch.ones(len(cells), 1, device=device), cells)
    order = torch.randperm(len(cells), generator=torch.Generator().manual_seed(1)).to(device)
    field = ME.TensorField(order[:, None].float(), cells[order].float(), coordinate_manager=x.coordinate_manager)
    y = field.sparse(coordinate_map_key=x.coordinate_map_key, quantization_mode=Mode.NO_QUANTIZATION)
    assert y.F[:, 0].tolist() == list(range(len(cells)))


def test_what_cannot_be_is_refused_as_an_assertion(device: torch.device) -> None:
    cells = torch.tensor([[0, 1], [0, 2]], dtype=torch.int32, device=device)
    x = ME.SparseTensor(torch.ones(2, 1, device=device), cells)
    twice = torch.tensor([[0, 1.0], [0, 1.5]], device=device)
    field = ME.TensorField(torch.ones(2, 1, device=device), twice, coordinate_manager=x.coordinate_manager)
    for key in (None, x.coordinate_map_key):
        with pytest.raises(AssertionError, match="NO_QUANTIZATION: 2 rows are at 1 of . sites: give each site one row"):
            field.sparse(coordinate_map_key=key, quantization_mode=Mode.NO_QUANTIZATION)
    with pytest.raises(AssertionError, match="NO_QUANTIZATION: 2 rows are at 1 of 1 sites"):
        ME.SparseTensor(torch.ones(2, 1, device=device), twice.int(), quantization_mode=Mode.NO_QUANTIZATION)
    with pytest.raises(AssertionError, match=r"SPLAT_LINEAR_INTERPOLATION: call splat\(\)"):
        field.sparse(quantization_mode=Mode.SPLAT_LINEAR_INTERPOLATION)
