"""Layers that wait, where torch.utils.checkpoint runs code twice and where hooks watch: as if layers computed at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from deferred_fixtures import switched_on_again  # noqa: F401
from deferred_networks import Block, agree, at_once, sparse
from deferred_programs import CHANNELS, scene
from torch.utils.checkpoint import checkpoint

import pumice
import pumice.compat.spconv as spconv

nn = torch.nn

PASSES = 6
Sparse = spconv.SparseConvTensor


class Parts(nn.Module):
    """A stem in a container, two convolutions with their norms and a residual block; `body` says how they are called."""

    def __init__(self, body: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.stem = spconv.SparseSequential(
            spconv.SubMConv3d(CHANNELS, CHANNELS, 3, bias=False, indice_key="a"), nn.BatchNorm1d(CHANNELS), nn.ReLU(),
        )  # fmt: skip
        self.conv1 = spconv.SubMConv3d(CHANNELS, CHANNELS, 3, bias=False, indice_key="a")
        self.norm1 = nn.BatchNorm1d(CHANNELS)
        self.conv2 = spconv.SubMConv3d(CHANNELS, CHANNELS, 3, bias=False, indice_key="a")
        self.norm2 = nn.BatchNorm1d(CHANNELS)
        self.block = Block(CHANNELS, "a")
        self.body = body

    def forward(self, x: Sparse) -> torch.Tensor:
        return self.body(self, x)


def block_of_the_features(net: Parts, x: Sparse, reentrant: bool) -> torch.Tensor:
    y = net.stem(x)
    return checkpoint(lambda f: net.block(y.replace_feature(f)).features, y.features, use_reentrant=reentrant)


def two_convolutions(net: Parts, x: Sparse, reentrant: bool) -> torch.Tensor:
    y = net.stem(x)
    return checkpoint(
        lambda f: net.conv2(net.conv1(y.replace_feature(f))).features, y.features, use_reentrant=reentrant
    )


def a_norm(net: Parts, x: Sparse, reentrant: bool) -> torch.Tensor:
    y = net.conv1(net.stem(x))
    return checkpoint(lambda f: torch.relu(net.norm1(f)), y.features, use_reentrant=reentrant)


def from_a_norm_on(net: Parts, x: Sparse, reentrant: bool) -> torch.Tensor:
    y = net.conv1(x)

    def rest(f: torch.Tensor) -> torch.Tensor:
        z = net.conv2(y.replace_feature(torch.relu(net.norm1(f))))
        return net.norm2(z.features)

    return torch.relu(checkpoint(rest, y.features, use_reentrant=reentrant))


def a_sum(net: Parts, x: Sparse, reentrant: bool) -> torch.Tensor:
    y = net.stem(x)
    f = net.norm1(net.conv1(y).features)
    return checkpoint(lambda one, two: torch.relu(one + two), f, y.features, use_reentrant=reentrant)


def the_features_twice(net: Parts, x: Sparse, reentrant: bool) -> torch.Tensor:
    y = net.stem(x)
    f = y.features + checkpoint(torch.tanh, y.features, use_reentrant=reentrant)
    return net.block(y.replace_feature(f)).features


def results(net: Parts, hooked: Callable[[Parts, int], None] | None = None) -> list[Any]:
    """Of six passes: outputs, gradients and buffers."""
    found: list[Any] = []
    for number in range(PASSES):
        if hooked is not None:
            hooked(net, number)
        cells, features = scene(number)
        features.requires_grad_()
        net.zero_grad()
        out = net(sparse(cells, features))
        out.square().sum().backward()
        found += [out.detach(), features.grad, *(p.grad for p in net.parameters()), *map(torch.clone, net.buffers())]
    return found


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize(
    "body", [block_of_the_features, two_convolutions, a_norm, from_a_norm_on, a_sum, the_features_twice]
)
def test_checkpoints_give_what_layers_give_that_compute_at_once(
    body: Callable[..., torch.Tensor], reentrant: bool
) -> None:
    net = Parts(lambda net, x: body(net, x, reentrant)).double()
    like = copy.deepcopy(net)
    expected = at_once(lambda: results(like))
    assert any(value is not None for value in expected[1:3])
    for one, two in zip(results(net), expected, strict=True):
        agree(one, two)


def test_what_is_saved_on_the_cpu_gives_the_same() -> None:
    def body(net: Parts, x: Sparse) -> torch.Tensor:
        y = net.conv1(net.stem(x))
        with torch.autograd.graph.save_on_cpu():
            y = net.conv2(y.replace_feature(torch.relu(net.norm1(y.features))))
        return net.norm2(y.features)

    net = Parts(body).double()
    like = copy.deepcopy(net)
    expected = at_once(lambda: results(like))
    for one, two in zip(results(net), expected, strict=True):
        agree(one, two)


@pytest.mark.parametrize("since", range(PASSES))
def test_a_norm_that_gets_a_backward_hook_keeps_its_gradient(since: int) -> None:
    def body(net: Parts, x: Sparse) -> torch.Tensor:
        y = net.conv1(net.stem(x))
        y = net.conv2(y.replace_feature(torch.relu(net.norm1(y.features))))
        return net.norm2(y.features)

    def hooked(net: Parts, number: int) -> None:
        if number == since:
            net.norm2.register_full_backward_hook(lambda module, given, out: (2 * given[0],))

    net = Parts(body).double()
    like = copy.deepcopy(net)
    expected = at_once(lambda: results(like, hooked))
    for one, two in zip(results(net, hooked), expected, strict=True):
        agree(one, two)


def test_a_block_of_the_users_own_with_a_backward_hook_says_that_its_gradient_ends() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(CHANNELS)

        def forward(self, f: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.norm(f))

    own = Own()
    net = Parts(lambda net, x: own(net.conv1(x).features)).double()
    net.own = own.double()
    results(net)
    own.register_full_backward_hook(lambda module, given, out: (2 * given[0],))
    cells, features = scene(1)
    with pytest.raises(pumice.UserError, match=r"a module's backward hook.*x\.features\.clone\(\)"):
        net(sparse(cells, features)).sum().backward()
    results(net)  # which is known from here on
