"""Rows of every layer of the three interfaces: where sites are kept, output rows permute with the input's; where
sites are made, the map from site to feature stays, and rows come in the order that the peer has.

That order is first come in MinkowskiEngine's interface. spconv leaves it open, and TorchSparse takes it from the
sites alone, so in their interfaces it does not move with the input's rows. Excepted are RANDOM_SUBSAMPLE and
RemoveDuplicate, which keep the first of several rows of a site, and what draws random numbers in training.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from conftest import random_sites, working_type
from row_order_cases import CHANNELS, EXCEPTED, EXTENT, INTERFACES, Case, Interface


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(interface, case, id=f"{name}-{layer}")
        for name, (_, interface) in INTERFACES.items()
        for layer, case in getattr(interface, kind).items()
    ]


class Twice:
    """A layer on the same sites in two orders."""

    def __init__(self, interface: Interface, case: Case, device: torch.device) -> None:
        dimension = case.dimension
        self.cells = random_sites(dimension, EXTENT, {1: 9, 2: 60}.get(dimension, 250), seed=dimension).to(device)
        features = torch.randn(len(self.cells), CHANNELS, dtype=working_type(device)).to(device)
        self.order = torch.randperm(len(self.cells), generator=torch.Generator().manual_seed(1)).to(device)
        layer = case.make()
        if isinstance(layer, torch.nn.Module):
            layer.to(device, working_type(device))
        self.first = case.call(layer, interface.tensor(features, self.cells))
        self.second = case.call(layer, interface.tensor(features[self.order], self.cells[self.order]))


def close(left: torch.Tensor, right: torch.Tensor) -> None:
    bound = 1e-10 if left.dtype is torch.float64 else 1e-4
    torch.testing.assert_close(left, right, rtol=bound, atol=bound)


@pytest.mark.parametrize("interface, case", cases("keeps"))
def test_kept_sites_permute_with_the_input(device: torch.device, interface: Interface, case: Case) -> None:
    run = Twice(interface, case, device)
    features, cells = interface.rows(run.first)
    assert torch.equal(cells.int(), run.cells) and len(features) == len(cells)
    permuted, permuted_cells = interface.rows(run.second)
    assert torch.equal(permuted_cells.int(), run.cells[run.order])
    close(permuted, features[run.order])


@pytest.mark.parametrize("interface, case", cases("makes"))
def test_made_sites_keep_their_features(device: torch.device, interface: Interface, case: Case) -> None:
    run = Twice(interface, case, device)
    orders = []
    for y, given in ((run.first, run.cells), (run.second, run.cells[run.order])):
        features, cells = interface.rows(y)
        orders.append([tuple(cell) for cell in cells.tolist()])
        if case.leads is not None:
            met = [cell for given_cell in given.tolist() for cell in case.leads(tuple(given_cell))]
            assert orders[-1] == list(dict.fromkeys(met))
    assert len(orders[0]) > 1 and set(orders[0]) == set(orders[1])
    at = {cell: row for row, cell in enumerate(orders[1])}
    there = torch.tensor([at[cell] for cell in orders[0]], device=device)
    close(interface.rows(run.second)[0][there], interface.rows(run.first)[0])


@pytest.mark.parametrize("interface, case", cases("items"))
def test_what_has_no_rows_of_sites_does_not_change(
    device: torch.device, interface: Interface, case: Case
) -> None:
    run = Twice(interface, case, device)
    first, second = (y if isinstance(y, torch.Tensor) else interface.rows(y)[0] for y in (run.first, run.second))
    close(second, first)


@pytest.mark.parametrize("name", INTERFACES)
def test_every_layer_is_here(name: str) -> None:
    package, interface = INTERFACES[name]
    layers = {
        layer for layer in dir(package)
        if inspect.isclass(getattr(package, layer)) and issubclass(getattr(package, layer), torch.nn.Module)
    }
    known = {case.split(" ")[0].rstrip(",") for kind in interface[2:] for case in kind}
    assert layers - known - EXCEPTED[name] == set() and known <= layers


def test_made_sites_of_spconv_and_torchsparse_come_in_an_order_of_their_own(device: torch.device) -> None:
    for _, interface in (INTERFACES["spconv"], INTERFACES["torchsparse"]):
        for name, case in interface.makes.items():
            if name == "AddTableMisaligned":  # those of the left first
                continue
            run = Twice(interface, case, device)
            assert torch.equal(interface.rows(run.first)[1], interface.rows(run.second)[1]), name
