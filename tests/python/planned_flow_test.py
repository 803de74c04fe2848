"""What compiled models do from call to call, with graphs that are pretended on the CPU (pretended_device.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pretended_device
import pytest
import torch
from planned_test import expect_same, of_model, scan, settle, unet

import pumice
from pumice import nn


class Changed(torch.nn.Module):
    """Applies a function to features."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        return x.replace(features=self.function(x.features))


def around(module: torch.nn.Module) -> torch.nn.Module:
    return settle(nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8), nn.ReLU(), module, nn.SubMConv3d(8, 3, 1)))


def small() -> torch.nn.Module:
    return around(torch.nn.LayerNorm(8))


def recorded(fast: Any) -> int:
    return fast._recorder.graphs


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("make", [unet, small])
def test_calls_learn_record_and_replay(make: Callable[[], torch.nn.Module], eager: bool) -> None:
    net = make()
    fast = pretended_device.compile(net, eager=eager)
    for seed, count in enumerate((900, 800, 700, 950, 31, 33, 1, 0, 1024, 1500, 1400, 1300, 900)):
        given = scan(count, seed)
        expect_same(fast(*given, batch_size=2), of_model(net, *given))
    assert recorded(fast) == (0 if eager else 2) and len(fast._buckets) == 2
    assert fast.bytes == sum(room * (4 * 4 + 4 * 4) + 8 + (0 if eager else 100) for room in (1024, 2048))


class Table(torch.nn.Module):
    """Returns its parameter itself."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(rows, 8))

    def forward(self) -> torch.Tensor:
        return self.weight


class WithTable(torch.nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.body, self.table = nn.SubMConv3d(4, 8, 3), Table(rows)

    def forward(self, x: pumice.SparseTensor) -> tuple[torch.Tensor, torch.Tensor]:
        table = self.table()
        return self.body(x).features + table.mean(0), table * 2


@pytest.mark.parametrize("first", [900, 1024])
def test_a_table_with_as_many_rows_as_there_is_room_for_stays_whole(first: int) -> None:
    net = WithTable(1024).eval()
    before = net.table.weight.detach().clone()
    fast = pretended_device.compile(net)
    cells = torch.tensor([[0, i, j, k] for i in range(16) for j in range(8) for k in range(8)])
    for turn, count in enumerate((first, first, first, first, 800, 1024, 33)):
        features = torch.randn(count, 4, generator=torch.Generator().manual_seed(turn))
        made, table = fast(cells[:count], features)
        with torch.no_grad():
            expected, _ = net(pumice.SparseTensor(cells[:count], features))
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-4)
        assert torch.equal(table, before * 2)
    assert recorded(fast) == 1 and torch.equal(net.table.weight, before), "what finds mixed rows writes into no parameter"


def test_results_are_of_their_own_memory() -> None:
    net = small()
    fast = pretended_device.compile(net)
    scans = [scan(900 + seed, seed) for seed in range(6)]
    made = [fast(*given, batch_size=2) for given in scans]
    for given, one in zip(scans, made):
        expect_same(one, of_model(net, *given))


def test_plan_says_the_bytes_before_anything_runs_there() -> None:
    net = small()
    fast = pretended_device.compile(net)
    given = scan(900, 1)
    assert fast.plan(*given, batch_size=2) == 1024 * 32 + 8 + 100 == fast.bytes and recorded(fast) == 1
    assert fast.plan(*given, batch_size=2) == fast.bytes and recorded(fast) == 1
    expect_same(fast(*scan(800, 2), batch_size=2), of_model(net, *scan(800, 2)))
    assert recorded(fast) == 1
    assert pumice.compile(net).plan(*given, batch_size=2) == 0, "on the CPU nothing is recorded"


def changes(net: torch.nn.Module) -> list[Callable[[], Any]]:
    def weight() -> None:
        net[0].weight.mul_(1.5)

    def data() -> None:
        net[0].weight.data = net[0].weight.data * 2

    def buffer() -> None:
        net[1].running_mean.add_(0.5)

    def parameter() -> None:
        net[0].bias = torch.nn.Parameter(torch.ones(8))

    def module() -> None:
        net[3] = torch.nn.LayerNorm(8, elementwise_affine=False).eval()

    def more() -> None:
        net.append(Changed(lambda features: features * 3).eval())

    def fewer() -> None:
        del net[4]

    def unfrozen() -> None:
        net[0].weight.requires_grad_(False)
        net[1].bias = torch.nn.Parameter(net[1].bias.detach() * 2)

    return [weight, data, buffer, parameter, module, more, fewer, unfrozen]


@pytest.mark.parametrize("which", range(8))
def test_a_changed_model_is_recorded_anew(which: int) -> None:
    net = small()
    fast = pretended_device.compile(net)
    given = scan(900, 1)
    for _ in range(4):
        fast(*given, batch_size=2)
    state = fast._state
    fast(*given, batch_size=2)
    assert fast._state is state, "nothing changed"
    with torch.no_grad():
        changes(net)[which]()
    before = of_model(net, *given)
    expect_same(fast(*given, batch_size=2), before)
    assert fast._state is not state and recorded(fast) == 1
    state = fast._state
    fast(*given, batch_size=2)
    assert fast._state is state


def test_changes_that_a_graph_cannot_follow_are_refused() -> None:
    net = small()
    fast = pretended_device.compile(net)
    given = scan(900, 1)
    for _ in range(4):
        fast(*given, batch_size=2)
    net[3].train()
    with pytest.raises(pumice.UserError, match=r"'3' \(LayerNorm\) is in training"):
        fast(*given, batch_size=2)
    net.eval()
    fast(*given, batch_size=2)
    for register in (net[2].register_forward_hook, net[2].register_forward_pre_hook):
        handle = register(lambda *_: None)
        with pytest.raises(pumice.UserError, match=r"'2' \(ReLU\) has hooks"):
            fast(*given, batch_size=2)
        handle.remove()
        expect_same(fast(*given, batch_size=2), of_model(net, *given))


MIXING: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda features: features - features.mean(0),
    lambda features: features.softmax(0),
    lambda features: features / len(features) ** 0.5,
    lambda features: features + (features > 0).float().mean(),
    lambda features: features.roll(1, 0),
    lambda features: features.sort(0, descending=True).values,
    lambda features: features / features.norm(),
    lambda features: features.T.unsqueeze(0).contiguous().var(2).squeeze(0) * features,
]


@pytest.mark.parametrize("which", range(len(MIXING)))
def test_modules_that_mix_rows_are_refused(which: int) -> None:
    fast = pretended_device.compile(around(Changed(MIXING[which])))
    given = scan(500, 1)
    for _ in range(2):
        fast(*given, batch_size=2)
    for _ in range(2):
        # Where values are numbers all the same, it is not known where they came from.
        with pytest.raises(pumice.UserError, match=r"(module '3' \(Changed\)|model \(Sequential\)) cannot be recorded.*rows"):
            fast(*given, batch_size=2)
    assert recorded(fast) == 0


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_what_depends_a_little_on_the_number_of_rows_is_refused(share: float) -> None:
    net = around(Changed(lambda features: features * (1 + share / len(features))))
    fast = pretended_device.compile(net)
    cells = torch.tensor([[0, i, j, k] for i in range(10) for j in range(10) for k in range(10)])
    given = cells, torch.randn(len(cells), 4, generator=torch.Generator().manual_seed(1))
    for _ in range(2):
        fast(*given)
    with pytest.raises(pumice.UserError, match=r"the model \(Sequential\) cannot be recorded.*values differ by.*rows"):
        fast(*given)


def test_a_model_that_takes_no_few_rows_is_recorded_all_the_same() -> None:
    def larger(features: torch.Tensor) -> torch.Tensor:
        if len(features) < 100:
            raise ValueError("give at least 100 rows")
        return features * 2

    net = around(Changed(larger))
    fast = pretended_device.compile(net)
    for seed in range(5):
        expect_same(fast(*scan(900, seed), batch_size=2), of_model(net, *scan(900, seed)))
    assert recorded(fast) == 1


def test_the_module_that_mixes_rows_is_named() -> None:
    net = settle(nn.Sequential(nn.SubMConv3d(4, 8, 3), Changed(torch.relu), around_8(Changed(MIXING[0])), nn.ReLU()))
    fast = pretended_device.compile(net)
    given = scan(500, 1)
    for _ in range(2):
        fast(*given, batch_size=2)
    with pytest.raises(pumice.UserError, match=r"module '2.1' \(Changed\) cannot be recorded.*no numbers"):
        fast(*given, batch_size=2)


def around_8(module: torch.nn.Module) -> torch.nn.Module:
    return nn.Sequential(nn.SubMConv3d(8, 8, 1), module)


ROW_BY_ROW: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda features: features.softmax(1),
    lambda features: features - features.mean(1, keepdim=True),
    lambda features: torch.nn.functional.gelu(features).clamp(-1, 1),
    lambda features: torch.where(features > 0.1, features, features.new_zeros(())),
    lambda features: torch.cat([features[:, 4:], features[:, :4]], 1).sort(1).values,
]


@pytest.mark.parametrize("which", range(len(ROW_BY_ROW)))
def test_modules_that_take_each_row_for_itself_are_recorded(which: int) -> None:
    net = around(Changed(ROW_BY_ROW[which]))
    fast = pretended_device.compile(net)
    for seed in range(5):
        given = scan(900 - 100 * seed, seed)
        expect_same(fast(*given, batch_size=2), of_model(net, *given))
    assert recorded(fast) == 1


def test_numbers_that_follow_from_rows_are_refused() -> None:
    class Counting(torch.nn.Module):
        def forward(self, x: pumice.SparseTensor) -> Any:
            return x, len(x)

    fast = pretended_device.compile(Counting().eval())
    given = scan(500, 1)
    for _ in range(2):
        assert fast(*given, batch_size=2)[1] == len(given[0])
    with pytest.raises(pumice.UserError, match=rf"the model \(Counting\) cannot.*1024 in place of {len(given[0])}"):
        fast(*given, batch_size=2)


def test_trouble_of_an_earlier_call_is_raised_by_the_next() -> None:
    net = small()
    fast = pretended_device.compile(net)
    given = scan(500, 1)
    for _ in range(4):
        fast(*given, batch_size=2)
    fast._recorder.text = "voxels: 7 needed, capacity 5"
    with pytest.raises(pumice.UserError, match="an earlier call .*: voxels: 7 needed"):
        fast(*given, batch_size=2)
    expect_same(fast(*given, batch_size=2), of_model(net, *given))
    fast._recorder.text = "voxels: 9 needed, capacity 5"
    with pytest.raises(pumice.UserError, match="^voxels: 9 needed"):
        fast.wait()
    fast(*given, batch_size=2)


def test_trouble_leads_to_an_eager_pass_where_that_is_asked_for() -> None:
    net = small()
    fast = pretended_device.compile(net, fallback="eager")
    given = scan(500, 1)
    for _ in range(4):
        fast(*given, batch_size=2)
    bucket = next(iter(fast._buckets))
    run = bucket.run

    def troubled(scan: Any) -> Any:
        fast._recorder.text = "voxels: 7 needed, capacity 5"
        return run(scan)

    bucket.run = troubled
    expect_same(fast(*given, batch_size=2), of_model(net, *given))
    assert recorded(fast) == 0
    bucket.run = run
    expect_same(fast(*given, batch_size=2), of_model(net, *given))
    assert recorded(fast) == 1


class Building(torch.nn.Module):
    """Makes its sparse tensor itself."""

    def __init__(self, make: Callable[[torch.Tensor, torch.Tensor], Any], body: torch.nn.Module) -> None:
        super().__init__()
        self.make = make
        self.body = body

    def forward(self, coords: torch.Tensor, features: torch.Tensor) -> Any:
        return self.body(self.make(coords, features * 2))


def builders() -> dict[str, tuple[Callable[..., Any], torch.nn.Module]]:
    from pumice.compat import spconv, torchsparse

    shape = [20_000] * 3
    return {
        "pumice": (lambda c, f: pumice.SparseTensor(c, f), small()),
        "declared": (lambda c, f: pumice.SparseTensor(c, f, batch_size=2), small()),
        "spconv": (
            lambda c, f: spconv.SparseConvTensor(f, c.int(), shape, 2),
            spconv.SparseSequential(spconv.SubMConv3d(4, 8, 3, indice_key="a"), torch.nn.ReLU()),
        ),
        "torchsparse": (
            lambda c, f: torchsparse.SparseTensor(f, c.int()),
            torch.nn.Sequential(torchsparse.nn.Conv3d(4, 8, 3), torchsparse.nn.ReLU()),
        ),
    }


@pytest.mark.parametrize("name", ["pumice", "declared", "spconv", "torchsparse"])
def test_models_may_make_their_sparse_tensor_themselves(name: str) -> None:
    make, body = builders()[name]
    net = Building(make, settle(body)).eval()
    fast = pretended_device.compile(net, input=lambda x: (x.indices, x.features))
    grid: dict[str, Any] = {"batch_size": 2}
    if name == "spconv":
        grid["spatial_shape"] = [20_000] * 3
    for seed in range(6):
        cells, features = scan(900 - 50 * seed, seed)
        made = fast(cells, features, **grid)
        with torch.no_grad():
            expected = net(cells, features)
        assert type(made) is type(expected)
        torch.testing.assert_close(features_of(made), features_of(expected), rtol=1e-4, atol=1e-5)
    assert recorded(fast) == 1


def features_of(x: Any) -> torch.Tensor:
    return x.feats if hasattr(x, "feats") else x.features


def test_another_grid_than_that_of_the_call_is_refused() -> None:
    net = Building(lambda c, f: pumice.SparseTensor(c, f, batch_size=3), small()).eval()
    for fast in (pumice.compile(net, input=lambda x: (x.indices, x.features)),):
        with pytest.raises(pumice.UserError, match="batch_size = 3 of coords .* with 2: give batch_size"):
            fast(*scan(90, 1), batch_size=2)


def foreign() -> dict[str, tuple[torch.nn.Module, Callable[[Any, Any], Any], Callable[[Any], torch.Tensor]]]:
    from pumice.compat import minkowski, spconv, torchsparse

    return {
        "spconv": (
            spconv.SparseSequential(
                spconv.SubMConv3d(4, 8, 3, bias=False, indice_key="a"), torch.nn.BatchNorm1d(8), torch.nn.ReLU()
            ),
            lambda c, f: spconv.SparseConvTensor(f, c, [20_000] * 3, 2),
            lambda x: x.features,
        ),
        "torchsparse": (
            torch.nn.Sequential(torchsparse.nn.Conv3d(4, 8, 3), torchsparse.nn.BatchNorm(8), torchsparse.nn.ReLU()),
            lambda c, f: torchsparse.SparseTensor(f, c, spatial_range=(2, 20_000, 20_000, 20_000)),
            lambda x: x.feats,
        ),
        "minkowski": (
            torch.nn.Sequential(
                minkowski.MinkowskiConvolution(4, 8, 3, dimension=3),
                minkowski.MinkowskiBatchNorm(8),
                minkowski.MinkowskiReLU(),
            ),
            lambda c, f: minkowski.SparseTensor(f, c),
            lambda x: x.F,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["spconv", "torchsparse", "minkowski"])
def test_tensors_of_other_libraries_are_taken_and_given(name: str) -> None:
    net, make, features_of = foreign()[name]
    settle(net)
    fast = pretended_device.compile(net)
    for seed in range(7):
        x = make(*scan(900 - 50 * seed, seed))
        made = fast(x)
        with torch.no_grad():
            expected = net(x)
        assert type(made) is type(expected)
        torch.testing.assert_close(features_of(made), features_of(expected), rtol=1e-4, atol=1e-5)
    assert recorded(fast) == 1


def test_hooks_of_layers_that_wait_for_each_other_are_known() -> None:
    from pumice.compat import spconv

    net = settle(
        spconv.SparseSequential(spconv.SubMConv3d(4, 8, 3, indice_key="a"), torch.nn.BatchNorm1d(8), torch.nn.ReLU())
    )
    from pumice.nn.deferred import region

    net.register_forward_pre_hook(region._begin)
    net.register_forward_hook(region._end)
    pumice.compile(net)
    net.register_forward_hook(lambda *_: None)
    with pytest.raises(pumice.UserError, match=r"the model \(SparseSequential\) has hooks"):
        pumice.compile(net)
