"""Layers called one by one compute later, together, and nobody can tell but by the time it takes."""

from __future__ import annotations

import copy
import pickle
import weakref
from typing import Any

import pytest
import torch
from conftest import random_sites
from deferred_fixtures import chains, switched_on_again  # noqa: F401
from deferred_networks import Block, Pair, agree, at_once, pair, sparse
from deferred_programs import CHANNELS, EXTENT, scene

import pumice
import pumice.compat.spconv as spconv
from pumice import ops
from pumice.nn.deferred import Deferred

nn = torch.nn

# Chains as long as there are.


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


def test_outputs_wait_from_the_third_pass_on() -> None:
    """In the first one nobody knows where the outermost call ends, in the second what becomes of them."""
    net, cells, features = pair(2)
    seen: list[Any] = []
    net.watch = lambda y: seen.append(type(y.features))
    net(sparse(cells, features))
    assert seen == [Deferred]


def test_what_an_output_is_like_is_known_before_it_is_there(chains: list[int]) -> None:
    net, cells, features = pair()
    chains.clear()

    def look(y: spconv.SparseConvTensor) -> None:
        out = y._features
        assert (out.shape, out.dtype, out.device) == (features.shape, features.dtype, features.device)
        assert out.requires_grad and out.dim() == 2 and out.size(1) == CHANNELS and len(out) == len(cells)
        assert not chains
        assert isinstance(out, torch.Tensor)
        out.sum()
        assert chains == [1]

    net.watch = look
    net(sparse(cells, features))
    assert chains[0] == 1


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
    for learns in (True, False):
        for _ in range(2):
            with torch.set_grad_enabled(learns):
                net(sparse(cells, features)).features.sum()
    held.clear()
    return net, cells, features, held


@pytest.mark.parametrize("keeps", [False, True])
def test_a_convolution_that_is_held_when_the_call_returns_is_computed_then(
    convolutions: list[int], chains: list[int], keeps: bool
) -> None:
    """In a variable of `forward` it is held as well, while the layers behind it run, and need not be computed."""
    net, cells, features, held = held_on_the_way()
    with torch.no_grad():
        out = at_once(lambda: net(sparse(cells, features)).features)
        between = held.pop().features
        if not keeps:
            net.watch = None
        convolutions.clear()
        chains.clear()
        of = features.clone()
        alive = weakref.ref(of)
        y = net(sparse(cells, of))
        assert chains == [1] and convolutions == ([len(features)] if keeps else [])
        del of
        assert alive() is None
        agree(y.features, out)
        if keeps:
            net.conv.weight.data.mul_(2)
            agree(held[0].features, between)
            agree(held[0].features + 0, between)
        agree(y.features, out)


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
    class InPlace(Pair):
        def forward(self, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
            y = self.conv(x)
            held = self.norm(y.features)
            before = held.detach().clone() if not isinstance(held, Deferred) else None
            nn.functional.relu(held, inplace=True)
            assert (held >= 0).all()
            assert before is None or (before < 0).any()
            return y

    net = InPlace().double()
    cells, features = scene(5)
    for _ in range(4):
        net(sparse(cells, features))


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
    with pytest.raises(pumice.UserError, match="went to an autograd function"):
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
    for _ in range(2):
        twin(sparse(cells, features))
    # A copy knows already where its calls end, and learns what becomes of outputs in its first pass.
    assert [kind.__name__ for kind in seen] == ["Observed", "Deferred"]
