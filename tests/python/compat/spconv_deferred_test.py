"""Layers called one by one compute later, together, and nobody can tell but by the time it takes."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest
import torch
from conftest import random_sites
from deferred_fixtures import chains, switched_on_again  # noqa: F401
from deferred_programs import CHANNELS, EXTENT, scene
from torch.utils.checkpoint import checkpoint

import pumice
import pumice.compat.spconv as spconv
from pumice import ops
from pumice.nn.deferred import Deferred, running

nn = torch.nn


def sparse(cells: torch.Tensor, features: torch.Tensor) -> spconv.SparseConvTensor:
    return spconv.SparseConvTensor(features, cells, [EXTENT] * 3, 2)


def at_once(call: Any) -> Any:
    """What it gives where every layer computes when it is called."""
    pumice.compat.defer_layers(False)
    try:
        return call()
    finally:
        pumice.compat.defer_layers(True)


def agree(one: Any, two: Any) -> None:
    assert (one is None) == (two is None)
    if one is not None:
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-10)


# Chains as long as there are.


class Block(nn.Module):
    """A residual block in OpenPCDet's style."""

    def __init__(self, channels: int, key: str) -> None:
        super().__init__()
        self.conv1 = spconv.SubMConv3d(channels, channels, 3, bias=False, indice_key=key)
        self.bn1 = nn.BatchNorm1d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = spconv.SubMConv3d(channels, channels, 3, bias=False, indice_key=key)
        self.bn2 = nn.BatchNorm1d(channels)

    def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
        identity = x
        out = self.conv1(x)
        out = out.replace_feature(self.bn1(out.features))
        out = out.replace_feature(self.relu(out.features))
        out = self.conv2(out)
        out = out.replace_feature(self.bn2(out.features))
        out = out.replace_feature(out.features + identity.features)
        return out.replace_feature(self.relu(out.features))


class Stages(nn.Module):
    """A stem, a level below with two blocks, and back up to where features are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = spconv.SparseSequential(
            spconv.SubMConv3d(CHANNELS, 4, 3, bias=False, indice_key="a"), nn.BatchNorm1d(4), nn.ReLU(),
        )  # fmt: skip
        self.down = spconv.SparseConv3d(4, 4, 2, 2, bias=False, indice_key="d")
        self.norm = nn.BatchNorm1d(4)
        self.blocks = nn.ModuleList([Block(4, "b"), Block(4, "b")])
        self.up = spconv.SparseInverseConv3d(4, 4, 2, bias=False, indice_key="d")
        self.up_norm = nn.BatchNorm1d(4)
        self.last = spconv.SubMConv3d(8, 3, 3, indice_key="a")

    def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
        skip = self.stem(x)
        y = self.down(skip)
        y = y.replace_feature(torch.relu(self.norm(y.features)))
        for block in self.blocks:
            y = block(y)
        y = self.up(y)
        y = y.replace_feature(torch.relu(self.up_norm(y.features)))
        y = y.replace_feature(torch.cat([y.features, skip.features], 1))
        return self.last(y)


@pytest.mark.parametrize("training", [True, False])
def test_stages_of_a_network_are_chains(chains: list[int], training: bool) -> None:
    net = Stages().double().train(training)
    cells, features = scene(1)
    for _ in range(3):
        chains.clear()
        with torch.set_grad_enabled(training):
            net(sparse(cells, features)).features.sum()
    assert chains == [1, 5, 1]  # the stem; the level below; what leads up


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_network_learns_as_it_does_layer_by_layer(
    device: torch.device, dtype: torch.dtype, frozen: bool
) -> None:
    if device.type == "cuda" and dtype == torch.float64:
        pytest.skip("CUDA kernels do not compute in float64")
    net = Stages().to(device, dtype)
    like = copy.deepcopy(net)
    cells, features = (tensor.to(device) for tensor in scene(2, dtype))

    def train(net: Stages) -> list[torch.Tensor]:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        losses = []
        for _ in range(6):
            optimizer.zero_grad()
            loss = net(sparse(cells, features)).features.square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        net.eval()
        if frozen:
            pumice.nn.freeze(net)
        with torch.no_grad():
            results = [net(sparse(cells, features)).features for _ in range(3)]
        return [*losses, *results]

    tolerance = {torch.float32: 2e-4, torch.float64: 1e-9}[dtype]
    for one, two in zip(train(net), at_once(lambda: train(like))):
        torch.testing.assert_close(one, two, rtol=tolerance, atol=tolerance)


def test_half_precision_under_autocast_keeps_its_types(device: torch.device) -> None:
    dtype = torch.float16 if device.type == "cuda" else torch.bfloat16
    net = Stages().to(device)
    cells, features = (tensor.to(device) for tensor in scene(3, torch.float32))
    for training in (True, False):
        net.train(training)
        for _ in range(3):
            with torch.autocast(device.type, dtype):
                out = net(sparse(cells, features)).features
            assert out.dtype == dtype
            expected = at_once(lambda: _under_autocast(net, cells, features, dtype))
            torch.testing.assert_close(out, expected, rtol=0.1, atol=0.1)


def _under_autocast(net: Stages, cells: torch.Tensor, features: torch.Tensor, dtype: torch.dtype) -> Any:
    with torch.autocast(features.device.type, dtype):
        return net(sparse(cells, features)).features


# What somebody looks at is there.


class Pair(nn.Module):
    """A convolution and its norm; `watch` sees what is between them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = spconv.SubMConv3d(CHANNELS, CHANNELS, 3, bias=False)
        self.norm = nn.BatchNorm1d(CHANNELS)
        self.watch: Any = None

    def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
        y = self.conv(x)
        if self.watch is not None:
            self.watch(y)
        y = y.replace_feature(self.norm(y.features))
        return y.replace_feature(torch.relu(y.features))


def pair(passes: int = 2) -> tuple[Pair, torch.Tensor, torch.Tensor]:
    """One whose outputs are deferred by now."""
    net = Pair().double()
    cells, features = scene(4)
    for _ in range(passes):
        net(sparse(cells, features)).features.sum().backward()
        net.zero_grad()
    return net, cells, features


def test_outputs_wait_from_the_second_pass_on() -> None:
    net, cells, features = pair(1)
    seen: list[Any] = []
    net.watch = lambda y: seen.append(type(y.features))
    net(sparse(cells, features))
    assert seen == [Deferred]


def test_what_an_output_is_like_is_known_before_it_is_there(chains: list[int]) -> None:
    net, cells, features = pair()
    chains.clear()
    y = net(sparse(cells, features)).replace_feature
    out = y.__self__._features
    assert (out.shape, out.dtype, out.device) == (features.shape, features.dtype, features.device)
    assert out.requires_grad and out.dim() == 2 and out.size(1) == CHANNELS and len(out) == len(cells)
    assert not chains
    assert isinstance(out, torch.Tensor)
    out.sum()
    assert chains == [1]


@pytest.mark.parametrize("looks", [
    lambda y: y.features.mean(), lambda y: y.features[0, 0].item(), lambda y: y.features.detach().numpy(),
    lambda y: str(y.features), lambda y: torch.cat([y.features, y.features]), lambda y: y.dense(),
    lambda y: copy.copy(y).features.sum(), lambda y: pickle.dumps(y), lambda y: y.features.register_hook(lambda g: g),
    lambda y: y.features.data_ptr(), lambda y: pumice.SparseTensor(y.coords, y.features).features + 1,
    lambda y: pumice.ops.global_pool(y.features, y.coords, "sum"), lambda y: y.features.tolist(),
])  # fmt: skip
def test_whoever_looks_at_it_sees_its_numbers(looks: Any) -> None:
    net, cells, features = pair()
    like = copy.deepcopy(net)
    net.watch = looks
    one = net(sparse(cells, features)).features
    agree(one, at_once(lambda: like(sparse(cells, features)).features))
    for number, other in zip(net.buffers(), like.buffers()):
        agree(number, other)


def test_an_output_that_went_elsewhere_is_ordinary_ever_after() -> None:
    net, cells, features = pair()
    seen: list[Any] = []
    net.watch = lambda y: y.features.sum()
    net(sparse(cells, features))
    net.watch = lambda y: seen.append(type(y.features))
    net(sparse(cells, features))
    assert seen == [torch.Tensor]


@pytest.fixture
def convolutions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of all convolutions that run by themselves, as no part of a chain."""
    rows: list[int] = []
    convolution = ops.convolution

    def counted(features: torch.Tensor, *args: Any) -> torch.Tensor:
        rows.append(len(features))
        return convolution(features, *args)

    monkeypatch.setattr(ops, "convolution", counted)
    return rows


def held_on_the_way() -> tuple[Pair, torch.Tensor, torch.Tensor, list[spconv.SparseConvTensor]]:
    """A network in evaluation, whose convolution's output somebody holds."""
    net, cells, features = pair()
    net.eval()
    held: list[spconv.SparseConvTensor] = []
    net.watch = held.append
    for _ in range(2):
        net(sparse(cells, features)).features.sum()
        held.clear()
    return net, cells, features, held


def test_a_convolution_that_is_held_is_computed_again_if_somebody_asks(convolutions: list[int]) -> None:
    net, cells, features, held = held_on_the_way()
    with torch.no_grad():
        out = at_once(lambda: net(sparse(cells, features)).features)
        between = held.pop().features
        for asks in (False, True):
            net(sparse(cells, features)).features.sum()  # as that is done without gradients, too
            held.clear()
            convolutions.clear()
            y = net(sparse(cells, features))
            agree(y.features, out)
            assert not convolutions
            if asks:
                agree(held[0].features, between)
                agree(held[0].features + 0, between)
                assert convolutions == [len(features)]
                agree(y.features, out)
            held.clear()


def test_what_a_held_convolution_is_computed_of_goes_when_nobody_holds_it() -> None:
    net, cells, features, held = held_on_the_way()
    with torch.no_grad():
        net(sparse(cells, features)).features.sum()  # as that is done without gradients, too
        held.clear()
        of = features.clone()
        alive = weakref.ref(of)
        net(sparse(cells, of)).features.sum()
        del of
        assert alive() is not None
        held.clear()
        assert alive() is None


@pytest.mark.parametrize("what", ["weight", "features"])
def test_a_held_convolution_whose_operands_changed_is_refused(what: str) -> None:
    net, cells, features, held = held_on_the_way()
    with torch.no_grad():
        net(sparse(cells, features)).features.sum()
        held.clear()
        net(sparse(cells, features)).features.sum()
        (features if what == "features" else net.conv.weight).mul_(2)
        with pytest.raises(pumice.UserError, match="changed between its call and the first use"):
            held[0].features.sum()


@pytest.mark.parametrize("frozen", [False, True])
def test_a_held_convolution_in_evaluation_whose_layers_learn(frozen: bool) -> None:
    """Then it is no convolution to compute again, as gradients go through it."""
    net, cells, features, held = held_on_the_way()
    if frozen:
        net.norm.requires_grad_(False)
    like = copy.deepcopy(net)

    def run(net: Pair) -> list[torch.Tensor | None]:
        x = features.clone().requires_grad_()
        out = net(sparse(cells, x)).features
        (out.square().sum() + held.pop().features.square().sum()).backward()
        held.clear()
        return [out, x.grad, *(parameter.grad for parameter in net.parameters())]

    for one, two in zip(run(net), at_once(lambda: run(like))):
        agree(one, two)


def test_in_place_changes_are_seen_by_who_holds_the_tensor() -> None:
    conv, norm = Pair().double().conv, nn.BatchNorm1d(CHANNELS).double()
    cells, features = scene(5)
    for _ in range(3):
        y = conv(sparse(cells, features))
        held = norm(y.features)
        before = held.detach().clone() if not isinstance(held, Deferred) else None
        nn.functional.relu(held, inplace=True)
        assert (held >= 0).all()
        assert before is None or (before < 0).any()


def test_the_gradient_of_an_autograd_function_is_not_lost_in_silence() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return 2 * grad

    net, cells, features = pair()
    results: list[torch.Tensor] = []
    net.watch = lambda y: results.append(Twice.apply(y.features))
    net(sparse(cells, features))
    with pytest.raises(pumice.UserError, match="went to an autograd function or"):
        results[0].sum().backward()
    net(sparse(cells, features))  # which is known from here on
    results[1].sum().backward()
    assert net.conv.weight.grad is not None


def test_an_operator_below_python_neither_loses_a_gradient_in_silence_nor_the_layers_own() -> None:
    net, cells, features = pair()
    results: list[torch.Tensor] = []

    def extension(y: spconv.SparseConvTensor) -> None:
        with torch._C.DisableTorchFunctionSubclass():
            results.append(2 * y.features)

    net.watch = extension
    like = copy.deepcopy(net)
    like.watch = None
    net(sparse(cells, features)).features.square().sum().backward()
    at_once(lambda: like(sparse(cells, features)).features.square().sum().backward())
    agree(net.conv.weight.grad, like.conv.weight.grad)
    with pytest.raises(pumice.UserError, match="or an extension before"):
        results[0].sum().backward()


def test_a_look_without_gradients_leaves_them_alone() -> None:
    net, cells, features = pair()

    def look(y: spconv.SparseConvTensor) -> None:
        with torch.no_grad():
            y.features.abs().max()

    net.watch = look
    net(sparse(cells, features)).features.square().sum().backward()
    like = copy.deepcopy(net)
    like.zero_grad()
    like.watch = None
    at_once(lambda: like(sparse(cells, features)).features.square().sum().backward())
    agree(net.conv.weight.grad, like.conv.weight.grad)


def test_a_tensor_of_the_package_holds_the_numbers_themselves() -> None:
    net, cells, features = pair()
    y = net(sparse(cells, features))
    assert type(pumice.SparseTensor(y.coords, y._features).features) is torch.Tensor


# The order of things.


def test_statistics_move_where_nobody_reads_the_output() -> None:
    net, cells, features = pair()
    like = copy.deepcopy(net)
    net(sparse(cells, features))
    gc.collect()
    at_once(lambda: like(sparse(cells, features)))
    for one, two in zip(net.buffers(), like.buffers()):
        agree(one, two)


def test_a_failure_that_nobody_reads_is_raised_by_the_next_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, cells, features = pair()
    with monkeypatch.context() as broken:
        broken.setattr(running, "_chain", lambda links: (_ for _ in ()).throw(MemoryError("none left")))
        net(sparse(cells, features))
        gc.collect()
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


@pytest.mark.parametrize("name", ["conv", "norm"])
def test_a_change_of_parameters_in_between_is_refused(name: str) -> None:
    net, cells, features = pair()
    net.eval()
    for _ in range(2):
        net(sparse(cells, features)).features.sum()
    y = net(sparse(cells, features))
    with torch.no_grad():
        getattr(net, name).weight.mul_(2)
    with pytest.raises(pumice.UserError, match="changed between its call and the first use"):
        y.features.sum()
    assert net(sparse(cells, features)).features.sum().isfinite()


@pytest.mark.parametrize("what", ["input", "sum"])
def test_a_change_of_features_in_between_is_refused(what: str) -> None:
    """Of a buffer that the next scan is written into, for example."""
    net, cells, features = pair()
    net.eval()
    added = torch.ones_like(features)

    def run() -> spconv.SparseConvTensor:
        y = net.conv(sparse(cells, features))
        return y.replace_feature(torch.relu(net.norm(y.features) + added))

    with torch.no_grad():
        for _ in range(3):
            run().features.sum()
        y = run()
        (features if what == "input" else added).add_(1)
        with pytest.raises(pumice.UserError, match="features .* changed between its call"):
            y.features.sum()
        assert run().features.sum().isfinite()


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
    y = net(sparse(cells, features))

    def full(links: Any) -> None:
        raise MemoryError("no memory left")

    monkeypatch.setattr(running, "_chain", full)
    for _ in range(2):
        with pytest.raises(MemoryError, match="no memory left"):
            y.features.sum()


# Where layers compute at once.


@pytest.mark.parametrize("way", ["switch", "hook", "global hook", "compiled", "saved tensors", "bias"])
def test_layers_compute_at_once_where_each_call_is_watched(chains: list[int], way: str) -> None:
    net, cells, features = pair()
    chains.clear()
    x = sparse(cells, features)
    if way == "switch":
        at_once(lambda: net(x))
    elif way == "hook":
        net.conv.register_forward_hook(lambda *_: None)
        net(x)
    elif way == "global hook":
        handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
        net(x)
        handle.remove()
    elif way == "compiled":
        torch.compile(net, backend="eager")(x).features.sum()
    elif way == "saved tensors":
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            net(x)
    else:
        net.conv.bias = nn.Parameter(torch.zeros(CHANNELS, dtype=torch.float64))
        net(x)
    assert not chains


class Doubled(spconv.SubMConv3d):
    """A layer of a user's own."""

    def forward(self, input: Any, add_input: Any = None) -> Any:
        out = super().forward(input, add_input)
        return out.replace_feature(2 * out.features)


@pytest.mark.parametrize("way", ["class", "convolution", "norm", "relu", "hook"])
def test_a_container_calls_what_users_changed(way: str) -> None:
    kind = Doubled if way == "class" else spconv.SubMConv3d
    layers = [kind(CHANNELS, CHANNELS, 3, bias=False), nn.BatchNorm1d(CHANNELS), nn.ReLU()]
    net = spconv.SparseSequential(*layers).double().eval()
    cells, features = scene(6)
    calls: list[int] = []
    if way == "hook":
        layers[1].register_forward_hook(lambda *_: calls.append(1))
    elif way != "class":
        layer = layers[["convolution", "norm", "relu"].index(way)]
        forward = layer.forward
        layer.forward = lambda *args: calls.append(1) or forward(*args)  # type: ignore[method-assign]
    for _ in range(3):
        agree(
            net(sparse(cells, features)).features,
            at_once(lambda: net(sparse(cells, features)).features),
        )
    assert way == "class" or len(calls) == 6


def test_one_row_in_training_raises_as_pytorch_does() -> None:
    net, _, _ = pair()
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        net(sparse(random_sites(3, EXTENT, 60)[:1], torch.ones(1, CHANNELS).double())).features
    empty = sparse(torch.zeros(0, 4, dtype=torch.int32), torch.ones(0, CHANNELS).double())
    for training in (True, False):
        assert net.train(training)(empty).features.shape == (0, CHANNELS)


def test_copies_learn_for_themselves() -> None:
    net, cells, features = pair()
    twin = pickle.loads(pickle.dumps(copy.deepcopy(net)))
    seen: list[Any] = []
    twin.watch = lambda y: seen.append(type(y.features))
    twin(sparse(cells, features))
    assert seen != [Deferred]
