"""Compiled steps of models on graphs: numbers of nodes and edges that differ in every step. On the CPU, and with graphs that are
pretended (pretended_step.py), where room holds what would show in any sum over it. On a GPU: compiled_step_graphs_gpu_test.py."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pretended_device
import pretended_step
import pytest
import torch
from compiled_step_test import expect_same_bits, state_of
from planned_graphs_test import CHANNELS, PLAIN, RELATIONS, TYPED, graph_of
from torch.nn.functional import cross_entropy

import pumice
from pumice import losses
from pumice.nn import graph as layers
from pumice.planned.graph_step_bucket import GraphStepBucket

CLASSES = 4
# Nodes and edges: two buckets of nodes and two of edges; one is outgrown and come back to.
SIZES = ((900, 3000), (800, 2900), (850, 2500), (33, 31), (31, 40), (33, 0), (7, 1), (900, 3100), (900, 5000), (1100, 4900),
         (1050, 4800), (1040, 4700), (31, 33), (900, 2100), (1060, 4500))  # fmt: skip
MAKERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "fused AdamW": lambda p: torch.optim.AdamW(p, lr=2**-7, fused=True),
    "fused SGD": lambda p: torch.optim.SGD(p, lr=2**-4, momentum=0.875, fused=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=2**-4, momentum=0.875, weight_decay=2**-8, foreach=False),
}


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pretended_step.use_counts(monkeypatch)
    yield


class Network(torch.nn.Module):
    """A layer of PyTorch, two of a graph and what is between, of bare features."""

    def __init__(self, make: Callable[[int, int], torch.nn.Module], between: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.stem, self.first, self.second = torch.nn.Linear(CHANNELS, CHANNELS), make(CHANNELS, 16), make(16, 16)
        self.between = torch.nn.LayerNorm(16) if between is None else between
        self.head = torch.nn.Linear(16, CLASSES)

    def forward(self, x: Any, edges: Any, *more: Any, **named: Any) -> Any:
        y = self.first(self.stem(x), edges, *more, **named)
        return self.head(self.second(self.between(y).relu(), edges, *more, **named))


def made(make: Any, between: Any = None, name: str = "SGD", dtype: torch.dtype = torch.float32, loss: Any = losses.cross_entropy,
         net: Any = None, **options: Any) -> tuple[Any, ...]:  # fmt: skip
    """(a network, its compiled step, a copy, the optimiser of the copy)"""
    torch.manual_seed(3)
    net = (Network(make, between) if net is None else net).to(dtype)
    other = copy.deepcopy(net)
    step = pretended_step.compile_step(net, loss, MAKERS[name](net.parameters()), **options)
    return net, step, other, MAKERS[name](other.parameters())


def by_hand(net: Any, optimizer: Any, given: tuple[Any, ...], labels: Any, loss: Any = losses.cross_entropy, **named: Any) -> torch.Tensor:
    value = loss(net(*given, **named), labels)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return value.detach()


def labels_of(count: int, seed: int) -> torch.Tensor:
    return torch.randint(-1, CLASSES, (count,), generator=torch.Generator().manual_seed(seed)).index_fill(0, torch.tensor([0]), 1)


def with_filled_room(monkeypatch: pytest.MonkeyPatch, value: float = 40.0) -> list[int]:
    """Rows of nodes and edges that are not in use hold large numbers in every step, of either sign. Returns how many."""
    fill, rows = GraphStepBucket._fill, []

    def filled(self: Any, call: Any) -> None:
        fill(self, call)
        for tensor, used in self._with_rows(call):
            rest = tensor[used:]
            rows.append(len(rest))
            if rest.is_floating_point() and rest.numel() > 0:
                rest.copy_(value * torch.sin(torch.arange(rest.numel(), dtype=rest.dtype).reshape(rest.shape)) + value)

    monkeypatch.setattr(GraphStepBucket, "_fill", filled)
    return rows


def same_state(net: Any, step: Any, other: Any, optimizer: Any, rtol: float, atol: float) -> None:
    for one, another in zip(state_of(net, step._training.optimizer), state_of(other, optimizer), strict=True):
        torch.testing.assert_close(one, another, rtol=rtol, atol=atol)


def same_loss(made: torch.Tensor, expected: torch.Tensor) -> None:
    """The pretended graph has losses in float32; parameters tell more."""
    torch.testing.assert_close(made.double(), expected.double(), rtol=1e-6, atol=1e-6)


def test_a_region_of_autocast_may_hold_many_steps() -> None:
    """By hand each pass needs one of its own: to its end autocast keeps the weights that it has converted."""
    net, step, other, optimizer = made(PLAIN["SAGE"], name="fused SGD")
    calls = [(graph_of(900, 3000, seed)[:2], labels_of(900, seed)) for seed in range(6)]
    with torch.autocast("cpu", torch.bfloat16):
        found = [step(*given, labels).float() for given, labels in calls]
        with torch.no_grad():
            evaluated = net(*calls[0][0]).float()
        x, index, _ = graph_of(2500, 9000, 1)  # of another bucket: its steps are taken back
        assert step.plan(x, index, labels_of(2500, 1)) > 0
        with torch.no_grad():
            assert torch.equal(evaluated, net(*calls[0][0]).float())
    for loss, (given, labels) in zip(found, calls):
        with torch.autocast("cpu", torch.bfloat16):
            expected = by_hand(other, optimizer, given, labels).float()
        torch.testing.assert_close(loss, expected, rtol=2e-2, atol=2e-2)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(evaluated, net(*calls[0][0]).float())
    moved = (net.head.weight - made(PLAIN["SAGE"])[0].head.weight).abs().max()
    assert (net.head.weight - other.head.weight).abs().max() < 0.05 * moved


@pytest.mark.parametrize("name", [*PLAIN, *TYPED])
def test_rows_of_room_add_nothing_in_double_precision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over 40s would show in the tenth digit of any of them."""
    rows = with_filled_room(monkeypatch)
    net, step, other, optimizer = made({**PLAIN, **TYPED}[name], dtype=torch.float64)
    for seed, (nodes, edges) in enumerate((*SIZES, *SIZES)):
        x, index, types = graph_of(nodes, edges, seed)
        given = (x.double(), index, types) if name in TYPED else (x.double(), index)
        labels = labels_of(nodes, seed)
        loss = step(*given, labels)
        same_loss(loss, by_hand(other, optimizer, given, labels))
    same_state(net, step, other, optimizer, 1e-8, 1e-10)
    assert step.recordings == 3 and min(rows) >= 64, "a bucket for each room of nodes and of edges"
    assert int(step.exceeded) == int(step.overflows) == 0 and all(one.grad is None for one in net.parameters())


BETWEEN: dict[str, Callable[[], torch.nn.Module]] = {
    "a norm": lambda: torch.nn.BatchNorm1d(16),
    "a norm without parameters": lambda: torch.nn.BatchNorm1d(16, affine=False),
    "a norm of the batch": lambda: torch.nn.BatchNorm1d(16, track_running_stats=False),
    "a settled norm": lambda: torch.nn.BatchNorm1d(16).eval(),
    "all of them": lambda: torch.nn.Sequential(
        torch.nn.Linear(16, 16), torch.nn.BatchNorm1d(16), torch.nn.PReLU(16), torch.nn.Dropout(0.0), torch.nn.GroupNorm(2, 16),
        torch.nn.BatchNorm1d(16, momentum=0.5), torch.nn.GELU(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ["fused AdamW", "fused SGD"])
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("layer", ["SAGE", "GCN", "GAT"])
def test_modules_of_pytorch_between_layers(layer: str, between: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_filled_room(monkeypatch)
    net, step, other, optimizer = made(PLAIN[layer], BETWEEN[between](), name)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, _ = graph_of(nodes, edges, seed)
        labels = labels_of(nodes, seed)
        torch.testing.assert_close(step(x, index, labels), by_hand(other, optimizer, (x, index), labels), rtol=1e-3, atol=1e-3)
    if name != "fused AdamW":  # which divides by the size of gradients, and makes much of the rounding of small ones
        same_state(net, step, other, optimizer, 1e-2, 2e-3)
    assert step.recordings == 3


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", list(MAKERS))
def test_a_schedule_a_scaler_and_a_norm_are_followed_over_many_steps(name: str, eager: bool) -> None:
    scalers = [torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3) for _ in range(2)]
    net, step, other, optimizer = made(PLAIN["SAGE"], name=name, scaler=scalers[0], clip_norm=0.5, eager=eager)
    ordinary = pumice.compile_step(other, losses.cross_entropy, optimizer, scaler=scalers[1], clip_norm=0.5)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(one, 0.5**0.125) for one in (step._training.optimizer, optimizer)]
    for turn in range(40):
        x, index, _ = graph_of(300 + 7 * turn, 900 + 11 * turn, turn)
        labels = labels_of(len(x), turn)
        torch.testing.assert_close(step(x, index, labels), ordinary(x, index, labels), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(step.grad_norm, ordinary.grad_norm, rtol=1e-2, atol=1e-4)
        for schedule in schedules:
            schedule.step()
    same_state(net, step, other, optimizer, 1e-2, 2e-3)
    assert step.recordings == (0 if eager else 2) and scalers[0].state_dict() == scalers[1].state_dict()


@pytest.mark.parametrize("kind", ["autocast", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ["SAGE", "GCN", "GAT", "GIN", "RGCN"])
def test_half_precision(name: str, kind: str) -> None:
    dtype = {"autocast": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[kind]
    net, step, other, optimizer = made({**PLAIN, **TYPED}[name], dtype=dtype, loss=losses.cross_entropy, name="fused SGD")
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, types = graph_of(nodes, edges, seed)
        given = (x.to(dtype), index, types) if name in TYPED else (x.to(dtype), index)
        labels = labels_of(nodes, seed)
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
            value, expected = step(*given, labels), by_hand(other, optimizer, given, labels)
        torch.testing.assert_close(value, expected, rtol=0.1, atol=0.1)
    assert step.recordings == 3 and int(step.exceeded) == 0
    assert all(parameter.isfinite().all() for parameter in net.parameters())


def test_gradients_are_those_of_double_precision_by_hand() -> None:
    """A mean over neighbours and a layer, whose gradients are written out."""
    layer = layers.SAGEConv(CHANNELS, CLASSES, aggr="mean").double()
    step = pretended_step.compile_step(layer, cross_entropy, torch.optim.SGD(layer.parameters(), lr=0.5, foreach=False))
    for seed, (nodes, edges) in enumerate(((60, 200), (50, 190), (40, 180), (70, 210), (31, 0), (33, 33), (1, 3))):
        x, index, _ = graph_of(nodes, edges, seed)
        x, labels = x.double(), labels_of(nodes, seed).clamp(min=0)
        mean = torch.stack([x[index[0][index[1] == node]].mean(0) if (index[1] == node).any() else x.new_zeros(CHANNELS) for node in range(nodes)])
        left, right, bias = (one.detach().clone() for one in (layer.lin_l.weight, layer.lin_r.weight, layer.lin_l.bias))
        scores = mean @ left.t() + bias + x @ right.t()
        of_scores = (scores.softmax(1) - torch.nn.functional.one_hot(labels, CLASSES)) / nodes
        step(x, index, labels)
        torch.testing.assert_close(layer.lin_l.weight, left - 0.5 * of_scores.t() @ mean)
        torch.testing.assert_close(layer.lin_r.weight, right - 0.5 * of_scores.t() @ x)
        torch.testing.assert_close(layer.lin_l.bias, bias - 0.5 * of_scores.sum(0))
    assert step.recordings == 1


def test_an_edge_of_no_node_changes_nothing() -> None:
    for fallback in ("raise", "eager"):
        net, step, _, _ = made(PLAIN["SAGE"], torch.nn.Sequential(torch.nn.BatchNorm1d(16)), name="fused AdamW", fallback=fallback)
        x, index, _ = graph_of(200, 700, 1)
        labels = labels_of(200, 1)
        for turn in range(5):
            before = [tensor.clone() for tensor in state_of(net, step._training.optimizer)]
            for row, bad in ((0, 200), (1, 210), (0, -1), (1, 5000)):
                wrong = index.clone()
                wrong[row, 500] = bad
                with pytest.raises(pumice.UserError, match=rf"edge_index\[{row}\]\[500\]"):
                    step(x, wrong, labels)
                expect_same_bits(state_of(net, step._training.optimizer), before)
            assert step(x, index, labels).isfinite()
        assert step.recordings == 1


def test_a_step_beyond_its_room_changes_nothing() -> None:
    net, step, _, _ = made(PLAIN["GAT"], torch.nn.BatchNorm1d(16), name="fused AdamW", max_voxels=1024)
    x, index, _ = graph_of(200, 700, 1)
    for _ in range(4):
        step(x, index, labels_of(200, 1))
    before = [tensor.clone() for tensor in state_of(net, step._training.optimizer)]
    large = graph_of(1025, 700, 2)
    with pytest.raises(pumice.UserError, match="1025 nodes, max_voxels = 1024"):
        step(large[0], large[1], labels_of(1025, 1))
    step._recorder.text, step._recorder.host_knows = "an earlier call", False  # whatever the device reports
    assert step(x, index, labels_of(200, 1)).isnan() and int(step.exceeded) == 1
    expect_same_bits(state_of(net, step._training.optimizer), before)
    with pytest.raises(pumice.UserError, match="an earlier call"):
        step.wait()
    falling = pretended_step.compile_step(net, losses.cross_entropy, MAKERS["SGD"](net.parameters()), max_voxels=1024, fallback="eager")
    assert falling(large[0], large[1], labels_of(1025, 1)).isfinite()


@pytest.mark.parametrize("scale", [None, 2.0**10])
def test_a_plan_says_the_bytes_and_changes_nothing(scale: float | None) -> None:
    scaler = None if scale is None else torch.amp.GradScaler("cpu", init_scale=scale)
    net, step, _, _ = made(PLAIN["SAGE"], torch.nn.BatchNorm1d(16), name="fused AdamW", scaler=scaler)
    x, index, _ = graph_of(900, 3000, 1)
    before = [tensor.clone() for tensor in net.state_dict().values()]
    rooms = 1024 + 64, 4096
    assert step.plan(x, index, labels_of(900, 1)) == 100 + 4 * CHANNELS * rooms[0] + (2 + 1) * 8 * rooms[1] + 16 + 8 * rooms[0]
    expect_same_bits(list(net.state_dict().values()), before)
    assert step.bytes > 0 and "room for [1024]" in repr(step)
    large = graph_of(900, 140_000, 1)
    assert step.plan(large[0], large[1], labels=labels_of(900, 1)) > 0
    assert sorted(bucket._rooms[0] for bucket in step._buckets) == [1088, 1088 + 2048], "few edges lead to each node of the room"


@pytest.mark.parametrize("trains", [False, True])
def test_a_relation_that_there_is_not_is_forgotten_with_its_call(trains: bool) -> None:
    torch.manual_seed(3)
    net = Network(TYPED["RGCN"])
    x, index, types = graph_of(300, 900, 1)
    labels = labels_of(300, 1)
    fast: Any = pretended_step.compile_step(net, losses.cross_entropy, MAKERS["SGD"](net.parameters()))
    if not trains:
        fast, labels = pretended_device.compile(net.eval()), None
    given = (x, index, types) if labels is None else (x, index, types, labels)
    for _ in range(4):
        fast(*given)
    wrong = types.clone()
    wrong[-1] = RELATIONS
    with pytest.raises(pumice.UserError, match="numbers from 0 on"):
        fast(x, index, wrong, *given[3:])
    assert fast(x, index[:, :-1], types[:-1], *given[3:]).isfinite().all(), "its place has an edge of the room now"


MIXING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a mean": lambda y: y - y.mean(0),
    "a softmax": lambda y: y.softmax(0),
    "their number": lambda y: y / len(y) ** 0.5,
}


class Changed(torch.nn.Module):
    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.change = change

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return self.change(y)


@pytest.mark.parametrize("name", MIXING)
def test_models_that_mix_rows_are_refused(name: str) -> None:
    net, step, _, _ = made(PLAIN["SAGE"], torch.nn.Sequential(torch.nn.BatchNorm1d(16), Changed(MIXING[name])))
    x, index, _ = graph_of(300, 900, 1)
    for _ in range(2):
        step(x, index, labels_of(300, 1))
    before = [tensor.clone() for tensor in state_of(net, step._training.optimizer)]
    for _ in range(2):
        with pytest.raises(pumice.UserError, match=r"(module 'between\.1' \(Changed\)|the model \(Network\)) cannot be recorded"):
            step(x, index, labels_of(300, 1))
        expect_same_bits(state_of(net, step._training.optimizer), before)
    assert step.recordings == 0


class WithPenalty(torch.nn.Module):
    """Its output says nothing of the gradient that it adds, which is a sum over all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = layers.SAGEConv(CHANNELS, CLASSES)
        self.own = torch.nn.Parameter(torch.ones(CHANNELS))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        penalty = (x.detach() * self.own).square().sum()
        return self.layer(x, edges) + (penalty - penalty.detach())


def test_gradients_that_go_over_all_rows_are_refused() -> None:
    net, step, _, _ = made(None, net=WithPenalty())
    x, index, _ = graph_of(300, 900, 1)
    for _ in range(2):
        step(x, index, labels_of(300, 1))
    with pytest.raises(pumice.UserError, match=r"cannot be recorded.*(gradient of its own|rows)"):
        step(x, index, labels_of(300, 1))


@pytest.mark.parametrize("attention", [False, True])
def test_dropout_draws_other_numbers_in_every_step(attention: bool) -> None:
    make = (lambda i, o: layers.GATConv(i, o, dropout=0.5)) if attention else PLAIN["SAGE"]
    net, step, other, _ = made(make, torch.nn.LayerNorm(16) if attention else torch.nn.Dropout(0.5))
    step._training.optimizer.param_groups[0]["lr"] = 0.0
    step._training.optimizer.param_groups[0]["weight_decay"] = 0.0
    x, index, _ = graph_of(900, 3000, 1)
    labels = labels_of(900, 1)
    values = torch.stack([step(x, index, labels) for _ in range(60)])
    assert step.recordings == 1 and values[3:].unique().numel() == 57 and net.training
    alone = torch.stack([losses.cross_entropy(other(x, index), labels).detach() for _ in range(60)])
    spread = (alone.var() / 60 + values.var() / 60).sqrt()
    assert abs(float(values.mean() - alone.mean())) < 5 * float(spread)


def test_steps_on_the_cpu_have_the_bits_of_a_loop_written_by_hand() -> None:
    torch.manual_seed(3)
    net = Network(PLAIN["GCN"], torch.nn.BatchNorm1d(16))
    other = copy.deepcopy(net)
    optimizer, by = MAKERS["fused AdamW"](net.parameters()), MAKERS["fused AdamW"](other.parameters())
    step = pumice.compile_step(net, losses.cross_entropy, optimizer)
    for seed, (nodes, edges) in enumerate(SIZES):
        x, index, _ = graph_of(nodes, edges, seed)
        assert torch.equal(step(x, index, labels_of(nodes, seed)), by_hand(other, by, (x, index), labels_of(nodes, seed)))
    expect_same_bits(state_of(net, optimizer), state_of(other, by))
    assert step.plan(x, index, labels_of(nodes, 1)) == 0


def test_mistakes_are_named() -> None:
    step = pumice.compile_step(*(lambda net: (net, losses.cross_entropy, MAKERS["SGD"](net.parameters())))(Network(PLAIN["GCN"])))
    x, index, _ = graph_of(20, 60, 1)
    with pytest.raises(pumice.UserError, match="nodes and edges alone: give labels after them, or as labels="):
        step(x, index)
    with pytest.raises(pumice.UserError, match="features want a gradient"):
        step(x.requires_grad_(), index, labels_of(20, 1))
    with pytest.raises(pumice.UserError, match="labels hold an int"):
        step(x.detach(), index, {"y": 3})
    with pytest.raises(pumice.UserError, match="no ignore_index"):
        pumice.compile_step(step.model, lambda y, labels: y.sum(), MAKERS["SGD"](step.model.parameters()))
