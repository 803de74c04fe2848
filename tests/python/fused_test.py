"""Batch norm with a residual and a ReLU, and convolutions that take them along."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from conftest import NO_GPU, close, random_tensor, working_type

from pumice import UserError, _C, nn, ops
from pumice.ops import modes


def reference(
    norm: torch.nn.BatchNorm1d, x: torch.Tensor, residual: torch.Tensor | None, relu: bool
) -> torch.Tensor:
    y = norm(x)
    y = y if residual is None else y + residual
    return torch.relu(y) if relu else y


def norms(device: torch.device, **options: object) -> tuple[nn.BatchNorm, torch.nn.BatchNorm1d]:
    """Ours, and PyTorch's in float64 on the CPU."""
    ours = nn.BatchNorm(6, **options)
    if ours.weight is not None:
        torch.nn.init.uniform_(ours.weight, 0.5, 2)
        torch.nn.init.uniform_(ours.bias, -1, 1)
    plain = torch.nn.BatchNorm1d(6, **options).double()
    plain.load_state_dict(ours.state_dict())
    return ours.to(device, working_type(device)), plain


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("with_residual", [False, True])
@pytest.mark.parametrize("rows", [2, 3, 300])
def test_training_is_that_of_pytorch(
    device: torch.device, rows: int, with_residual: bool, relu: bool
) -> None:
    ours, plain = norms(device)
    x = random_tensor(channels=6, count=rows, device=device, dtype=working_type(device))
    residual = torch.randn_like(x.features).requires_grad_() if with_residual else None
    far = [None if t is None else t.detach().cpu().double().requires_grad_()
           for t in (x.features, residual)]
    for _ in range(2):  # the running statistics move twice
        y = ours(x, residual, relu).features
        expected = reference(plain, far[0], far[1], relu)
    close(y, expected.to(y), sums=rows)
    gradient = torch.randn_like(expected)
    y.backward(gradient.to(y))
    expected.backward(gradient)
    # A variance of two or three rows may be small, and what is divided by it large.
    scale = max(1.0, 1 / float(far[0].detach().var(0, unbiased=False).min().sqrt())) ** 3
    for mine, theirs in zip(
        (x.features, residual, ours.weight, ours.bias),
        (far[0], far[1], plain.weight, plain.bias),
        strict=True,
    ):
        if theirs is not None:
            close(mine.grad / scale, theirs.grad.to(mine.grad) / scale, sums=rows)
    for name, value in plain.state_dict().items():
        mine = ours.state_dict()[name]
        if name == "num_batches_tracked":
            assert mine.item() == value.item() == 2 and mine.dtype == value.dtype
        else:
            close(mine, value.to(mine), sums=rows)


@pytest.mark.parametrize(
    "options",
    [{"affine": False}, {"momentum": None}, {"track_running_stats": False}, {"eps": 0.1}],
)
@pytest.mark.parametrize("training", [True, False])
def test_options_mean_the_same(
    device: torch.device, options: dict[str, object], training: bool
) -> None:
    ours, plain = norms(device, **options)
    assert ours.state_dict().keys() == plain.state_dict().keys()
    x = random_tensor(channels=6, device=device, dtype=working_type(device)).detach()
    for mode in (True, training):
        y = ours.train(mode)(x, None, True).features
        expected = reference(plain.train(mode), x.features.cpu().double(), None, True)
        close(y, expected.to(y), sums=300)


def test_an_empty_batch_changes_nothing(device: torch.device) -> None:
    ours = nn.BatchNorm(4).to(device)
    x = random_tensor(count=0, dtype=torch.float32, device=device)
    before = copy.deepcopy(ours.state_dict())
    y = ours(x, x.features, True)
    y.features.sum().backward()
    assert y.features.shape == (0, 4) and x.features.grad.shape == (0, 4)
    assert all(torch.equal(before[k], v) for k, v in ours.state_dict().items())


def test_one_row_has_no_variance(device: torch.device) -> None:
    x = random_tensor(count=1, dtype=torch.float32, device=device)
    with pytest.raises(ValueError, match="row"):
        nn.BatchNorm(4).to(device)(x)
    assert nn.BatchNorm(4).to(device).eval()(x).features.shape == (1, 4)


@pytest.mark.parametrize("relu", [False, True])
def test_gradcheck(relu: bool) -> None:
    x, residual = torch.randn(2, 7, 3, dtype=torch.float64).unbind()
    weight, bias = torch.rand(2, 3, dtype=torch.float64).unbind()
    inputs = [t.clone().requires_grad_() for t in (x, weight, bias, residual)]

    def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        return ops.batch_norm(x, w, b, residual=r, relu=relu)

    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


def net_of(device: torch.device, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    net = nn.Sequential(
        nn.SubMConv3d(8, 16, 3),
        nn.BatchNorm(16),
        nn.ReLU(),
        nn.Residual(
            nn.Sequential(
                nn.SubMConv3d(16, 16, 1, bias=False), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
                nn.SubMConv3d(16, 24, 3), nn.BatchNorm(24),
            ),
            nn.Sequential(nn.Linear(16, 24), nn.BatchNorm(24)),
        ),
    )
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            torch.nn.init.uniform_(module.weight, 0.5, 2)
            torch.nn.init.uniform_(module.bias, -1, 1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2)
    return net.to(device, dtype)


def apart(net: torch.nn.Module, x: object) -> object:
    """The same modules, each by itself."""
    if isinstance(net, nn.Residual):
        y = apart(net.body, x) + apart(net.shortcut, x)
        return y.replace(features=torch.relu(y.features))
    if isinstance(net, nn.Sequential):
        for module in net:
            x = apart(module, x)
        return x
    return nn.OnFeatures(net)(x) if type(net).__module__.startswith("torch.nn") else net(x)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_fused_networks_are_the_modules_in_them(
    device: torch.device, training: bool, gradients: bool
) -> None:
    dtype = working_type(device)
    net = net_of(device, dtype).train(training)
    other = copy.deepcopy(net)
    x = random_tensor(channels=8, device=device, dtype=dtype)
    with torch.set_grad_enabled(gradients):
        for _ in range(2):  # the second one finds what the first one kept
            y, expected = net(x).features, apart(other, x).features
    close(y, expected, sums=16 * 27)
    for (name, mine), theirs in zip(
        net.state_dict().items(), other.state_dict().values(), strict=True
    ):
        close(mine.to(dtype), theirs.to(dtype), sums=16 * 27), name
    if gradients:
        of = torch.autograd.grad(y.square().sum(), list(net.parameters()))
        of_other = torch.autograd.grad(expected.square().sum(), list(other.parameters()))
        for mine, theirs in zip(of, of_other, strict=True):
            scale = theirs.abs().max().clamp(min=1)
            close(mine / scale, theirs / scale, sums=300 * 16 * 27)
    else:
        assert pickle.loads(pickle.dumps(net))(x).features.shape == y.shape


def test_what_is_folded_follows_its_norm(device: torch.device) -> None:
    dtype = working_type(device)
    net = net_of(device, dtype).eval()
    x = random_tensor(channels=8, device=device, dtype=dtype).detach()
    with torch.no_grad():
        net(x)
        net[1].running_mean.add_(1)
        net[0].bias.mul_(3)
        net[3].body[4].weight.mul_(0.5)
        close(net(x).features, apart(net, x).features, sums=16 * 27)


def test_writing_where_no_version_tells_is_seen(device: torch.device) -> None:
    dtype = working_type(device)
    net = net_of(device, dtype).eval()
    x = random_tensor(channels=8, device=device, dtype=dtype).detach()
    with torch.no_grad():
        net(x)
        net[0].weight.data.mul_(2)
        net[1].weight.data.mul_(3)
        net[1].running_var.data.add_(1)
        close(net(x).features, apart(net, x).features, sums=16 * 27)


@pytest.mark.parametrize("training", [True, False])
def test_the_first_convolution_leads_to_given_sites(device: torch.device, training: bool) -> None:
    dtype = working_type(device)
    x = random_tensor(channels=8, device=device, dtype=dtype).detach()
    down = nn.Conv3d(8, 8, 2, 2).to(device, dtype)
    up = nn.Sequential(nn.InverseConv3d(8, 4, 2, stride=2), nn.BatchNorm(4), nn.ReLU())
    up = up.to(device, dtype).train(training)
    other = copy.deepcopy(up)
    with torch.set_grad_enabled(training):
        y = up(down(x), x)
        expected = other[2](other[1](other[0](down(x), x)))
    assert y.coords.is_same(x.coords)
    close(y.features, expected.features, sums=64)
    with pytest.raises(UserError, match="like"):
        nn.Sequential(nn.BatchNorm(8)).to(device, dtype)(x, x)


def test_a_frozen_network_is_frozen_anew(device: torch.device) -> None:
    dtype = working_type(device)
    net = nn.freeze(net_of(device, dtype).eval())
    x = random_tensor(channels=8, device=device, dtype=dtype).detach()
    with torch.no_grad():
        for _ in range(2):
            close(net(x).features, apart(net, x).features, sums=16 * 27)
        net[0].weight.data.mul_(2)
        net[1].weight.data.mul_(3)
        nn.freeze(net)
        close(net(x).features, apart(net, x).features, sums=16 * 27)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("bias", [False, True], ids=["a chain", "step by step"])
def test_statistics_of_a_frozen_network_that_moved_in_training(device: torch.device, bias: bool, gradients: bool) -> None:
    """Kernels write them, and no version says so."""
    dtype = working_type(device)
    layers = (nn.SubMConv3d(8, 8, 3, bias=bias), nn.BatchNorm(8), nn.ReLU(), nn.SubMConv3d(8, 8, 3, bias=bias), nn.BatchNorm(8))
    net = nn.freeze(nn.Sequential(*layers).to(device, dtype).eval())
    x = random_tensor(channels=8, device=device, dtype=dtype).detach()
    with torch.no_grad():
        before = [net(x).features for _ in range(2)][-1]
    net.train()
    with torch.set_grad_enabled(gradients):
        for _ in range(3):
            net(x)
    net.eval()
    with torch.no_grad():
        after = net(x).features
        close(after, apart(net, x).features, sums=16 * 27)
        assert not torch.allclose(after, before)


def test_statistics_that_moved_where_layers_run_in_another_container(device: torch.device) -> None:
    dtype = working_type(device)
    first, second = (
        nn.Sequential(nn.SubMConv3d(8, 8, 3, bias=False), nn.BatchNorm(8)).to(device, dtype) for _ in range(2)
    )
    whole = nn.freeze(nn.Sequential(*first, *second).eval())
    alone = nn.Sequential(*first, nn.ReLU())
    x = random_tensor(channels=8, device=device, dtype=dtype).detach()
    with torch.no_grad():
        for _ in range(2):
            alone(x)
    whole.train()
    for _ in range(3):
        whole(x)
    whole.eval()
    with torch.no_grad():
        close(alone(x).features, apart(alone, x).features, sums=8 * 27)


def test_what_is_recorded_is_not_kept(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    dtype = working_type(device)
    net = nn.freeze(net_of(device, dtype).eval())
    x = random_tensor(channels=8, device=device, dtype=dtype).detach()
    made: list[object] = []

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        return lambda *given: made.append(1) or call(*given)

    monkeypatch.setattr(_C, "ChainWeights", counted(_C.ChainWeights))
    monkeypatch.setattr(ops, "fold_batch_norm", counted(ops.fold_batch_norm))
    with torch.no_grad():
        monkeypatch.setattr(modes, "is_recorded", lambda features: True)
        net(x)
        once = len(made)
        assert once > 0
        net(x)
        assert len(made) == 2 * once
        monkeypatch.setattr(modes, "is_recorded", lambda features: False)
        net(x)
        net(x)
        assert len(made) == 3 * once


def test_a_graph_of_a_frozen_network_leaves_other_calls_alone(device: torch.device) -> None:
    if device.type != "cuda":
        pytest.skip(NO_GPU)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        net = nn.freeze(net_of(device, torch.float32).eval())
        x = random_tensor(channels=8, device=device, dtype=torch.float32).detach()
        expected = apart(net, x).features
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            recorded = net(x).features
        close(net(x).features, expected, sums=16 * 27)  # the graph has not run
        for _ in range(2):
            graph.replay()
            close(recorded, expected, sums=16 * 27)


def test_hooks_are_called(device: torch.device) -> None:
    net = net_of(device).eval()
    x = random_tensor(channels=8, device=device, dtype=torch.float32).detach()
    seen = []
    with torch.no_grad():
        net(x)
        handle = net[1].register_forward_hook(lambda module, inputs, output: seen.append(1))
        net(x)
        handle.remove()
        net(x)
    assert seen == [1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
def test_autocast(device: torch.device, dtype: torch.dtype, training: bool) -> None:
    net = net_of(device).train(training)
    x = random_tensor(channels=8, device=device, dtype=torch.float32)
    exact = net(x).features
    with torch.autocast(device.type, dtype=dtype), torch.set_grad_enabled(training):
        y = net(x).features
    assert y.dtype == dtype
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(y.float(), exact, rtol=16 * step, atol=32 * step)
    if training:
        y.float().square().sum().backward()
        assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all()
                   for p in net.parameters())


def test_a_residual_of_other_sites_is_refused(device: torch.device) -> None:
    x = random_tensor(channels=4, device=device, dtype=torch.float32)
    strided = nn.Sequential(nn.Conv3d(4, 4, 2, 2), nn.BatchNorm(4)).to(device)
    with pytest.raises(UserError, match="rows"):
        nn.Residual(strided)(x)
    wider = nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8)).to(device)
    with pytest.raises(UserError, match="channels"):
        nn.Residual(wider)(x)
