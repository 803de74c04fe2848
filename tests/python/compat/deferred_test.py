"""Layers of the three interfaces that are called one by one and run together give what each gives at once."""

from __future__ import annotations

import copy
import os
import random
from typing import Any

import pytest
import torch
from deferred_fixtures import chains, switched_on_again  # noqa: F401
from deferred_networks import at_once
from deferred_programs import INTERFACES, Program, scene

import pumice

PASSES = 4
PROGRAMS = int(os.environ.get("PUMICE_PROGRAMS", "60"))  # of each interface


def one_pass(net: Program, seed: int, number: int, learns: bool) -> dict[str, Any]:
    """All that a pass leaves behind, by name."""
    by = INTERFACES[net.interface]
    cells, features = scene(seed)
    features.requires_grad_(learns)
    net.zero_grad()
    with torch.set_grad_enabled(learns):
        out, read = net(by.tensor(cells, features), random.Random(1000 * seed + number))
        loss = by.features(out).square().mean() + sum(read, torch.zeros((), dtype=torch.float64))
    if learns and loss.requires_grad:
        loss.backward()
    gradients = {f"gradient of {name}": parameter.grad for name, parameter in net.named_parameters()}
    return {
        "features": by.features(out), "loss": loss, "gradient of the input": features.grad,
        **gradients, **dict(net.named_buffers()),
    }  # fmt: skip


class Called(torch.nn.Module):
    """A function that calls layers, as the module whose call is outermost."""

    def __init__(self, function: Any, *layers: torch.nn.Module) -> None:
        super().__init__()
        self.function, self.layers = function, torch.nn.ModuleList(layers)

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def expect_as_at_once(make: Any, interface: str, seed: int, passes: int) -> None:
    """Passes of the program `make(seed, interface)`, some learning, leave behind what those of layers at once do."""
    choose = random.Random(seed)
    net = make(seed, interface).double()
    for parameter in net.parameters():
        parameter.requires_grad_(choose.random() < 0.9 or seed % 3 > 0)
    like = copy.deepcopy(net)
    for number in range(passes):
        learns = choose.random() < 0.7
        net.train(choose.random() < 0.7)
        like.train(net.training)
        found = one_pass(net, seed, number, learns)
        expected = at_once(lambda: one_pass(like, seed, number, learns))
        for name, value in expected.items():
            told = f"program {seed} of {interface}, pass {number}: {name}"
            assert (value is None) == (found[name] is None), told
            if value is not None:
                torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-10, msg=lambda text: f"{told}: {text}")


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("first", range(0, PROGRAMS, 20))
def test_programs_in_users_style_give_what_layers_at_once_give(interface: str, first: int) -> None:
    for seed in range(first, first + 20):
        expect_as_at_once(Program, interface, seed, PASSES)


@pytest.mark.parametrize("interface", ["torchsparse", "minkowski"])
@pytest.mark.parametrize("training", [True, False])
def test_a_stage_is_one_chain_from_the_second_pass_on(
    interface: str, training: bool, chains: list[int]
) -> None:
    by = INTERFACES[interface]
    blocks = [
        [by.convolution(3, False, ""), by.norm(0.1), by.relu(True), by.convolution(3, False, ""), by.norm(0.1)]
        for _ in range(2)
    ]
    last = by.relu(False)
    for layer in [layer for block in blocks for layer in block]:
        layer.double().train(training)
    cells, features = scene(1)

    class Stage(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = torch.nn.ModuleList(map(torch.nn.ModuleList, blocks))

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                out = x
                for layer in block:
                    out = layer(out)
                x = last(out + x)
            assert not chains
            return x

    stage = Stage()
    with torch.set_grad_enabled(training):
        stage(by.tensor(cells, features))
        assert not chains
        stage(by.tensor(cells, features))
    assert chains == [4]


@pytest.mark.parametrize("interface", ["torchsparse", "minkowski"])
def test_what_is_held_on_the_way_keeps_its_numbers(interface: str) -> None:
    by = INTERFACES[interface]
    conv, norm, relu = by.convolution(3, False, "").double(), by.norm(0.1).double(), by.relu(True)
    cells, features = scene(2)

    def run() -> list[torch.Tensor]:
        convolved = conv(by.tensor(cells, features))
        normed = norm(convolved)
        rectified = relu(normed)  # in place, which `normed` shares
        return [by.features(x).detach().clone() for x in (rectified, normed, convolved)]

    called = Called(run, conv, norm)
    found = [called() for _ in range(3)]
    norm.bn.reset_running_stats() if hasattr(norm, "bn") else norm.reset_running_stats()
    pumice.compat.defer_layers(False)
    for results in found:
        for one, two in zip(results, run()):
            torch.testing.assert_close(one, two)


@pytest.mark.parametrize("interface", ["spconv", "torchsparse"])
def test_a_pointwise_layer_takes_rows_that_are_no_sites(interface: str) -> None:
    """One that is a matrix product looks no site up, deferred or not: a site may occur twice, or lie outside."""
    by = INTERFACES[interface]
    conv, norm = by.convolution(1, False, "").double(), by.norm(0.1).double()
    cells, features = scene(3)
    cells[1] = cells[0]
    cells[2, 1:] = 1000
    called = Called(lambda x: by.call(norm, conv(x)), conv, norm)
    for learns in (True, False):
        norm.train(learns)
        for _ in range(3):
            with torch.set_grad_enabled(learns):
                found = by.features(called(by.tensor(cells, features)))
        pumice.compat.defer_layers(False)
        expected = by.features(by.call(norm, conv(by.tensor(cells, features))))
        pumice.compat.defer_layers(True)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_change_in_place_comes_after_the_layers_called_before_it(interface: str) -> None:
    by = INTERFACES[interface]
    conv, branch = (by.convolution(3, False, "").double() for _ in range(2))
    norm, relu = by.norm(0.1).double().eval(), by.relu(True)
    cells, features = scene(2)

    def run() -> list[torch.Tensor]:
        normed = by.call(norm, conv(by.tensor(cells, features)))
        branched = branch(normed)
        rectified = by.call(relu, normed)  # in place, behind the branch
        return [by.features(x).clone() for x in (branched, rectified)]

    called = Called(run, conv, branch, norm)
    with torch.no_grad():
        found = [called() for _ in range(4)]
        pumice.compat.defer_layers(False)
        expected = run()
    for results in found:
        for one, two in zip(results, expected):
            torch.testing.assert_close(one, two)
