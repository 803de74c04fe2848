"""Nothing that waits outlives the call of the outermost module: statistics, gradients, failures, threads, and what
people do between calls."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from deferred_fixtures import switched_on_again  # noqa: F401
from deferred_networks import Block, Pair, agree, at_once, on_threads, pair, sparse
from deferred_programs import CHANNELS, scene
from torch.utils.checkpoint import checkpoint

import pumice
import pumice.compat.spconv as spconv
from pumice.nn.deferred import running

nn = torch.nn

def test_statistics_move_where_nobody_reads_the_output() -> None:
    net, cells, features = pair()
    like = copy.deepcopy(net)
    y = net(sparse(cells, features))
    at_once(lambda: like(sparse(cells, features)))
    for one, two in zip(net.buffers(), like.buffers()):
        agree(one, two)
    assert y is not None


def test_a_failure_that_nobody_reads_is_raised_by_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, cells, features = pair()
    with monkeypatch.context() as broken:
        broken.setattr(running, "_chain", lambda links: (_ for _ in ()).throw(MemoryError("none left")))
        with pytest.raises(MemoryError, match="none left"):
            net(sparse(cells, features))
    assert net(sparse(cells, features)).features.sum().isfinite()


def test_statistics_move_in_the_order_of_calls() -> None:
    net, cells, features = pair()
    like = copy.deepcopy(net)

    def both(net: Pair) -> None:
        first, second = net(sparse(cells, features)), net(sparse(cells, 3 * features))
        second.features.sum()
        first.features.sum()

    both(net)
    at_once(lambda: both(like))
    for one, two in zip(net.buffers(), like.buffers()):
        agree(one, two)


@pytest.mark.parametrize("what", ["conv", "norm", "input", "sum"])
def test_a_change_inside_of_the_call_is_refused(what: str) -> None:
    """Of a parameter, or of a buffer of the user's, before anybody has read what was made of it."""

    class Changes(Pair):
        changes = False

        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            y = self.conv(x)
            y = y.replace_feature(torch.relu(self.norm(y.features) + added))
            if self.changes:
                changed = {"conv": self.conv.weight, "norm": self.norm.weight, "input": features, "sum": added}
                changed[what].mul_(2)
            return y

    net = Changes().double().eval()
    cells, features = scene(4)
    added = torch.ones_like(features)
    with torch.no_grad():
        for _ in range(4):
            net(sparse(cells, features)).features.sum()
        net.changes = True
        with pytest.raises(pumice.UserError, match="changed between its call and the first use"):
            net(sparse(cells, features))
        net.changes = False
        assert net(sparse(cells, features)).features.sum().isfinite()


def test_what_is_done_between_calls_finds_everything_computed() -> None:
    """Weights written past PyTorch's counting, buffers filled again, statistics and parameters read or frozen."""
    net, cells, features = pair()
    like = copy.deepcopy(net)

    def between(net: Pair) -> list[Any]:
        given = features.numpy().copy()
        y = net(sparse(cells, torch.from_numpy(given)))
        given[:] = 0
        saved = {name: value.clone() for name, value in net.state_dict().items()}
        for parameter in net.parameters():
            parameter.data = parameter.data * 0
        results = [y.features.detach().clone(), *saved.values()]
        net.load_state_dict(saved)
        net.requires_grad_(False)
        z = net(sparse(cells, features))
        net.requires_grad_(True)
        assert not z.features.requires_grad
        net.norm.reset_running_stats()
        del y, z
        return [*results, *net.state_dict().values()]

    for one, two in zip(between(net), at_once(lambda: between(like))):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-10)


def test_a_norm_of_two_convolutions_moves_in_the_order_of_calls() -> None:
    class Both(Pair):
        def __init__(self) -> None:
            super().__init__()
            self.other = spconv.SubMConv3d(CHANNELS, CHANNELS, 3, bias=False)

        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            y, z = self.conv(x), self.other(x)
            y = y.replace_feature(self.norm(y.features))
            z = z.replace_feature(self.norm(z.features))
            return z.replace_feature(torch.relu(z.features) + 2 * y.features)

    net = Both().double()
    like = copy.deepcopy(net)
    cells, features = scene(6)
    for _ in range(4):
        net(sparse(cells, features))
        at_once(lambda: like(sparse(cells, features)))
    for one, two in zip(net.buffers(), like.buffers()):
        agree(one, two)


def test_a_failure_of_one_network_is_none_of_another() -> None:
    bad = spconv.SparseSequential(
        spconv.SubMConv3d(CHANNELS, 2 * CHANNELS, 3, bias=False), nn.BatchNorm1d(2 * CHANNELS + 1)
    ).double()  # fmt: skip
    net, cells, features = pair()
    for _ in range(3):
        with pytest.raises((pumice.UserError, RuntimeError)):
            bad(sparse(cells, features))
        assert net(sparse(cells, features)).features.sum().isfinite()


@pytest.mark.parametrize("training", [True, False])
def test_threads_have_their_own_calls(training: bool) -> None:
    net, cells, features = pair()
    net.train(training)
    net.norm.momentum = 0.0
    expected = at_once(lambda: net(sparse(cells, features)).features.detach().clone())

    def run() -> None:
        for _ in range(30):
            assert torch.allclose(net(sparse(cells, features)).features, expected)

    on_threads(run)


def test_a_call_that_was_broken_off_leaves_nothing_behind() -> None:
    net, cells, features = pair()
    like = copy.deepcopy(net)
    net.watch = lambda y: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        net(sparse(cells, features))
    net.watch = None
    y = net.conv(sparse(cells, features))  # called by no module
    assert type(y._features) is torch.Tensor
    one = net(sparse(cells, features)).features
    agree(one, at_once(lambda: like(sparse(cells, features)).features))


def test_a_thousand_layers_are_no_recursion() -> None:
    class Long(Pair):
        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            for _ in range(1100):
                x = self.conv(x)
                x = x.replace_feature(self.norm(x.features))
            return x

    net = Long().double().eval()
    cells, features = scene(1)
    with torch.no_grad():
        for _ in range(3):
            out = net(sparse(cells, features)).features
        agree(out, at_once(lambda: net(sparse(cells, features)).features))


def test_features_of_the_first_pass_are_the_users_own() -> None:
    """A pass in which layers learn what becomes of their outputs: hooks, gradients and changes reach them."""
    net, cells, features = pair(1)
    seen: dict[str, Any] = {}

    def watch(y: spconv.SparseConvTensor) -> None:
        assert y.features is y.features
        seen["features"] = y.features
        y.features.register_hook(lambda grad: seen.setdefault("hook", grad))

    net.watch = watch
    loss = net(sparse(cells, features)).features.square().sum()
    (asked,) = torch.autograd.grad(loss, seen["features"], retain_graph=True)
    seen["features"].retain_grad()
    loss.backward()
    assert asked.norm() > 0
    agree(seen["hook"], asked)
    agree(seen["features"].grad, asked)


@pytest.mark.parametrize("passes", [0, 1, 2])
def test_features_on_the_way_are_saved_and_copied_as_ordinary_tensors(passes: int) -> None:
    net, cells, features = pair(passes)
    kinds: list[Any] = []

    def watch(y: spconv.SparseConvTensor) -> None:
        file = io.BytesIO()
        torch.save(y.features, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=True)
        agree(loaded, y.features)
        kinds.extend([type(loaded), type(pickle.loads(pickle.dumps(y.features.detach())))])

    net.watch = watch
    net(sparse(cells, features))
    assert kinds == [torch.Tensor, torch.Tensor]


def test_a_tensor_of_the_users_own_stays_what_it_is() -> None:
    """One that a waiting or an observed tensor is added to in place."""

    class Sums(Pair):
        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            y = self.conv(x)
            normed = self.norm(y.features)
            total = torch.zeros_like(features)
            own = total
            total += normed
            assert type(own) is torch.Tensor
            agree(own.detach(), normed.detach())
            return y.replace_feature(torch.relu(normed))

    net = Sums().double().eval()
    cells, features = scene(3)
    for _ in range(4):
        with torch.no_grad():
            net(sparse(cells, features))


def test_frozen_layers_features_can_be_made_a_leaf() -> None:
    net, cells, features = pair(1)
    with torch.no_grad():
        net.watch = lambda y: None
        f = net(sparse(cells, features)).features
    f.requires_grad_()
    net(sparse(cells, features).replace_feature(f)).features.sum().backward()
    assert f.grad is not None and f.grad.norm() > 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_layers_keep_their_gradients(reentrant: bool) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.norm = Pair(), nn.BatchNorm1d(CHANNELS)
            self.block = Block(CHANNELS, "b")

        def forward(self, x: spconv.SparseConvTensor) -> torch.Tensor:
            def run(features: torch.Tensor) -> torch.Tensor:
                return self.inner.conv(x.replace_feature(features)).features

            f = checkpoint(run, x.features, use_reentrant=reentrant)
            y = self.block(x.replace_feature(f))
            return torch.relu(self.norm(f)) + y.features

    net = Checkpointed().double()
    cells, features = scene(2)

    def run() -> list[Any]:
        net.zero_grad()
        given = features.clone().requires_grad_()
        net(sparse(cells, given)).square().sum().backward()
        return [given.grad, *(parameter.grad for parameter in net.parameters())]

    expected = at_once(run)
    for _ in range(4):
        for one, two in zip(run(), expected):
            agree(one, two)


def test_gradients_are_those_of_the_switches_at_the_call() -> None:
    net, cells, features = pair()
    with torch.no_grad():
        for _ in range(3):
            y = net(sparse(cells, features))
    assert not y.features.requires_grad
    y = net(sparse(cells, features))
    with torch.no_grad():
        assert y.features.requires_grad
    with torch.inference_mode():
        for _ in range(3):
            y = net(sparse(cells, features))
    assert y.features.is_inference()


def test_checkpointing_and_what_was_called_before_it() -> None:
    net, cells, features = pair()
    inner, _, _ = pair()
    like, like_inner = copy.deepcopy(net), copy.deepcopy(inner)

    def run(net: Pair, inner: Pair) -> None:
        before = net(sparse(cells, features))
        out = checkpoint(lambda: inner(before).features, use_reentrant=False)
        out.square().sum().backward()

    run(net, inner)
    at_once(lambda: run(like, like_inner))
    for one, two in zip(
        [*net.parameters(), *inner.parameters()], [*like.parameters(), *like_inner.parameters()]
    ):
        agree(one.grad, two.grad)


def test_a_failure_is_raised_where_the_output_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    net, cells, features = pair()

    def full(links: Any) -> None:
        raise MemoryError("no memory left")

    def read(y: spconv.SparseConvTensor) -> None:
        for _ in range(2):
            with pytest.raises(MemoryError, match="no memory left"):
                y.features.sum()

    monkeypatch.setattr(running, "_one_by_one", full)
    net.watch = read
    with pytest.raises(MemoryError):
        net(sparse(cells, features))
