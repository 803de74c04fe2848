"""Calls of PyTorch's norms and ReLUs that go straight to what waits: whatever users change of a module or of its call
is seen as PyTorch's own call sees it, and nothing of it gets into copies, files or memory."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from deferred_fixtures import chains, switched_on_again  # noqa: F401
from deferred_networks import Block, agree, at_once, sparse
from deferred_programs import CHANNELS, scene
from torch.overrides import TorchFunctionMode

import pumice.compat.spconv as spconv
from pumice import _C

nn = torch.nn
OWN_CALL = "_compiled_call_impl"


def block(training: bool = False) -> tuple[Block, torch.Tensor, torch.Tensor]:
    """One whose norms and ReLU go straight to their links by now."""
    net = Block(CHANNELS, "key").double().train(training)
    cells, features = scene(4)
    for _ in range(8):
        with torch.set_grad_enabled(training):
            net(sparse(cells, features)).features.sum()
    for module in (net.bn1, net.bn2, net.relu):
        assert OWN_CALL in module.__dict__
    return net, cells, features


def like_at_once(net: Any, cells: torch.Tensor, features: torch.Tensor) -> None:
    """The net gives what a copy of it gives whose layers compute at once."""
    like = copy.deepcopy(net)
    with torch.no_grad():
        y = net(sparse(cells, features)).features
        z = at_once(lambda: like(sparse(cells, features)).features)
    agree(y, z)
    for one, two in zip(net.buffers(), like.buffers()):
        agree(one, two)


@pytest.mark.parametrize("training", [False, True])
def test_a_block_runs_as_one_chain(chains: list[int], training: bool) -> None:
    net, cells, features = block(training)
    chains.clear()
    with torch.set_grad_enabled(training):
        net(sparse(cells, features)).features.sum()
    assert chains == [2]
    like_at_once(net, cells, features)


def test_copies_and_files_are_without_the_call() -> None:
    net, cells, features = block()
    written = io.BytesIO()
    torch.save(net, written)
    written.seek(0)
    read = torch.load(written, weights_only=False)
    for other in (copy.deepcopy(net), copy.copy(net.bn1), pickle.loads(pickle.dumps(net)), read):
        for module in other.modules():
            assert OWN_CALL not in module.__dict__
    assert net.bn1.state_dict().keys() == nn.BatchNorm1d(CHANNELS).state_dict().keys()
    like_at_once(read, cells, features)


def _hook(module: nn.Module, calls: list[int]) -> None:
    module.register_forward_hook(lambda *_: calls.append(1))


def _pre_hook(module: nn.Module, calls: list[int]) -> None:
    module.register_forward_pre_hook(lambda *_: calls.append(1))


def _forward(module: Any, calls: list[int]) -> None:
    forward = module.forward
    module.forward = lambda *args: calls.append(1) or forward(*args)


def _class(module: nn.Module, calls: list[int]) -> None:
    kind = type(module)

    def forward(self: Any, input: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return kind.forward(self, input)

    module.__class__ = type("Users", (kind,), {"forward": forward})


def _compiled(module: Any, calls: list[int]) -> None:
    whole = module._call_impl
    module._compiled_call_impl = lambda *args: calls.append(1) or whole(*args)  # as Module.compile does


@pytest.mark.parametrize("change", [_hook, _pre_hook, _forward, _class, _compiled])
@pytest.mark.parametrize("which", ["conv1", "bn1", "relu"])
def test_what_users_change_is_called(which: str, change: Callable[..., None]) -> None:
    net, cells, features = block()
    calls: list[int] = []
    change(getattr(net, which), calls)
    with torch.no_grad():
        y = net(sparse(cells, features)).features
    assert len(calls) == (2 if which == "relu" else 1)
    like = copy.deepcopy(net)
    with torch.no_grad():
        agree(y, at_once(lambda: like(sparse(cells, features)).features))


@pytest.mark.parametrize("register", [
    nn.modules.module.register_module_forward_hook,
    nn.modules.module.register_module_forward_pre_hook,
])  # fmt: skip
def test_hooks_on_all_modules_see_each(register: Callable[..., Any]) -> None:
    net, cells, features = block()
    seen: list[str] = []
    handle = register(lambda module, *_: seen.append(type(module).__name__))
    try:
        with torch.no_grad():
            net(sparse(cells, features))
    finally:
        handle.remove()
    assert seen.count("BatchNorm1d") == 2 and seen.count("ReLU") == 2 and seen.count("SubMConv3d") == 2


def test_a_mode_of_functions_sees_the_norms() -> None:
    net, cells, features = block()
    seen: list[Any] = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with torch.no_grad(), Mode():
        y = net(sparse(cells, features)).features
    assert seen.count(nn.functional.batch_norm) == 2
    like = copy.deepcopy(net)
    with torch.no_grad():
        agree(y, at_once(lambda: like(sparse(cells, features)).features))


@pytest.mark.parametrize("what", ["training", "momentum", "eps", "statistics", "affine", "inplace", "channels"])
def test_settings_changed_after_passes_hold(what: str) -> None:
    net, cells, features = block()
    if what == "training":
        net.bn1.train()
    elif what == "momentum":
        net.train()
        net.bn1.momentum, net.bn2.momentum = None, 0.5
    elif what == "eps":
        net.bn1.eps = 1.0
    elif what == "statistics":
        net.bn1.track_running_stats = False
        net.bn1.running_mean = net.bn1.running_var = None
    elif what == "affine":
        net.bn2.weight = net.bn2.bias = None
    elif what == "inplace":
        net.relu.inplace = False
    else:
        net.bn1 = nn.BatchNorm1d(CHANNELS + 1).double().eval()
        with torch.no_grad(), pytest.raises(RuntimeError, match="running_mean"):
            net(sparse(cells, features))
        return
    like_at_once(net, cells, features)


def test_a_norm_of_one_row_in_training_raises_as_pytorch_does() -> None:
    net, cells, features = block(training=True)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        net(sparse(cells[:1], features[:1]))
    like_at_once(net, cells, features)


def test_modules_are_called_on_other_tensors_as_before() -> None:
    net, _, _ = block()
    x = torch.randn(7, CHANNELS, dtype=torch.float64)
    norm = net.bn1
    agree(norm(x), nn.functional.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias))
    agree(net.bn1(input=x), net.bn1(x))
    agree(net.relu(x.clone()), x.clamp_min(0))
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        net.bn1(x[0])
    with pytest.raises(TypeError):
        net.relu()


def test_a_replica_computes_with_its_own_tensors() -> None:
    """As torch.nn.DataParallel makes them: all names of the module, other parameters."""
    net, _, _ = block()
    replica = net.bn1._replicate_for_data_parallel()
    for name in ("weight", "bias"):
        setattr(replica, name, torch.full((CHANNELS,), 3.0, dtype=torch.float64))
    replica._buffers = {name: value.clone() for name, value in net.bn1._buffers.items()}
    x = torch.randn(7, CHANNELS, dtype=torch.float64)
    like = nn.functional.batch_norm(
        x, net.bn1.running_mean, net.bn1.running_var, replica.weight, replica.bias, eps=net.bn1.eps
    )
    agree(replica(x), like)


def test_a_clone_with_the_same_names_computes_with_its_own_tensors() -> None:
    """As libraries for meta-learning make them, without PyTorch's copy."""
    net, cells, features = block()
    like = copy.deepcopy(net)
    for name in ("bn1", "bn2"):
        norm = getattr(net, name)
        clone = norm.__new__(type(norm))
        clone.__dict__ = {**norm.__dict__, "_parameters": dict(norm._parameters), "_buffers": dict(norm._buffers)}
        clone._parameters["weight"] = nn.Parameter(3 * norm.weight.detach())
        net._modules[name] = clone
        with torch.no_grad():
            getattr(like, name).weight.mul_(3)
        assert OWN_CALL in clone.__dict__ and copy.deepcopy(clone.__dict__)[OWN_CALL] is None
    with torch.no_grad():
        for _ in range(2):
            agree(net(sparse(cells, features)).features, at_once(lambda: like(sparse(cells, features)).features))


@pytest.mark.parametrize("name", ["batch_norm", "relu"])
def test_functions_that_somebody_replaced_are_called(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    net, cells, features = block()
    calls: list[int] = []
    function = getattr(nn.functional, name)
    monkeypatch.setattr(nn.functional, name, lambda *args, **kwargs: calls.append(1) or function(*args, **kwargs))
    like_at_once(net, cells, features)
    assert len(calls) >= 4  # twice in each of both nets


def test_calls_of_modules_that_somebody_replaced_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    net, cells, features = block()
    calls: list[str] = []
    whole = nn.Module._call_impl

    def timed(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        calls.append(type(self).__name__)
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "_call_impl", timed)
    with torch.no_grad():
        net(sparse(cells, features))
    assert sorted(calls) == ["BatchNorm1d"] * 2 + ["Block"] + ["ReLU"] * 2 + ["SubMConv3d"] * 2


def test_modules_are_traced_scripted_and_compiled() -> None:
    net, _, _ = block()
    x = torch.randn(7, CHANNELS, dtype=torch.float64)
    layers = nn.Sequential(net.bn1, net.relu).eval()
    like = layers(x.clone())
    agree(torch.jit.trace(layers, x.clone())(x.clone()), like)
    agree(torch.jit.script(layers)(x.clone()), like)
    agree(torch.fx.symbolic_trace(layers)(x.clone()), like)
    agree(torch.compile(layers, backend="eager", fullgraph=True)(x.clone()), like)


def test_nothing_is_left_behind() -> None:
    net, cells, features = block()
    for training in (False, True):
        net.train(training)
        with torch.set_grad_enabled(training):
            for _ in range(6):
                net(sparse(cells, features)).features.sum()
    gc.collect()
    left = [one for one in gc.get_objects() if type(one) in (_C.Link, _C.Ticket)]
    assert not left
    norm = weakref.ref(net.bn1)
    gc.disable()
    try:
        del net
        assert norm() is None, "its own call keeps a module alive"
    finally:
        gc.enable()


def test_features_live_no_longer_than_what_holds_them() -> None:
    net, cells, features = block()
    with torch.no_grad():
        x = sparse(cells, features.clone())
        given = weakref.ref(x.features)
        y = net(x)
        del x
        assert given() is None
        values = weakref.ref(y.features)
        assert values() is not None
        del y
        assert values() is None


def test_features_are_given_by_name_and_never_set() -> None:
    cells, features = scene(3)
    x = sparse(cells, features)
    y = x.replace_feature(feature=2 * features)
    agree(y.features, 2 * features)
    assert y.spatial_shape == x.spatial_shape and y.spatial_shape is not x.spatial_shape
    with pytest.raises(ValueError, match="features cannot be set"):
        x.features = features  # type: ignore[misc]
    with pytest.raises(TypeError):
        x.replace_feature()
    with pytest.raises(AssertionError, match="give a tensor"):
        x.replace_feature(features.numpy())


def test_uses_and_habits_are_learnt_once() -> None:
    use = _C.Use("convolution")
    assert use.known is None and use.then is None
    then = use.note("norm")
    assert use.known == "norm" and then is use.then and then.kind == "norm"
    assert use.note("norm") is then and use.note("relu") is None and use.known == "other"
    assert _C.Use("sum").note("norm") is None
    assert _C.Use("other", True).note("norm") is None
    stored = _C.Use("relu").note("store")
    assert stored is not None and stored.kind == "relu"
    with pytest.raises(ValueError, match="no kind of use"):
        _C.Use("anything")
    habit = _C.Habit()
    uses = [habit.of(t, g, k) for t in (False, True) for g in (False, True) for k in ("convolution", "norm", "relu")]
    assert len({id(use) for use in uses}) == 12 and habit.of(False, False) is uses[0]
    for other in (copy.deepcopy(habit), pickle.loads(pickle.dumps(habit))):
        assert other.of(False, False) is not uses[0] and other.codes == {}
    for kind in (_C.Link, _C.Ticket, _C.ModuleCall):
        with pytest.raises(TypeError, match="cannot create"):
            kind()


def test_a_part_that_there_is_not_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no part of the recorder"):
        _C.connect_recorder({"anything": 1})


def test_a_convolution_of_a_users_own_is_called() -> None:
    class Doubled(spconv.SubMConv3d):
        def forward(self, input: Any, add_input: Any = None) -> Any:
            out = super().forward(input, add_input)
            return out.replace_feature(2 * out.features)

    net, cells, features = block()
    net.conv1.__class__ = Doubled
    like_at_once(net, cells, features)
