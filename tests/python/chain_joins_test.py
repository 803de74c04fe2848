"""What comes in two tensors runs as their concatenation does, in chains and out of them."""

from __future__ import annotations

import copy

import pytest
import torch
from chain_test import block, calls, one_by_one, with_other_norms  # noqa: F401  (fixtures)
from conftest import close, random_tensor, working_type

import pumice
from pumice import UserError, models, nn


def inputs(device: torch.device, dtype: torch.dtype | None = None) -> list[pumice.SparseTensor]:
    """[N, 4] and [N, 2] on the same sites."""
    x = random_tensor(device=device, dtype=dtype or working_type(device))
    other = torch.randn(len(x), 2).to(x.features).requires_grad_()
    return [x, x.replace(features=other)]


def convolution(cin: int, cout: int, **options: object) -> list[torch.nn.Module]:
    return [nn.SubMConv3d(cin, cout, 3, bias=False, **options), nn.BatchNorm(cout), nn.ReLU()]


class Twice(torch.nn.Module):
    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        return x + x


NETWORKS = {
    "a block with a shortcut": lambda: nn.Sequential(block(6, 8), block(8, 8)),
    "a strided layer": lambda: nn.Sequential(
        nn.Conv3d(6, 4, 2, 2, bias=False, outputs="cell"), nn.BatchNorm(4), nn.ReLU(), block(4, 5)
    ),
    "a block that adds what comes in": lambda: nn.Sequential(block(6, 6), *convolution(6, 3)),
    "no chain first": lambda: nn.Sequential(Twice(), *convolution(6, 3)),
    "a layer with a bias first": lambda: nn.Sequential(nn.SubMConv3d(6, 8, 3), *convolution(8, 3)),
    "groups": lambda: nn.Sequential(*convolution(6, 4, groups=2), *convolution(4, 3)),
    "features alone": lambda: nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU()),
    "nothing": lambda: nn.Sequential(),
}
CHAINS = ("a block with a shortcut", "a strided layer")  # that take both, first of all


def network(name: str, device: torch.device) -> torch.nn.Module:
    torch.manual_seed(3)
    return with_other_norms(NETWORKS[name]()).to(device, working_type(device))


def step(net: torch.nn.Module, given: list[pumice.SparseTensor], joined: bool) -> list[torch.Tensor]:
    """The output and all gradients."""
    y = (net(pumice.cat(given)) if joined else net(given[0], second=given[1])).features
    weight = torch.linspace(-1, 1, y.numel(), dtype=torch.float64).reshape(y.shape).to(y)
    return [y, *torch.autograd.grad(y, [*(x.features for x in given), *net.parameters()], weight)]


@pytest.mark.parametrize("name", NETWORKS)
def test_training(device: torch.device, name: str, calls: list[str], one_by_one) -> None:  # noqa: ANN001, F811
    net, given = network(name, device), inputs(device)
    other = copy.deepcopy(net)
    mine = step(net, given, joined=False)
    chains = calls.count("chain_training")
    expected = one_by_one(lambda: step(other, given, joined=True))
    for here, there in zip(mine, expected, strict=True):
        scale = there.abs().max().clamp(min=1)
        close(here / scale, there / scale, sums=10_000)
    for (key, here), there in zip(net.named_buffers(), other.buffers()):
        assert here.dtype == there.dtype
        close(here.double(), there.double(), sums=1000) if "num" not in key else None
    if name in CHAINS:
        assert chains == 1, "all of it is one chain, the concatenation too"


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_inference(
    device: torch.device, name: str, frozen: bool, calls: list[str], one_by_one  # noqa: ANN001, F811
) -> None:
    net, given = network(name, device).eval(), inputs(device)
    if frozen:
        nn.freeze(net)
    with torch.no_grad():
        expected = one_by_one(lambda: net(pumice.cat(given)))
        for _ in range(2):
            y = net(given[0], second=given[1])
            close(y.features, expected.features, sums=1000)
            assert y.coords.is_same(expected.coords)
    if name in CHAINS:
        assert calls.count("chain_inference") == 2, "a chain a pass, which reads both"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(device: torch.device, dtype: torch.dtype, one_by_one) -> None:  # noqa: ANN001, F811
    """A rounding of each layer's result, and one of what it is made of."""
    net = network(CHAINS[0], device).eval().to(dtype)
    given = [x.replace(features=x.features.detach().to(dtype)) for x in inputs(device)]
    with torch.no_grad():
        mine = net(given[0], second=given[1]).features.float()
        expected = one_by_one(lambda: net(pumice.cat(given))).features.float()
    assert (mine - expected).norm() <= 4 * torch.finfo(dtype).eps * expected.norm()


@pytest.mark.parametrize("training", [False, True])
def test_autocast(device: torch.device, training: bool, one_by_one) -> None:  # noqa: ANN001, F811
    net = network(CHAINS[0], device).float().train(training)
    given = [x.replace(features=x.features.detach().float()) for x in inputs(device)]
    with torch.autocast(device.type, torch.bfloat16), torch.set_grad_enabled(training):
        mine = net(given[0], second=given[1]).features
        expected = one_by_one(lambda: copy.deepcopy(net)(pumice.cat(given))).features
    assert mine.dtype == expected.dtype == torch.bfloat16
    error = (mine.float() - expected.float()).norm() / expected.float().norm()
    assert error <= 4 * torch.finfo(torch.bfloat16).eps


def test_tensors_of_two_types_are_brought_to_one_as_cat_does(device: torch.device) -> None:
    net, (x, other) = network(CHAINS[0], device).float().eval(), inputs(device, torch.float32)
    other = other.replace(features=other.features.detach().half())
    with torch.no_grad():
        y = net(x, second=other)
    assert y.features.dtype == torch.float32
    close(y.features, net(pumice.cat([x, other])).features.detach(), sums=1000)


def test_other_sites_are_refused_by_name(device: torch.device) -> None:
    net, (x, _) = network(CHAINS[0], device), inputs(device)
    elsewhere = random_tensor(channels=2, seed=9, device=device, dtype=working_type(device))
    with pytest.raises(UserError, match="cat: .*sites"):
        net(x, second=elsewhere)


def test_a_hook_sees_what_its_layer_takes(device: torch.device) -> None:
    net, given = network(CHAINS[0], device), inputs(device)
    seen = []
    net[0].body[0].register_forward_hook(lambda layer, args, y: seen.append(args[0].features.shape[1]))
    net(given[0], second=given[1])
    assert seen == [6]


def test_what_is_added_in_the_end_and_where_it_leads(device: torch.device, one_by_one) -> None:  # noqa: ANN001, F811
    """Beside `other` and `like`."""
    torch.manual_seed(0)
    type_ = working_type(device)
    body = nn.Sequential(*convolution(6, 5), *convolution(5, 4)[:2]).to(device, type_).eval()
    given = inputs(device)
    up = nn.Sequential(
        nn.InverseConv3d(6, 5, 2, 2, bias=False), nn.BatchNorm(5), nn.ReLU(), *convolution(5, 4)[:2]
    ).to(device, type_).eval()  # fmt: skip
    down = nn.Conv3d(4, 4, 2, 2, bias=False, outputs="cell").to(device, type_)
    with torch.no_grad():
        mine = nn.in_order(body, given[0], given[0], second=given[1])
        close(mine.features, one_by_one(lambda: nn.residual(body, pumice.cat(given), given[0])).features, sums=1000)
        low = down(given[0])
        beside = low.replace(features=low.features[:, :2].contiguous())
        y = up(low, like=given[0], second=beside)
        assert y.coords.is_same(given[0].coords)
        close(y.features, one_by_one(lambda: up(pumice.cat([low, beside]), like=given[0])).features, sums=1000)


def test_second_derivatives() -> None:
    torch.manual_seed(1)
    net = nn.Sequential(block(3, 4)).double()
    x = random_tensor(extent=4, count=12, channels=2)
    other = x.replace(features=torch.randn(len(x), 1, dtype=torch.float64).requires_grad_())
    wanted = [x.features, other.features, *net.parameters()]

    def seconds(y: pumice.SparseTensor) -> tuple[torch.Tensor, ...]:
        first = torch.autograd.grad(y.features.square().sum(), wanted, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), wanted)

    mine, expected = seconds(net(x, second=other)), seconds(net(pumice.cat([x, other])))
    for here, there in zip(mine, expected, strict=True):
        torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-9)


def test_a_network_runs_a_chain_fewer_where_it_joins_nothing(
    device: torch.device, calls: list[str], monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    """The U-net of MinkUNet42 asks PyTorch for no concatenation, in inference and in training."""
    net = models.MinkUNet42(4, 5, (4, 4, 4, 6, 8, 8, 6, 4, 4)).to(device, working_type(device))
    x = random_tensor(extent=32, count=200, device=device, dtype=working_type(device))
    made = []
    cat = torch.cat
    monkeypatch.setattr(torch, "cat", lambda *args, **kwargs: made.append(1) or cat(*args, **kwargs))
    net(x).features.sum().backward()
    with torch.no_grad():
        net.eval()(x)
    assert not made
    assert calls.count("chain_training") == calls.count("chain_inference") == 13
