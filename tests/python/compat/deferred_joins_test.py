"""Joins of channels and shortcuts of one offset run in the chains of layers that are called one by one."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
import torch
from conftest import random_sites
from deferred_fixtures import chains, joins, switched_on_again  # noqa: F401
from deferred_join_programs import Joins
from deferred_networks import agree, at_once, on_threads, sparse
from deferred_programs import CHANNELS, INTERFACES, scene
from deferred_test import Called, expect_as_at_once
from torch.utils.checkpoint import checkpoint

import pumice
import pumice.compat.spconv as spconv
from pumice.nn.deferred import Deferred, matrices

nn = torch.nn
PASSES = 6
PROGRAMS = int(os.environ.get("PUMICE_PROGRAMS", "50"))  # of each interface


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("first", range(0, PROGRAMS, 25))
def test_programs_with_joins_give_what_layers_at_once_give(interface: str, first: int) -> None:
    for seed in range(first, first + 25):
        expect_as_at_once(Joins, interface, seed, PASSES)


# What joins are made of, and what becomes of them.


def link(cin: int, size: int = 3, **options: Any) -> list[nn.Module]:
    return [spconv.SubMConv3d(cin, CHANNELS, size, bias=False, **options), nn.BatchNorm1d(CHANNELS), nn.ReLU()]


class Joined(nn.Module):
    """Two branches, `join` of their features, and a layer that takes that."""

    def __init__(self, join: Any, inputs: int = 2 * CHANNELS) -> None:
        super().__init__()
        self.left, self.right = spconv.SparseSequential(*link(CHANNELS)), spconv.SparseSequential(*link(CHANNELS))
        self.last = spconv.SparseSequential(*link(inputs))
        self.join = join

    def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
        left, right = self.left(x), self.right(x)
        return self.last(left.replace_feature(self.join(left.features, right.features)))


def results(net: nn.Module, training: bool, passes: int = 5) -> list[torch.Tensor | None]:
    """The outputs of the last pass, all gradients and statistics."""
    net.train(training)
    cells, features = scene(3)
    for _ in range(passes):
        net.zero_grad()
        given = features.clone().requires_grad_(training)
        with torch.set_grad_enabled(training):
            y = net(sparse(cells, given)).features
        if training:
            y.square().sum().backward()
    return [y, given.grad, *(parameter.grad for parameter in net.parameters()), *net.buffers()]


def expect_same(net: nn.Module, training: bool) -> None:
    like = copy.deepcopy(net)
    for one, two in zip(results(net, training), at_once(lambda: results(like, training)), strict=True):
        agree(one, two)


N = len(scene(3)[0])
WAITS: dict[str, Any] = {
    "a list": lambda a, b: torch.cat([a, b], 1),
    "a tuple": lambda a, b: torch.cat((a, b), dim=1),
    "the last axis": lambda a, b: torch.cat([b, a], dim=-1),
    "names": lambda a, b: torch.cat(tensors=[a, b], dim=1),
    "concat": lambda a, b: torch.concat([a, b], 1),
    "concatenate": lambda a, b: torch.concatenate([a, b], axis=1),
    "the same twice": lambda a, b: torch.cat([b, b], 1),
    "a tensor of the user's": lambda a, b: torch.cat([torch.ones(N, CHANNELS, dtype=a.dtype), b], 1),
    "a view of one": lambda a, b: torch.cat([a, torch.linspace(-1, 1, 2 * N * CHANNELS, dtype=a.dtype).reshape(N, -1)[:, ::2]], 1),
}
AT_ONCE: dict[str, Any] = {
    "three": lambda a, b: torch.cat([a, b, a], 1)[:, : 2 * CHANNELS].contiguous(),
    "one": lambda a, b: torch.cat([a, b][:1], 1).repeat(1, 2),
    "rows": lambda a, b: torch.cat([a, b], 0).reshape(-1, 2 * CHANNELS),
    "numbers of another type": lambda a, b: torch.cat([a, b.float()], 1),
    "a parameter": lambda a, b: torch.cat([a, nn.Parameter(torch.ones(N, CHANNELS, dtype=a.dtype))], 1),
    "into a tensor": lambda a, b: torch.cat([a.detach(), b.detach()], 1, out=a.new_empty(0)),
    "stacked": lambda a, b: torch.hstack([a, b]),
    "changed": lambda a, b: torch.cat([a, b], 1).tanh(),
    "read": lambda a, b: (lambda c: c + c.mean())(torch.cat([a, b], 1)),
    "a part of it": lambda a, b: torch.cat([a, b, a], 1)[:, CHANNELS:],
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("how", [*WAITS, *AT_ONCE])
def test_whatever_is_joined(how: str, training: bool, chains: list[int], joins: list[int]) -> None:
    net = Joined({**WAITS, **AT_ONCE}[how]).double()
    expect_same(net, training)
    joins.clear()
    results(net, training, 1)
    assert sum(joins) == (1 if how in WAITS else 0), "the convolution takes both"


@pytest.mark.parametrize("count", [0, 1, 2, 31, 33])
def test_sizes(count: int) -> None:
    net = Joined(WAITS["a list"]).double().eval()
    cells = random_sites(3, 30, 100)[:count]
    features = torch.randn(count, CHANNELS, dtype=torch.float64)

    def run() -> torch.Tensor:
        with torch.no_grad():
            for _ in range(4):
                y = net(spconv.SparseConvTensor(features, cells, [30] * 3, 2)).features
        return y

    agree(run(), at_once(run))
    assert run().shape == (count, CHANNELS)


def test_branches_of_different_types_under_autocast_are_promoted() -> None:
    net = Joined(lambda a, b: torch.cat([a, b.float()], 1)).eval()
    cells, features = scene(3, torch.float32)
    kinds = []
    net.last.register_forward_pre_hook(lambda _, args: kinds.append(args[0].features.dtype))

    def run() -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            for _ in range(4):
                y = net(sparse(cells, features)).features
        return y

    torch.testing.assert_close(run(), at_once(run), rtol=0.1, atol=0.1)
    assert set(kinds) == {torch.float32}


class Uses(nn.Module):
    """A join, of which `use` makes the output; the join lives on in a variable, as in most networks."""

    def __init__(self, use: Any, *layers: nn.Module) -> None:
        super().__init__()
        self.left, self.right = spconv.SparseSequential(*link(CHANNELS)), spconv.SparseSequential(*link(CHANNELS))
        self.layers = nn.ModuleList(layers)
        self.use = use

    def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
        left, right = self.left(x), self.right(x)
        joined = left.replace_feature(torch.cat([left.features, right.features], 1))
        return self.use(self.layers, left, right, joined)


def taken_twice(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    one, two = layers[0](joined), layers[1](joined)
    return one.replace_feature(one.features + two.features)


def shortcut(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    out = layers[0](joined)
    return out.replace_feature(torch.relu(out.features + layers[1](joined.features)))


def read_behind(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    out = layers[0](joined)
    return out.replace_feature(out.features + joined.features.mean())


def part_read_behind(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    out = layers[0](joined)
    return out.replace_feature(out.features * left.features)


def part_changed_behind(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    """The join was made of what it was before."""
    left.features.mul_(2)
    out = layers[0](joined)
    return out.replace_feature(out.features + left.features)


def join_changed(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    joined.features.sub_(0.1)
    out = layers[0](joined)
    return out.replace_feature(torch.cat([out.features, left.features, joined.features], 1))


def own_memory(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    joined.features[:, :CHANNELS] = 0
    return joined.replace_feature(joined.features + left.features.mean())


def no_norm(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    return layers[0][0](joined)


def dropped(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    return layers[0](left.replace_feature(torch.cat([left.features, left.features], 1)))


def summed(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    other = right.replace_feature(torch.cat([right.features, left.features], 1))
    return layers[0](joined.replace_feature(joined.features + other.features))


def returned(layers: Any, left: Any, right: Any, joined: Any) -> Any:
    layers[0](joined)
    return joined


USES = [taken_twice, shortcut, read_behind, part_read_behind, join_changed, own_memory, no_norm, dropped, summed, returned]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("use", USES)
def test_whatever_becomes_of_a_join(use: Any, training: bool) -> None:
    linear = nn.Sequential(nn.Linear(2 * CHANNELS, CHANNELS, bias=False), nn.BatchNorm1d(CHANNELS))
    second = linear if use is shortcut else spconv.SparseSequential(*link(2 * CHANNELS))
    expect_same(Uses(use, spconv.SparseSequential(*link(2 * CHANNELS)), second).double(), training)


def test_a_part_that_is_changed_before_the_join_is_made_is_seen() -> None:
    """One that waits is computed before; one that the user holds is not watched, and the change is refused."""
    cells, features = scene(3)
    net = Uses(part_changed_behind, spconv.SparseSequential(*link(2 * CHANNELS))).double().eval()
    expect_same(net, False)

    class Given(Joined):
        changes = False

        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            left = self.left(x)
            y = left.replace_feature(torch.cat([left.features, own], 1))
            if self.changes:
                own.mul_(2)
            return self.last(y)

    net = Given(None).double().eval()
    own = torch.ones_like(features)
    with torch.no_grad():
        for _ in range(4):
            net(sparse(cells, features))
        net.changes = True
        with pytest.raises(pumice.UserError, match="features that .* changed between its call and the first use"):
            net(sparse(cells, features))
        net.changes = False
        assert net(sparse(cells, features)).features.isfinite().all()


def test_gradients_hooks_and_leaves_of_parts() -> None:
    """Gradients reach a leaf beside a result, and hooks of tensors that are computed."""
    seen: dict[str, list[Any]] = {"leaf": [], "hook": []}
    leaf = torch.ones(N, CHANNELS, dtype=torch.float64, requires_grad=True)

    class Hooked(Joined):
        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            left = self.left(x)
            beside = leaf * 2
            beside.register_hook(lambda gradient: seen["hook"].append(gradient.clone()))
            return self.last(left.replace_feature(torch.cat([left.features, beside], 1)))

    net = Hooked(None).double()
    for call in (lambda: results(net, True), lambda: at_once(lambda: results(net, True))):
        leaf.grad = None
        call()
        seen["leaf"].append(leaf.grad)
    agree(*seen["leaf"])
    assert len(seen["hook"]) == 10
    agree(2 * seen["hook"][4], 2 * seen["hook"][-1])


@pytest.mark.parametrize("reentrant", [True, False])
def test_joins_of_checkpointed_layers_keep_their_gradients(reentrant: bool) -> None:
    class Checkpointed(Joined):
        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            left, right = self.left(x), self.right(x)

            def run(features: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
                return self.last(left.replace_feature(torch.cat([features, others], 1))).features

            made = checkpoint(run, left.features, right.features, use_reentrant=reentrant)
            return left.replace_feature(torch.cat([made, right.features], 1))

    net = Checkpointed(None).double()
    like = copy.deepcopy(net)
    for one, two in zip(results(net, True)[:-9], at_once(lambda: results(like, True))[:-9], strict=True):
        agree(one, two)  # but for statistics, which the second run moves again


def test_threads_and_inference_mode() -> None:
    net = Joined(WAITS["a list"]).double()
    results(net, False)
    cells, features = scene(3)
    with torch.no_grad():
        expected = at_once(lambda: net(sparse(cells, features)).features)

    def run() -> None:
        with torch.inference_mode():
            for _ in range(20):
                assert torch.allclose(net(sparse(cells, features)).features, expected, rtol=1e-9)

    on_threads(run)


def test_a_compiled_network_joins_as_before_it_waited() -> None:
    net = Joined(WAITS["a list"]).double()
    results(net, False)
    cells, features = scene(3)
    with torch.no_grad():
        made = torch.compile(net, backend="eager")(sparse(cells, features)).features
        agree(made, at_once(lambda: net(sparse(cells, features)).features))


def test_a_join_is_asked_for_without_being_made(chains: list[int]) -> None:
    seen: list[Any] = []

    def join(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([a, b], 1)
        seen.append((type(joined), tuple(joined.shape), joined.dtype, joined.requires_grad, len(chains)))
        return joined

    net = Joined(join).double()
    cells, features = scene(3)
    for _ in range(3):
        chains.clear()
        net(sparse(cells, features))
    assert seen[-1] == (Deferred, (N, 2 * CHANNELS), torch.float64, True, 0)


def test_a_norm_of_a_join_is_not_waited_for_from_the_next_pass_on() -> None:
    """A join that something else than a layer takes is made at once, and no longer described."""
    described: list[Any] = []
    norm = nn.BatchNorm1d(2 * CHANNELS)

    def use(layers: Any, left: Any, right: Any, joined: Any) -> Any:
        described.append(type(joined.features))
        return layers[0](joined.replace_feature(torch.relu(layers[1](joined.features))))

    net = Uses(use, spconv.SparseSequential(*link(2 * CHANNELS)), norm).double()
    expect_same(net, True)
    described.clear()
    results(net, True, 1)
    assert described == [torch.Tensor]


@pytest.mark.parametrize("interface", ["torchsparse", "minkowski"])
@pytest.mark.parametrize("training", [True, False])
def test_joins_of_interfaces_whose_layers_take_the_tensor(
    interface: str, training: bool, chains: list[int], joins: list[int]
) -> None:
    by = INTERFACES[interface]
    layers = [
        layer.double().train(training)
        for cin in (CHANNELS, 2 * CHANNELS, 2 * CHANNELS)
        for layer in (by.convolution(3, False, "", cin), by.norm(0.1))
    ]
    relu = by.relu(True)
    cells, features = scene(1)

    def run(x: Any) -> Any:
        left = relu(layers[1](layers[0](x)))
        joined = by.join(left, x)
        one, two = relu(layers[3](layers[2](joined))), layers[5](layers[4](joined))
        del joined
        return relu(two + one)

    called = Called(run, *layers)
    with torch.set_grad_enabled(training):
        for _ in range(2):
            chains.clear()
            joins.clear()
            found = by.features(called(by.tensor(cells, features)))
        assert chains == [3] and joins == [2]
        for layer in layers:
            getattr(layer, "bn", layer).reset_running_stats() if "running" in str(list(layer.state_dict())) else None
        pumice.compat.defer_layers(False)
        torch.testing.assert_close(found, by.features(run(by.tensor(cells, features))))


# Linear layers.


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("what", ["a link", "bias", "no norm", "read", "two"])
def test_linear_layers_of_features(what: str, training: bool, chains: list[int]) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.body = spconv.SparseSequential(*link(CHANNELS)), spconv.SparseSequential(*link(CHANNELS)[:2])
            self.linear = nn.Linear(CHANNELS, CHANNELS, bias=what == "bias")
            self.other = nn.Linear(CHANNELS, CHANNELS, bias=False)
            self.norm, self.norm2 = nn.BatchNorm1d(CHANNELS), nn.BatchNorm1d(CHANNELS)

        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            x = self.stem(x)
            skip = self.linear(x.features)
            if what != "no norm":
                skip = self.norm(skip)
            if what == "read":
                skip = skip * skip.mean()
            y = self.body(x)
            y = y.replace_feature(torch.relu(y.features + skip))
            if what == "two":
                y = y.replace_feature(torch.relu(self.norm2(self.other(y.features)) + y.features))
            return y

    net = Net().double()
    expect_same(net, training)
    chains.clear()
    results(net, training, 1)
    links = {"a link": [3], "bias": [1, 1], "no norm": [1, 1], "read": None, "two": [4]}[what]
    assert links is None or sorted(chains) == links


def test_weights_of_linear_layers_are_kept_nowhere() -> None:
    """Copies and files of a network are what they were, and a layer that is gone leaves nothing."""
    before = len(matrices._known)
    net = Uses(shortcut, spconv.SparseSequential(*link(2 * CHANNELS)), nn.Sequential(
        nn.Linear(2 * CHANNELS, CHANNELS, bias=False), nn.BatchNorm1d(CHANNELS)
    )).double()  # fmt: skip
    names = set(vars(net.layers[1][0]))
    results(net, False)
    assert len(matrices._known) == before + 1
    assert set(vars(net.layers[1][0])) == names and not vars(net.layers[1][0].weight)
    del net
    assert len(matrices._known) == before
