"""Chains of frozen layers that are called one by one: weights are folded and packed once, and again when something of
them changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from conftest import random_sites
from deferred_fixtures import switched_on_again  # noqa: F401
from deferred_networks import Block, at_once, sparse
from deferred_programs import EXTENT

import pumice
import pumice.compat.minkowski as ME
from pumice import _C
from pumice.nn import kept
from pumice.nn.deferred import running
from pumice.ops import modes

nn = torch.nn
CHANNELS = 8


class Run:
    """Two blocks in evaluation on one scan, and how often weights were made and chains run in Python."""

    def __init__(self, device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
        self.net = nn.Sequential(Block(CHANNELS, "a"), Block(CHANNELS, "a")).to(device).eval()
        for module in self.net.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)
        self.cells = random_sites(3, EXTENT, 150).to(device)
        self.features = torch.randn(len(self.cells), CHANNELS, device=device)
        self.made = self.looked_closer = 0
        monkeypatch.setattr(_C, "ChainWeights", self._counted("made", _C.ChainWeights))
        monkeypatch.setattr(running, "_compute_all", self._counted("looked_closer", running._compute_all))

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            setattr(self, name, getattr(self, name) + 1)
            return call(*given)

        return counting

    def __call__(self) -> torch.Tensor:
        with torch.no_grad():
            return self.net(sparse(self.cells, self.features)).features + 0

    def agrees(self) -> bool:
        """Whether the output is what the layers give one by one, without what frozen ones keep."""
        expected = at_once(self.unfrozen)
        return torch.allclose(self(), expected, rtol=2e-3, atol=2e-3)

    def unfrozen(self) -> torch.Tensor:
        layers = [layer for module in self.net.modules() if (layer := kept.kept_of(module)) is not None]
        for layer in layers:
            layer.frozen = False
        try:
            return self()
        finally:
            for layer in layers:
                layer.frozen = True

    def settle(self) -> None:
        """Passes until nothing is learned of the network any more."""
        for _ in range(4):
            self()
        self.made = self.looked_closer = 0

    @property
    def counts(self) -> tuple[int, int]:
        """(weights made, chains that ran in Python) since this was asked before."""
        counts = self.made, self.looked_closer
        self.made = self.looked_closer = 0
        return counts


def outcome(call: Callable[[], torch.Tensor]) -> str:
    try:
        return str(call().dtype)
    except pumice.UserError as error:
        return str(error)


@pytest.fixture
def run(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    yield Run(device, monkeypatch)


def test_weights_are_made_once_and_later_passes_stay_in_the_extension(run: Run) -> None:
    pumice.nn.freeze(run.net)
    counts = []
    for _ in range(6):
        run()
        counts.append(run.counts)
    # It is learned what is read, then the chain is made, and its weights.
    assert sum(made for made, _ in counts) == 1 and sum(closer for _, closer in counts) >= 1
    assert counts[3:] == [(0, 0)] * 3
    assert torch.equal(run(), run()) and run.agrees()


def test_what_no_version_counts_is_seen_after_freezing_again(run: Run) -> None:
    pumice.nn.freeze(run.net)
    run.settle()
    before = run()
    run.net[0].conv1.weight.data.mul_(2)
    run.net[1].bn2.running_mean.data.add_(1)
    assert torch.equal(run(), before), "made again in spite of the promise"
    pumice.nn.freeze(run.net)
    assert run.agrees() and not torch.equal(run(), before)


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net[0].conv1.weight.mul_(2),
        lambda net: net[1].bn1.weight.mul_(2),
        lambda net: net[0].bn2.bias.add_(1),
        lambda net: net[1].bn2.running_var.mul_(2),
        lambda net: setattr(net[0].conv2, "weight", nn.Parameter(net[0].conv2.weight.detach() * 2)),
        lambda net: setattr(net[0].conv2.weight, "data", net[0].conv2.weight.detach() * 2),
    ],
    ids=["weight", "norm_weight", "norm_bias", "variance", "other_parameter", "other_data"],
)
def test_what_a_version_counts_is_seen_at_once(run: Run, change: Callable[[nn.Module], Any]) -> None:
    pumice.nn.freeze(run.net)
    run.settle()
    before = run()
    with torch.no_grad():
        change(run.net)
    assert run.agrees() and not torch.equal(run(), before)
    run.settle()
    run()
    assert run.counts == (0, 0)


def test_weights_are_kept_for_one_type_at_a_time(run: Run, device: torch.device) -> None:
    dtype = torch.float16 if device.type == "cuda" else torch.bfloat16
    pumice.nn.freeze(run.net)
    run.settle()
    in_single, single = run(), run.features
    run.features = single.to(dtype)  # so that sums with the input are in half precision, too
    with torch.autocast(device.type, dtype=dtype):
        assert torch.allclose(run().float(), in_single, rtol=0.1, atol=0.3)
        if device.type == "cuda":  # kernels of the CPU round no weights
            run.settle()
            assert run().dtype is dtype and run.counts == (0, 0)
            assert torch.allclose(run().float(), in_single, rtol=0.1, atol=0.3)
    # What has no type in common is told as it is of other layers.
    assert outcome(run) == at_once(lambda: outcome(run.unfrozen))
    run.features = single
    assert torch.equal(run(), in_single)


def test_weights_are_kept_for_one_stream_at_a_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pumice.nn.freeze(run.net)
    run.settle()
    monkeypatch.setattr(modes, "stream_of", lambda features: 7)
    before = run()
    assert run.counts == (1, 1)
    assert torch.equal(run(), before) and run.counts == (0, 0)


def test_what_is_made_in_a_recording_is_not_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pumice.nn.freeze(run.net)
    run.settle()
    pumice.nn.freeze(run.net)
    monkeypatch.setattr(modes, "is_recorded", lambda features: True)
    for _ in range(2):
        run()
        assert run.counts == (1, 1)
    monkeypatch.setattr(modes, "is_recorded", lambda features: False)
    run()
    run()
    assert run.counts == (1, 1)


def test_a_chain_is_made_of_what_its_layers_keep(run: Run) -> None:
    """So that a model's weights are there once, however many chains take them, and a recording finds them turned."""
    pumice.nn.freeze(run.net)
    run.settle()
    layers = [layer for block in run.net for layer in (block.conv1, block.conv2)]
    codes = layers[0]._kept.habit.codes
    kept = [code.weights for code in codes.values() if code.weights is not None]
    assert len(kept) == 1
    parameters, learned, _ = kept[0].made_of
    for at, layer in enumerate(layers):
        assert parameters[3 * at] is layer._kept._turned
        assert learned[3 * at] is layer.weight


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("reads", [False, True], ids=["one chain", "two chains"])
def test_statistics_that_moved_in_training(run: Run, reads: bool, gradients: bool) -> None:
    """Kernels write them, and no version says so; the chains of a pass in training may be others."""
    pumice.nn.freeze(run.net)
    run.settle()
    before = run()
    run.net.train()
    for _ in range(6):
        with torch.set_grad_enabled(gradients):
            y = run.net[0](sparse(run.cells, run.features))
            if reads:
                (y.features + 0).sum()
            (run.net[1](y).features + 0).sum()
    run.net.eval()
    assert run.agrees() and not torch.equal(run(), before)


def test_a_cross_is_turned_by_its_layer(device: torch.device) -> None:
    """Its weight differs from what kernels take by more than the order of axes."""
    cross = ME.KernelGenerator(3, region_type=ME.RegionType.HYPER_CROSS, dimension=3)
    net = nn.Sequential(
        *(
            layer
            for _ in range(2)
            for layer in (
                ME.MinkowskiConvolution(CHANNELS, CHANNELS, kernel_generator=cross, dimension=3),
                ME.MinkowskiBatchNorm(CHANNELS),
                ME.MinkowskiReLU(),
            )
        )
    ).to(device).eval()
    cells = random_sites(3, EXTENT, 150).to(device)
    features = torch.randn(len(cells), CHANNELS, device=device)

    def run() -> torch.Tensor:
        with torch.no_grad():
            return net(ME.SparseTensor(features, cells)).F + 0

    expected = at_once(run)
    pumice.nn.freeze(net)
    for _ in range(4):
        torch.testing.assert_close(run(), expected, rtol=2e-3, atol=2e-3)


def test_one_layer_that_is_not_frozen(run: Run) -> None:
    pumice.nn.freeze(run.net)
    run.net[1].conv1._kept.frozen = False
    run.settle()
    before = run()
    assert run.counts == (0, 0)  # its weights are made in the extension, for one call
    with torch.no_grad():
        run.net[1].conv1.weight.data.mul_(2)
    assert not torch.equal(run(), before)
    run.net[1].conv1._kept.frozen = True
    assert run.agrees()


def test_a_weight_that_does_not_lie_in_order(run: Run) -> None:
    weight = run.net[0].conv1.weight
    expected = run()
    weight.data = weight.detach().transpose(0, -1).contiguous().transpose(0, -1)
    assert not weight.is_contiguous()
    pumice.nn.freeze(run.net)
    run.settle()
    torch.testing.assert_close(run(), expected, rtol=2e-3, atol=2e-3)
    run.net[0].conv1.weight.data.mul_(2)
    torch.testing.assert_close(run(), expected, rtol=2e-3, atol=2e-3)
    pumice.nn.freeze(run.net)
    assert run.agrees()


def test_recordings_inside_of_recordings(run: Run) -> None:
    outer: list[Any] = []
    inner: list[Any] = []
    packed: dict[Any, Any] = {}
    with kept.frozen_for(run.net, packed, outer):
        with kept.frozen_for(run.net, packed, inner):
            pass
        assert kept.readers == [outer] and kept.readers[0] is outer
        run()
    assert outer and not inner and not kept.readers


def test_who_records_hears_of_each_use(run: Run) -> None:
    pumice.nn.freeze(run.net)
    run.settle()
    read: list[Any] = []
    packed: dict[Any, Any] = {}
    for _ in range(2):
        read.clear()
        with kept.frozen_for(run.net, packed, read):
            run()
        assert [type(one).__name__ for one in read].count("ChainWeights") == 1
    assert run.agrees()
