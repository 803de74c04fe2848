"""MinkowskiEngine's interface: sums in place change the tensor that others hold too, and transposed layers go back to sites
that are there."""

from __future__ import annotations

from collections.abc import Callable
from operator import iadd, imul, isub, itruediv
from typing import Any

import pytest
import torch
from conftest import random_sites
from deferred_fixtures import switched_on_again  # noqa: F401
from deferred_networks import at_once

from pumice.compat import minkowski as ME

nn = torch.nn
SIGNS = {"+=": iadd, "-=": isub, "*=": imul, "/=": itruediv}


def tensor(count: int, channels: int = 3, seed: int = 0, **more: Any) -> ME.SparseTensor:
    cells = random_sites(3, 9, count, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    return ME.SparseTensor(torch.rand(len(cells), channels, generator=generator).double() + 1, cells, **more)


def beside(x: ME.SparseTensor, features: torch.Tensor) -> ME.SparseTensor:
    return ME.SparseTensor(
        features, coordinate_map_key=x.coordinate_map_key, coordinate_manager=x.coordinate_manager
    )


@pytest.mark.parametrize("count", [0, 1, 33])
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("right", ["tensor", "matrix", "number"])
def test_whoever_holds_the_tensor_has_the_result(right: str, sign: str, count: int) -> None:
    x = tensor(count)
    held, before = x, x.F.clone()
    given = {"tensor": beside(x, before.flip(1)), "matrix": before.flip(1), "number": 2.5}[right]
    x = SIGNS[sign](x, given)
    assert x is held and x.C is held.C
    values = 2.5 if right == "number" else before.flip(1)
    expected = {"+=": before + values, "-=": before - values, "*=": before * values, "/=": before / values}[sign]
    torch.testing.assert_close(held.F, expected, rtol=0, atol=0)


def test_a_field_changes_too() -> None:
    x = ME.TensorField(torch.ones(4, 2), torch.rand(4, 4))
    held = x
    x += x
    assert held is x and bool((held.F == 2).all())


def test_other_sites_are_refused_in_place_as_an_assertion() -> None:
    x = tensor(9)
    y = tensor(5, seed=1, coordinate_manager=x.coordinate_manager)
    for sign, change in SIGNS.items():
        with pytest.raises(AssertionError, match=rf"x \{sign[0]}= y: .*write x = x \{sign[0]} y"):
            change(x, y)
    with pytest.raises(AssertionError, match="different coordinate managers"):
        x += tensor(9)
    assert len(x + y) >= 9


class Residual(nn.Module):
    """Blocks that add in place, of which somebody holds what they are added to."""

    def __init__(self, body: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.conv1 = ME.MinkowskiConvolution(3, 4, 3, dimension=3)
        self.norm1 = ME.MinkowskiBatchNorm(4)
        self.conv2 = ME.MinkowskiConvolution(4, 4, 3, dimension=3)
        self.norm2 = ME.MinkowskiBatchNorm(4)
        self.relu = ME.MinkowskiReLU(inplace=True)
        self.body = body

    def forward(self, x: ME.SparseTensor) -> torch.Tensor:
        return self.body(self, x)


def skip_of_a_norm(net: Residual, x: ME.SparseTensor) -> torch.Tensor:
    y = net.relu(net.norm1(net.conv1(x)))
    skip = out = net.norm2(net.conv2(y))
    out += y
    return skip.F + net.relu(out).F


def input_of_the_block(net: Residual, x: ME.SparseTensor) -> torch.Tensor:
    y = net.norm1(net.conv1(x))
    skip = y
    y += net.norm2(net.conv2(y))
    return skip.F + y.F


def product(net: Residual, x: ME.SparseTensor) -> torch.Tensor:
    y = net.norm1(net.conv1(x))
    skip = z = net.norm2(net.conv2(y))
    z *= y
    z -= y
    return skip.F


def sum_written_out(net: Residual, x: ME.SparseTensor) -> torch.Tensor:
    y = net.relu(net.norm1(net.conv1(x)))
    out = (net.norm2(net.conv2(y)).F + y.F).relu()
    return out + out


def input_written_out(net: Residual, x: ME.SparseTensor) -> torch.Tensor:
    y = net.norm1(net.conv1(x))
    return 2 * (y.F + net.norm2(net.conv2(y)).F)


def product_written_out(net: Residual, x: ME.SparseTensor) -> torch.Tensor:
    y = net.norm1(net.conv1(x))
    return net.norm2(net.conv2(y)).F * y.F - y.F


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(
    ("body", "written_out"),
    [(skip_of_a_norm, sum_written_out), (input_of_the_block, input_written_out), (product, product_written_out)],
)
def test_networks_that_add_in_place_learn_what_the_sums_written_out_learn(
    body: Any, written_out: Any, waits: bool
) -> None:
    def run(body: Any) -> list[torch.Tensor]:
        torch.manual_seed(0)
        net, found = Residual(body).double(), []
        for seed in range(4):
            x = tensor(40, seed=seed)
            x.F.requires_grad_()
            net.zero_grad()
            out = net(beside(x, x.F))
            (out * torch.arange(out.numel()).reshape(out.shape).cos()).sum().backward()
            found += [out.detach(), x.F.grad, *(p.grad for p in net.parameters()), *map(torch.clone, net.buffers())]
        return found

    expected = at_once(lambda: run(written_out))
    for one, two in zip(run(body) if waits else at_once(lambda: run(body)), expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)


# Where transposed layers go.

DOWN = {
    "convolution": lambda: ME.MinkowskiConvolution(3, 3, 2, 2, dimension=3).double(),
    "pool": lambda: ME.MinkowskiMaxPooling(2, 2, dimension=3),
}
UP = {
    "convolution": lambda: ME.MinkowskiConvolutionTranspose(3, 3, 2, 2, dimension=3).double(),
    "pool": lambda: ME.MinkowskiPoolingTranspose(2, 2, dimension=3),
}


@pytest.mark.parametrize("up", UP)
@pytest.mark.parametrize("kept", [0, 1, 7])
def test_a_pruned_coarse_tensor_goes_back_to_the_first_finer_sites(up: str, kept: int) -> None:
    x = tensor(60)
    coarse = DOWN["convolution"]()(x)
    some = ME.MinkowskiPruning()(coarse, torch.arange(len(coarse)) < kept)
    y = UP[up]()(some)
    assert y.coordinate_map_key == x.coordinate_map_key and torch.equal(y.C, x.C)
    near = {tuple(cell) for cell in some.C.tolist()}
    for cell, row in zip(x.C.tolist(), y.F):
        reached = (cell[0], *(v // 2 * 2 for v in cell[1:])) in near
        assert bool(row.any()) == reached


@pytest.mark.parametrize("up", UP)
def test_a_tensor_goes_back_to_the_sites_that_it_came_from(up: str) -> None:
    x = tensor(60)
    pruned = ME.MinkowskiPruning()(x, torch.arange(len(x)) % 3 == 0)
    other = tensor(40, seed=1, coordinate_manager=x.coordinate_manager)
    none = ME.MinkowskiPruning()(x, torch.zeros(len(x), dtype=torch.bool))
    for given in (x, pruned, other, none):
        assert torch.equal(UP[up]()(DOWN["pool"]()(given)).C, given.C)
