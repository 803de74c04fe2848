"""MinkUNet42 as users of spconv write it is one description with the native one: as many links, in chains as long as there are."""

from __future__ import annotations

import copy
import importlib.util
import pathlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from conftest import NO_GPU, random_sites, working_type
from deferred_fixtures import chains, joins, switched_on_again  # noqa: F401
from deferred_networks import at_once

import pumice
import pumice.compat.spconv as spconv
from pumice import models

nn = torch.nn
PEERS = [folder / "benchmarks/peers/spconv_networks.py" for folder in pathlib.Path(__file__).resolve().parents]


def operators(call: Any) -> dict[str, int]:
    """How often PyTorch was asked for a join, a product, a norm, a sum or a ReLU."""
    with torch.autograd.profiler.profile() as profile:
        call()
    names = [event.name.removeprefix("aten::").rstrip("_") for event in profile.function_events]
    return {name: names.count(name) for name in ("cat", "linear", "batch_norm", "add", "relu")}


@pytest.fixture
def peers_networks() -> Iterator[ModuleType]:
    """The networks of the benchmarks, which import spconv."""
    file = next((path for path in PEERS if path.is_file()), None)
    if file is None:
        pytest.skip("benchmarks/peers is not there: these are not the sources")
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "spconv"}
    spconv.install()
    try:
        spec = importlib.util.spec_from_file_location("networks_of_peers", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "spconv"]:
            del sys.modules[name]
        sys.modules.update(before)


WIDTHS = (4, 4, 6, 8, 10, 10, 8, 6, 6)


def scan_of(peer: bool, dtype: torch.dtype, device: torch.device | str = "cpu") -> Any:
    cells = random_sites(3, 32, 300).to(device)
    features = torch.randn(len(cells), 4, generator=torch.Generator().manual_seed(1)).to(device, dtype)
    if peer:
        return spconv.SparseConvTensor(features, cells, [32] * 3, 2)
    return pumice.SparseTensor(cells, features, spatial_shape=[32] * 3, batch_size=2)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("style", ["containers", "layers"])
def test_minkunet42_for_spconv_is_as_many_links_as_the_native_one(
    peers_networks: ModuleType, chains: list[int], joins: list[int], style: str, training: bool
) -> None:
    """The native one is 13 calls: what leads up is a call of its own there."""
    native = models.MinkUNet42(4, 5, WIDTHS)
    convolutions = sum(isinstance(layer, pumice.nn.convolution.Convolution) for layer in native.modules())
    net = peers_networks.MinkUNet42(WIDTHS, 4, 5, style).double().train(training)

    given = scan_of(True, torch.float64)

    def run() -> None:
        chains.clear()
        joins.clear()
        with torch.set_grad_enabled(training):
            net(given.replace_feature(given.features))

    for _ in range(3):
        run()
    asked = operators(run)
    assert sum(chains) == convolutions == 49
    assert chains == [2, 5, *[6] * 7]  # the stem; a stage at each level on the way down, and on the way up
    assert joins == [*[0] * 5, *[2] * 4]  # a block and its shortcut
    assert asked == {"cat": 0, "linear": 1, "batch_norm": 0, "add": 0, "relu": 0}, "but for the classifier"


@pytest.mark.parametrize("style", ["containers", "layers"])
@pytest.mark.parametrize("frozen", [False, True])
def test_minkunet42_for_spconv_learns_as_it_does_layer_by_layer(
    peers_networks: ModuleType, style: str, frozen: bool, device: torch.device
) -> None:
    dtype = working_type(device)
    net = peers_networks.MinkUNet42(WIDTHS, 4, 5, style).to(device, dtype)
    like = copy.deepcopy(net)

    def train(net: nn.Module) -> list[torch.Tensor]:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = net(scan_of(True, dtype, device)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        net.eval()
        if frozen:
            pumice.nn.freeze(net)
        with torch.no_grad():
            results = [net(scan_of(True, dtype, device)) for _ in range(4)]
            for parameter in net.parameters():
                parameter.mul_(1.1)
            if frozen:
                pumice.nn.freeze(net)
            results.append(net(scan_of(True, dtype, device)))
        return [*losses, *results]

    tolerance = 1e-9 if dtype == torch.float64 else 1e-3
    for one, two in zip(train(net), at_once(lambda: train(like))):
        torch.testing.assert_close(one, two, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("style", ["containers", "layers"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision(
    peers_networks: ModuleType, style: str, dtype: torch.dtype, autocast: bool, device: torch.device
) -> None:
    """Nearer to float64 than layers that round in between, or as near."""
    net = peers_networks.MinkUNet42(WIDTHS, 4, 5, style).to(device).eval()
    like = copy.deepcopy(net).double().cpu()
    given = scan_of(True, torch.float32, device) if autocast else scan_of(True, dtype, device)
    if not autocast:
        net.to(dtype)

    def run() -> torch.Tensor:
        with torch.no_grad(), torch.autocast(device.type, dtype, enabled=autocast):
            for _ in range(4):
                made = net(given.replace_feature(given.features))
        assert made.dtype == dtype
        return made.double().cpu()

    with torch.no_grad():
        exact = at_once(lambda: like(scan_of(True, torch.float64)))
    mine, others = ((of - exact).norm() / exact.norm() for of in (run(), at_once(run)))
    assert mine <= 1.5 * others + 4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("style", ["containers", "layers"])
@pytest.mark.parametrize("half", [False, True])
def test_minkunet42_for_spconv_is_recorded_cuda(peers_networks: ModuleType, style: str, half: bool, joins: list[int]) -> None:
    if not torch.cuda.is_available():
        pytest.skip(NO_GPU)
    net = peers_networks.MinkUNet42((32, 32, 64, 64, 64, 64, 64, 96, 96), 4, 19, style).cuda().eval()
    for norm in net.modules():
        if isinstance(norm, nn.BatchNorm1d):
            nn.init.uniform_(norm.running_var, 0.5, 2)
    net = net.half() if half else net
    pumice.nn.freeze(net)
    fast = pumice.compile(net)
    for seed in range(6):
        cells = random_sites(3, 64, 4000 - 50 * seed, seed=seed).cuda()
        features = torch.randn(len(cells), 4, dtype=torch.float16 if half else torch.float32, device="cuda")
        made = fast(spconv.SparseConvTensor(features, cells, [64] * 3, 2))
        with torch.no_grad():
            expected = at_once(lambda: net(spconv.SparseConvTensor(features, cells, [64] * 3, 2)))
        error = (made.float() - expected.float()).norm() / expected.float().norm()
        assert error <= (2e-2 if half else 1e-4)
    fast.wait()
    assert fast.bytes > 0 and joins[-4:] == [2] * 4, "the graph has chains that take two values"
