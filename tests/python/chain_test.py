"""Stages that run in one call give what their layers give one by one."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from conftest import close, random_tensor, working_type
from float64_reference import in_float64, results_of, rounding_of
from torch.utils.checkpoint import checkpoint

import pumice
from pumice import UserError, _C, models, nn
from pumice.nn.chain import Chain


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the extension's chain functions, as they are called."""
    seen: list[str] = []

    def watch(name: str) -> None:
        run = getattr(_C, name)

        def called(*arguments: object) -> object:
            seen.append(name)
            return run(*arguments)

        monkeypatch.setattr(_C, name, called)

    for name in ("chain_training", "chain_gradients", "chain_inference", "ChainWeights"):
        watch(name)
    return seen


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201
    """Runs a function with no chain in it."""

    def run(work):  # noqa: ANN001, ANN202
        with monkeypatch.context() as patch:
            patch.setattr(Chain, "run", lambda *_: None)
            return work()

    return run


def block(cin: int, cout: int) -> nn.Residual:
    body = nn.Sequential(
        nn.SubMConv3d(cin, cout, 3, bias=False), nn.BatchNorm(cout), nn.ReLU(),
        nn.SubMConv3d(cout, cout, 3, bias=False), nn.BatchNorm(cout),
    )  # fmt: skip
    if cin == cout:
        return nn.Residual(body)
    return nn.Residual(
        body, nn.Sequential(nn.SubMConv3d(cin, cout, 1, bias=False), nn.BatchNorm(cout))
    )


def stage() -> nn.Sequential:
    """Two chains, of seven links and of two, with a layer between that has a bias."""
    return nn.Sequential(
        nn.Conv3d(4, 6, 2, 2, bias=False, outputs="cell"), nn.BatchNorm(6), nn.ReLU(),
        block(6, 10), block(10, 10),
        nn.SubMConv3d(10, 8, 3), nn.ReLU(),
        nn.SubMConv3d(8, 8, 3, bias=False), nn.BatchNorm(8),
        nn.Sequential(nn.SubMConv3d(8, 5, 1, bias=False), nn.BatchNorm(5), nn.ReLU()),
    )  # fmt: skip


NETWORKS = {
    "stage": stage,
    "minkunet": lambda: models.MinkUNet42(4, 5, (4, 4, 4, 6, 8, 8, 6, 4, 4)),
    "centerpoint": lambda: models.CenterPointEncoder(4),
}


def network(name: str, device: torch.device) -> torch.nn.Module:
    torch.manual_seed(5)
    return with_other_norms(NETWORKS[name]()).to(device, working_type(device))


def with_other_norms(net: torch.nn.Module) -> torch.nn.Module:
    """The network, whose norms scale and shift."""
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            torch.nn.init.uniform_(module.weight, 0.5, 2)
            torch.nn.init.uniform_(module.bias, -1, 1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2)
    return net


def scan(device: torch.device, rows: int = 800) -> pumice.SparseTensor:
    return random_tensor(extent=32, count=rows, device=device, dtype=working_type(device))


def statistics(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.double().cpu() for name, value in net.named_buffers()}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["f64", "f32"])
@pytest.mark.parametrize("name", NETWORKS)
def test_training(
    device: torch.device, dtype: torch.dtype, name: str, calls: list[str], one_by_one  # noqa: ANN001
) -> None:
    """Beside the same network's layers one by one on the CPU in float64, whatever the chains run in."""
    if device.type == "cuda" and dtype == torch.float64:
        pytest.skip("a GPU computes in float32 at best")
    net = network(name, torch.device("cpu")).float().to(device, dtype)  # numbers that both types have
    x = scan(device)
    x = x.replace(features=x.features.detach().float().to(dtype).requires_grad_())
    other, there = in_float64(net, x)
    bounds = None if dtype == torch.float64 else one_by_one(lambda: rounding_of(net, x))
    for _ in range(2):
        found = results_of(net, x)
        expected = one_by_one(lambda: results_of(other, there))
    assert calls.count("chain_training") == calls.count("chain_gradients") > 0
    assert calls.count("chain_training") < 2 * sum(
        isinstance(m, torch.nn.BatchNorm1d) for m in net.modules()
    )
    largest = max(value.norm() for name, value in expected.items() if name != "output")
    for key, value in expected.items():
        error = (found[key] - value).norm()
        bound = 1e-11 * largest if bounds is None else bounds[key]
        assert error <= bound, f"{key} is off by {error}, of {value.norm()}, bound {bound}"
        if value.norm() > 1e-6 * largest:  # all but that of the bias before a norm
            assert bound < 0.025 * value.norm(), f"{key} might be off by more than 2.5 %"
    for (key, mine), theirs in zip(
        statistics(net).items(), statistics(other).values(), strict=True
    ):
        if "num_batches" in key:
            assert mine.item() == theirs.item() == 2
        else:  # of float32 up to 64 units, a few for each layer before
            bound = 1e-12 if bounds is None else 64 * 2.0**-24
            torch.testing.assert_close(mine, theirs, rtol=bound, atol=bound)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_inference(
    device: torch.device, name: str, frozen: bool, calls: list[str], one_by_one  # noqa: ANN001
) -> None:
    net = network(name, device).eval()
    if frozen:
        nn.freeze(net)
    x = scan(device)
    with torch.no_grad():
        y = net(x).features
        chains = calls.count("chain_inference")
        assert chains > 0
        for _ in range(2):
            assert torch.equal(net(x).features, y)
        close(y, one_by_one(lambda: net(x)).features, sums=10_000)
        assert calls.count("ChainWeights") == (chains if frozen else 3 * chains)
        norm = next(m for m in net.modules() if isinstance(m, torch.nn.BatchNorm1d))
        norm.running_mean.add_(1)  # which the version tells, of frozen ones too
        changed = net(x).features
        assert not torch.equal(changed, y)
        close(changed, one_by_one(lambda: net(x)).features, sums=10_000)
        if not frozen:
            norm.weight.data.mul_(2)  # which no version tells
            close(net(x).features, one_by_one(lambda: net(x)).features, sums=10_000)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_on_a_device(
    device: torch.device, dtype: torch.dtype, calls: list[str], one_by_one  # noqa: ANN001
) -> None:
    if device.type == "cpu":
        pytest.skip("the CPU rounds weights layer by layer")
    net = network("stage", device)
    other = copy.deepcopy(net)
    x = scan(device)

    def step(net: torch.nn.Module) -> list[torch.Tensor]:
        with torch.autocast("cuda", dtype=dtype):
            y = net(x).features
        assert y.dtype == dtype
        loss = y.float().square().sum()
        return [y, *torch.autograd.grad(loss, [x.features, *net.parameters()])]

    mine, expected = step(net), one_by_one(lambda: step(other))
    assert calls.count("chain_training") == calls.count("chain_gradients") == 2
    for here, there in zip(mine, expected, strict=True):
        assert here.dtype == there.dtype
        error = (here.float() - there.float()).norm() / there.float().norm()
        assert error < 4 * torch.finfo(dtype).eps


def test_second_derivatives() -> None:
    torch.manual_seed(1)
    net = nn.Sequential(block(2, 3)).double()
    x = random_tensor(extent=4, count=12, channels=2)
    inputs = [x.features, *net.parameters()]
    out = net(x).features
    first = torch.autograd.grad(out.square().sum(), inputs, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs)
    assert all(g.isfinite().all() for g in second) and any(g.abs().max() > 0 for g in second)
    # Against differences of the first ones, along a direction.
    direction = [torch.randn_like(t) for t in inputs]

    def squares(shift: float) -> torch.Tensor:
        moved = copy.deepcopy(net)
        with torch.no_grad():
            for p, d in zip(moved.parameters(), direction[1:]):
                p.add_(d, alpha=shift)
        features = (x.features.detach() + shift * direction[0]).requires_grad_()
        y = moved(x.replace(features=features)).features
        found = torch.autograd.grad(y.square().sum(), [features, *moved.parameters()])
        return sum(g.square().sum() for g in found)

    h = 1e-6
    expected = (squares(h) - squares(-h)) / (2 * h)
    mine = sum((g * d).sum() for g, d in zip(second, direction))
    assert abs(mine - expected) <= 1e-5 * abs(expected)


def test_backward_twice_and_memory_afterwards(device: torch.device) -> None:
    net = network("stage", device)
    y = net(scan(device)).features
    once = torch.autograd.grad(y.sum(), list(net.parameters()), retain_graph=True)
    again = torch.autograd.grad(y.sum(), list(net.parameters()))
    for mine, theirs in zip(once, again, strict=True):  # a GPU adds them up in no order
        scale = theirs.abs().max().clamp(min=1)
        close(mine / scale, theirs / scale, sums=10_000)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y.sum(), list(net.parameters()))
    output = weakref.ref(y)
    del y
    assert output() is None, "what a backward pass needs holds the output that leads to it"


def test_writing_into_what_backward_needs_is_seen(device: torch.device) -> None:
    net = nn.Sequential(block(4, 4)).to(device, working_type(device))
    y = net(scan(device))
    with torch.no_grad():
        y.features.mul_(2)
    with pytest.raises(RuntimeError, match="inplace"):
        y.features.sum().backward()


def test_layers_run_one_by_one_where_a_chain_would_not_do(
    device: torch.device, calls: list[str]
) -> None:
    net = network("stage", device)
    x = scan(device)
    net[1].weight.requires_grad_(False)
    net(x).features.sum().backward()
    # The second chain; and of the first, the blocks that are chains by themselves.
    assert calls.count("chain_training") == 4 and net[1].weight.grad is None
    calls.clear()
    net[1].weight.requires_grad_(True)
    seen = []
    handle = net[3].body[1].register_forward_hook(lambda *_: seen.append(1))
    net(x)
    assert seen == [1]
    handle.remove()
    calls.clear()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        net(x).features.sum().backward()
    assert not calls
    net[4].body[4].eval()  # one norm alone
    net(x).features.sum().backward()
    assert calls.count("chain_training") == 3
    calls.clear()
    net.train()
    empty = pumice.SparseTensor(
        torch.empty(0, 4, dtype=torch.int32, device=device),
        torch.empty(0, 4, dtype=working_type(device), device=device),
        batch_size=1, spatial_shape=[32] * 3,
    )  # fmt: skip
    assert net(empty).features.shape == (0, 5) and not calls


def test_gradient_checkpoints(device: torch.device) -> None:
    net = network("stage", device)
    other = copy.deepcopy(net)
    x = scan(device)
    for reentrant in (False, True):
        net.zero_grad()
        other.zero_grad()
        checkpoint(lambda f: net(x.replace(features=f)).features, x.features,
                   use_reentrant=reentrant).square().sum().backward()  # fmt: skip
        other(x).features.square().sum().backward()
        for mine, theirs in zip(net.parameters(), other.parameters()):
            scale = theirs.grad.abs().max().clamp(min=1)
            close(mine.grad / scale, theirs.grad / scale, sums=1_000_000)


def test_a_shortcut_of_other_sites_is_refused_by_name(device: torch.device) -> None:
    strided = nn.Sequential(nn.Conv3d(4, 4, 2, 2, bias=False), nn.BatchNorm(4))
    net = nn.Sequential(nn.Residual(strided)).to(device, working_type(device))
    with pytest.raises(UserError, match="rows"):
        net(scan(device))


def test_a_layer_put_in_later_is_used(device: torch.device, calls: list[str], one_by_one) -> None:  # noqa: ANN001
    net = network("stage", device).eval()
    x = scan(device)
    with torch.no_grad():
        net(x)
        net[3].body[1] = nn.BatchNorm(10).to(device, working_type(device)).eval()
        close(net(x).features, one_by_one(lambda: net(x)).features, sums=10_000)


def shared() -> nn.Sequential:
    """The same convolution and norm twice."""
    layer, norm = nn.SubMConv3d(4, 4, 3, bias=False), nn.BatchNorm(4)
    return nn.Sequential(layer, norm, nn.ReLU(), layer, norm)


@pytest.mark.parametrize("make", [shared, lambda: block(4, 4), lambda: block(4, 6)])
@pytest.mark.parametrize("chained", [True, False])
def test_a_gradient_with_a_graph_is_the_one_without(
    make, chained: bool, one_by_one, calls: list[str]  # noqa: ANN001
) -> None:
    torch.manual_seed(2)
    net = make().double()
    x = random_tensor(extent=5, count=60)
    inputs = [x.features, *net.parameters()]

    def gradients(create_graph: bool) -> tuple[torch.Tensor, ...]:
        y = net(x).features
        return torch.autograd.grad(y.square().sum(), inputs, create_graph=create_graph)

    run = (lambda work: work()) if chained else one_by_one
    for plain, with_graph in zip(
        run(lambda: gradients(False)), run(lambda: gradients(True)), strict=True
    ):
        close(with_graph, plain, sums=10_000)
    assert chained == ("chain_training" in calls)


@pytest.mark.parametrize(
    "behind", [lambda: torch.nn.LeakyReLU(inplace=True), lambda: torch.nn.ELU(inplace=True)]
)
def test_what_follows_may_write_in_place(device: torch.device, behind, one_by_one) -> None:  # noqa: ANN001
    layers = (nn.SubMConv3d(4, 4, 3, bias=False), nn.BatchNorm(4))
    net = nn.Sequential(*layers, behind()).to(device, working_type(device))
    x = scan(device)

    def gradient() -> torch.Tensor:
        (found,) = torch.autograd.grad(net(x).features.square().sum(), [x.features])
        return found

    close(gradient(), one_by_one(gradient), sums=10_000)


class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


@pytest.mark.parametrize("of", ["convolution bias", "convolution weight", "norm weight"])
@pytest.mark.parametrize("training", [True, False])
def test_parametrised_layers(training: bool, of: str, calls: list[str]) -> None:
    torch.manual_seed(3)
    bias = of == "convolution bias"
    net = nn.Sequential(nn.SubMConv3d(4, 4, 3, bias=bias), nn.BatchNorm(4), nn.ReLU()).double()
    with torch.no_grad():
        net[1].weight.uniform_(0.5, 2)
    x = random_tensor(extent=6, count=100)
    net(x)
    plain = copy.deepcopy(net).train(training)
    layer, name = (net[1] if of == "norm weight" else net[0]), of.split()[1]
    with torch.no_grad():
        getattr(plain[1] if of == "norm weight" else plain[0], name).mul_(2)
    torch.nn.utils.parametrize.register_parametrization(layer, name, Doubled())
    net.train(training)
    calls.clear()
    with torch.set_grad_enabled(training):
        y = net(x).features
        assert not calls
        close(y, plain(x).features, sums=10_000)


def test_settings_of_norms_may_change(calls: list[str], one_by_one) -> None:  # noqa: ANN001
    net = network("stage", torch.device("cpu"))
    x = scan(torch.device("cpu"))
    net(x)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm):
            module.momentum, module.eps = 0.5, 1e-2
    other = copy.deepcopy(net)
    calls.clear()
    y = net(x).features
    assert "chain_training" in calls
    close(y, one_by_one(lambda: other(x)).features, sums=10_000)
    for mine, theirs in zip(net.state_dict().values(), other.state_dict().values()):
        close(mine.double(), theirs.double(), sums=10_000)


def test_a_residual_of_float32_is_rounded_alike(one_by_one) -> None:  # noqa: ANN001
    net = nn.Sequential(block(4, 4))
    for module in net.modules():
        if isinstance(module, nn.SubMConv3d):
            module.bfloat16()
    x = random_tensor(extent=6, count=100, dtype=torch.float32)
    other = copy.deepcopy(net)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, expected = net(x).features, one_by_one(lambda: other(x)).features
    assert y.dtype == expected.dtype == torch.bfloat16
    assert torch.equal(y, expected)


def test_sites_to_go_to_are_for_a_first_convolution() -> None:
    x = random_tensor(extent=6, count=100)
    net = nn.Sequential(block(4, 6)).double()
    with pytest.raises(TypeError, match="positional"):
        net(x, x.coords)


def test_an_empty_container_is_passed_over(calls: list[str], one_by_one) -> None:  # noqa: ANN001
    layers = (nn.SubMConv3d(4, 4, 3, bias=False), nn.BatchNorm(4))
    net = nn.Sequential(nn.Sequential(), *layers, nn.Sequential()).double()
    x = random_tensor(extent=6, count=100)
    y = net(x).features
    assert calls == ["chain_training"]
    close(y, one_by_one(lambda: net(x)).features, sums=10_000)


def test_a_shallow_copy_runs_its_own_modules(calls: list[str]) -> None:
    """As the replicas of torch.nn.DataParallel, which share what else a module keeps."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.SubMConv3d(4, 8, 3, bias=False), nn.BatchNorm(8), nn.ReLU())
    x = scan(torch.device("cpu"))
    net.to(x.features.dtype)
    expected = net(x).features
    other = copy.copy(net)
    other._modules = dict(net._modules)
    other._modules["0"] = copy.deepcopy(net[0])
    with torch.no_grad():
        other[0].weight.add_(1)
    changed = other(x).features
    assert not torch.equal(changed, expected)
    assert torch.equal(net(x).features, expected)
    assert torch.equal(other(x).features, changed)
    assert calls.count("chain_training") == 4


def test_a_network_that_nobody_has_is_gone(device: torch.device) -> None:
    """At once, and not when the garbage collector comes by."""
    net = network("centerpoint", device)
    net(scan(device)).features.sum().backward()
    weight = weakref.ref(net.conv_input[0].weight)
    gc.collect()
    gc.disable()
    try:
        del net
        assert weight() is None
    finally:
        gc.enable()


def test_stages_may_be_taken_out(device: torch.device) -> None:
    net = network("centerpoint", device).eval()
    x = scan(device)
    expected = net.stages(x)["conv4"]
    net.conv_out = None
    with torch.no_grad():
        torch.testing.assert_close(net(x).features, expected.features)


def test_gradients_are_tensors_of_their_own(device: torch.device, calls: list[str]) -> None:
    """Though they lie in one piece of memory: what is written into one, nobody sees who kept another."""
    net = network("stage", device)
    x = scan(device)
    net(x).features.square().sum().backward()
    assert "chain_gradients" in calls
    gradients = {name: p.grad for name, p in net.named_parameters()}
    before = {name: gradient.clone() for name, gradient in gradients.items()}
    first, *others = gradients
    weight = net.get_parameter(first).detach().clone().requires_grad_()
    product = (weight * gradients[first]).sum()
    for name in others:
        assert not gradients[name]._is_view()
        gradients[name].zero_()
    product.backward()
    assert torch.equal(weight.grad, before[first])
    assert torch.equal(gradients[first], before[first])
    parameters = list(net.parameters())
    for gradient in torch.autograd.grad(net(x).features.square().sum(), parameters):
        gradient.add_(torch.ones_like(gradient, requires_grad=True))  # as a penalty does
    net.zero_grad(set_to_none=False)
    for _ in range(2):
        net(x).features.square().sum().backward()
    for name, parameter in net.named_parameters():
        scale = before[name].abs().max().clamp(min=1)
        close(parameter.grad / scale, 2 * before[name] / scale, sums=10_000_000)


def layers(*sizes: int) -> nn.Sequential:
    """Convolutions of 8 channels with their norms, and ReLUs between them."""
    parts: list[torch.nn.Module] = []
    for size in sizes:
        parts += [nn.SubMConv3d(8, 8, size, bias=False), nn.BatchNorm(8), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def test_layers_with_the_same_window_share_a_map(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = layers(3, 1, 3, 1, 3).to(device)
    x = random_tensor(channels=8, dtype=torch.float32, device=device)
    net(x)
    asked: list[object] = []
    find = pumice.ops.submanifold_map
    monkeypatch.setattr(pumice.ops, "submanifold_map", lambda *a: asked.append(a) or find(*a))
    net(x)
    assert len(asked) == 2


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("plain_first", [True, False])
def test_a_window_that_changes_is_seen_by_every_chain_of_its_layer(
    training: bool, plain_first: bool, device: torch.device, one_by_one  # noqa: ANN001
) -> None:
    torch.manual_seed(5)
    net = layers(3, 1, 3, 1, 3).to(device).train(training)
    adding = nn.Residual(net)  # a chain of its own, of the same layers
    x = random_tensor(channels=8, dtype=torch.float32, device=device)
    both = (net, adding) if plain_first else (adding, net)
    with torch.set_grad_enabled(training):
        for run in both:
            close(run(x).features, one_by_one(lambda: run(x).features), 1000)
        # As many offsets, elsewhere.
        net[0].window = nn.SubMConv3d(8, 8, 3, dilation=2).window
        for run in both:
            close(run(x).features, one_by_one(lambda: run(x).features), 1000)


def test_a_layer_that_finds_its_map_otherwise_is_asked(device: torch.device, one_by_one) -> None:  # noqa: ANN001
    net = layers(3, 3, 3).to(device).eval()
    x = random_tensor(channels=8, dtype=torch.float32, device=device)
    other = nn.SubMConv3d(8, 8, 3, dilation=2)
    with torch.no_grad():
        before = net(x).features
        net[3].find = other.find
        close(net(x).features, one_by_one(lambda: net(x).features), 1000)
        assert not torch.equal(net(x).features, before)


def test_types_that_kernels_take_together() -> None:
    f16, f32, f64, bf16 = torch.float16, torch.float32, torch.float64, torch.bfloat16

    def fit(
        features: torch.dtype, weight: torch.dtype, *norm: torch.dtype, other: torch.dtype | None = None
    ) -> bool:
        """`norm`: of its weight, its bias, its running mean and variance; one stands for all."""
        kinds = norm * 4 if len(norm) == 1 else norm
        parameters = [torch.ones(27, 4, 4, dtype=weight), *(torch.ones(4, dtype=d) for d in kinds[:2])]
        running = [*(torch.ones(4, dtype=d) for d in kinds[2:]), torch.tensor(0)]
        second = None if other is None else torch.ones(3, 4, dtype=other)
        given = torch.ones(3, 4, dtype=features)
        return _C.types_fit(given, second, tuple(parameters), tuple(running), False)

    assert fit(f32, f32, f32) and fit(f64, f64, f64) and fit(f16, f16, f32)
    assert fit(f16, f16, f32, other=f16)
    assert not fit(f16, f32, f32)  # nobody says which of the two
    # Norms are of the type of sums, or of the features', as after half().
    assert fit(f16, f16, f16) and fit(bf16, bf16, bf16) and fit(f16, f16, f32, f32, f16, f16)
    assert not fit(f16, f16, f16, f32, f32, f32) and not fit(f16, f16, f32, f32, f16, f32)
    assert not fit(f64, f64, f32) and not fit(f32, f32, f16) and not fit(f16, f16, bf16)
    assert not fit(f32, f32, f32, other=f16)
    assert not fit(torch.int32, torch.int32, f32) and not fit(torch.bool, f32, f32)
    transposed, ones = torch.ones(27, 4, 8).transpose(1, 2), [torch.ones(8)] * 2
    running = (*ones, torch.tensor(0))
    assert not _C.types_fit(torch.ones(3, 4), None, (transposed, *ones), running, False)


def test_weights_made_once_know_what_they_were_made_of() -> None:
    weight, norm = torch.randn(27, 4, 4), [torch.ones(4) for _ in range(4)]
    batches = torch.tensor(0)
    parameters, running = (weight, *norm[:2]), (*norm[2:], batches)
    made = _C.ChainWeights(_C.Chain([(0, -1, -1, True, 1e-5, 0.1)]), torch.ones(1, 4), parameters, (None,), running)
    assert made.is_of(parameters, running)
    batches += 1  # of no matter here
    assert made.is_of(parameters, running)
    assert not made.is_of((weight.clone(), *norm[:2]), running)
    norm[2].add_(1)
    assert not made.is_of(parameters, running)
    with torch.inference_mode():
        uncounted = (torch.randn(27, 4, 4), torch.ones(4), torch.ones(4))
        again = _C.ChainWeights(_C.Chain([(0, -1, -1, True, 1e-5, 0.1)]), torch.ones(1, 4), uncounted, (None,), running)
        assert again.is_of(uncounted, running)
