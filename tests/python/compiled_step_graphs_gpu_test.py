"""Compiled steps of models on graphs on a GPU: the curves of steps by hand, the bits of the plan without a graph, no waits, and
edges of nodes that there are not, which change nothing."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest
import torch
from compiled_step_graph_calls_test import OfEdges, Pairs, Sampled, masked
from compiled_step_graphs_test import CLASSES, Network, labels_of
from compiled_step_test import expect_same_bits, state_of
from conftest import NO_GPU
from planned_graphs_test import CHANNELS, PLAIN, SIZES, TYPED, graph_of

import pumice
from pumice import _C, data, losses
from pumice.nn import graph as layers

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
MAKERS = {
    "fused AdamW": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
    "fused SGD": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, fused=True),
    "capturable Adam": lambda p: torch.optim.Adam(p, lr=1e-3, capturable=True),
}
TRAINED = [size for size in SIZES if size[0] > 1]  # a batch norm wants two nodes


def batch(name: str, seed: int, nodes: int = 900, edges: int = 3000) -> tuple[tuple[Any, ...], torch.Tensor]:
    """(what the model is given, labels). By default all of them have the same room."""
    x, index, types = graph_of(nodes, edges, seed, "cuda")
    return (x, index, types) if name in TYPED else (x, index), labels_of(nodes, seed).cuda()


def network(name: str, between: torch.nn.Module | None = None) -> torch.nn.Module:
    torch.manual_seed(3)
    return Network({**PLAIN, **TYPED}[name], torch.nn.BatchNorm1d(16) if between is None else between).cuda()


def made(net: Any, name: str = "fused SGD", scaled: bool = False, loss: Any = losses.cross_entropy, **options: Any) -> tuple[Any, ...]:
    optimizer = MAKERS[name](net.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10) if scaled else None
    return optimizer, scaler, pumice.compile_step(net, loss, optimizer, scaler=scaler, **options)


def by_hand(net: Any, optimizer: Any, scaler: Any, given: tuple[Any, ...], labels: Any, loss: Any = losses.cross_entropy) -> torch.Tensor:
    value = loss(net(*given), labels)
    optimizer.zero_grad()
    (value if scaler is None else scaler.scale(value)).backward()
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
    return value.detach()


def beside(net: Any, calls: list[tuple[tuple[Any, ...], Any]], name: str = "fused SGD", half: bool = False, loss: Any = losses.cross_entropy,
           bound: float = 1e-2) -> Any:  # fmt: skip
    """The step, whose losses were those of a copy that is trained by hand."""
    other = copy.deepcopy(net)
    _, _, step = made(net, name, half, loss)
    optimizer = MAKERS[name](other.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10) if half else None
    for given, labels in calls:
        with torch.autocast("cuda", torch.float16, enabled=half):
            value, expected = step(*given, labels), by_hand(other, optimizer, scaler, given, labels, loss)
        torch.testing.assert_close(value, expected, rtol=5e-2 if half else bound, atol=5e-2 if half else bound)
    step.wait()
    assert int(step.exceeded) == 0 and all(one.isfinite().all() for one in net.parameters())
    return step


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", [*PLAIN, *TYPED])
def test_curves_are_those_of_steps_by_hand(name: str, half: bool) -> None:
    sizes = [*TRAINED, *((900 - 10 * seed, 3000 - 20 * seed) for seed in range(20))]
    step = beside(network(name), [batch(name, seed, *size) for seed, size in enumerate(sizes)], half=half)
    assert step._recorder._graphs == 3, "a bucket for each room of nodes and of edges"


@pytest.mark.parametrize("optimizer", list(MAKERS))
def test_every_optimiser_trains_so(optimizer: str) -> None:
    assert beside(network("SAGE"), [batch("SAGE", turn) for turn in range(30)], optimizer)._recorder._graphs == 1


@pytest.mark.parametrize("name", ["SAGE", "GCN", "GAT", "RGCN"])
def test_a_graph_has_the_bits_of_its_plan(name: str) -> None:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        values, states = [], []
        for eager in (False, True):
            net = network(name)
            optimizer, _, step = made(net, clip_norm=0.5, eager=eager)
            calls = [batch(name, turn, 900 - turn, 3000 - 7 * turn) for turn in range(20)]
            values.append(torch.stack([step(*given, labels) for given, labels in calls]))
            states.append(state_of(net, optimizer))
    finally:
        torch.use_deterministic_algorithms(before)
    assert torch.equal(*values)
    expect_same_bits(*states)


@pytest.mark.parametrize("name", ["SAGE", "GCN", "GAT", "RGCN"])
def test_steps_do_not_wait(name: str) -> None:
    _, _, step = made(network(name), "fused AdamW", True, clip_norm=1.0)
    calls = [batch(name, turn, 900 - turn, 3000 - 7 * turn) for turn in range(14)]
    for given, labels in calls[:6]:
        step(*given, labels)
    torch.cuda.synchronize()
    refused = _C.RefusedWaits()
    torch.cuda.set_sync_debug_mode("error")
    try:
        values = [step(*given, labels) for given, labels in calls[6:]]
        norm, overflows = step.grad_norm, step.overflows
    finally:
        torch.cuda.set_sync_debug_mode("default")
        del refused
    assert torch.stack(values).isfinite().all() and norm.isfinite() and int(overflows) == 0


@pytest.mark.parametrize("optimizer", list(MAKERS))
def test_an_edge_of_no_node_changes_nothing(optimizer: str) -> None:
    net = network("SAGE")
    kept, scaler, step = made(net, optimizer, True)
    (x, index), labels = batch("SAGE", 1)
    for row, bad in ((0, 900), (1, 910), (0, -1), (1, 5000)):
        for _ in range(4):
            assert step(x, index, labels).isfinite()
        wrong = index.clone()
        wrong[row, 500] = bad
        torch.cuda.synchronize()
        before = [tensor.clone() for tensor in (*state_of(net, kept), scaler._scale, scaler._growth_tracker)]
        assert step(x, wrong, labels).isnan()
        with pytest.raises(pumice.UserError, match="edge"):
            step.wait()
        expect_same_bits([*state_of(net, kept), scaler._scale, scaler._growth_tracker], before)
    assert int(step.exceeded) == 4 and step(x, index, labels).isfinite()
    step.wait()
    _, _, eager = made(net, optimizer, fallback="eager")
    for _ in range(4):
        eager(x, index, labels)
    before = [tensor.clone() for tensor in net.state_dict().values()]
    with pytest.raises(pumice.UserError, match=r"edge_index\[1\]\[500\]"):
        eager(x, wrong, labels)
    expect_same_bits(list(net.state_dict().values()), before)


def test_sampled_blocks_with_labels_of_seeds() -> None:
    edges = data.grid_edges([60, 60])
    features, classes = torch.randn(3600, CHANNELS, device="cuda"), torch.arange(3600, device="cuda") % CLASSES
    calls = []
    for seeds in (300, 290, 310, 305, 31, 33):
        for one in data.NeighbourLoader(edges, [4, 3], batch_size=seeds, input_nodes=torch.arange(0, 3 * seeds), seed=seeds):
            one = one.to("cuda")
            calls.append(((features[one.n_id], one.blocks), classes[one.seeds]))
    torch.manual_seed(3)
    assert beside(Sampled().cuda(), calls)._recorder._graphs > 0


@pytest.mark.parametrize("kind", ["first", "mask", "edges", "features of edges"])
def test_what_is_trained_on(kind: str) -> None:
    torch.manual_seed(3)
    net = {"edges": Pairs, "features of edges": OfEdges}.get(kind, lambda: network("GCN"))().cuda()
    calls = []
    for turn in range(20):
        (x, index), labels = batch("GCN", turn, 900 - turn, 3000 - 7 * turn)
        if kind == "edges":
            calls.append(((x, index), labels_of(index.shape[1], turn).cuda()))
        elif kind == "features of edges":
            calls.append(((x, index, torch.randn(index.shape[1], 5, device="cuda")), labels))
        elif kind == "mask":
            calls.append(((x, index), {"classes": labels, "mask": torch.rand(len(x), device="cuda") < 0.5}))
        else:
            calls.append(((x, index), labels.index_fill(0, torch.arange(40 + turn, len(x), device="cuda"), -1)))
    step = beside(net, calls, loss=masked if kind == "mask" else losses.cross_entropy)
    assert step._recorder._graphs == 1
    if kind == "first":
        given, labels = calls[-1]
        held = torch.nn.utils.parameters_to_vector(net.parameters()).clone()
        assert step(*given, labels[:59]).isfinite() and step._recorder._graphs == 1, "labels of fewer nodes have the same bucket"
        assert not torch.equal(held, torch.nn.utils.parameters_to_vector(net.parameters()))


@pytest.mark.parametrize("attention", [False, True])
def test_dropout_draws_other_numbers_in_every_step(attention: bool) -> None:
    torch.manual_seed(3)
    make = (lambda i, o: layers.GATConv(i, o, dropout=0.5)) if attention else PLAIN["SAGE"]
    net = Network(make, None if attention else torch.nn.Dropout(0.5)).cuda()
    step = pumice.compile_step(net, losses.cross_entropy, torch.optim.SGD(net.parameters(), lr=0.0, fused=True))
    given, labels = batch("GAT", 1)
    values = [float(step(*given, labels)) for _ in range(10)]
    assert step._recorder._graphs == 1 and len(set(values[3:])) == 7


def test_memory_does_not_grow_and_a_plan_changes_nothing() -> None:
    net = network("GAT")
    optimizer, _, step = made(net, "fused AdamW")
    given, labels = batch("GAT", 1)
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    assert step.plan(*given, labels) > 0
    expect_same_bits(state_of(net, optimizer), before)
    calls = [batch("GAT", turn, 900 - turn, 3000 - 7 * turn) for turn in range(7)]
    for given, labels in calls:
        step(*given, labels)
    gc.collect()
    torch.cuda.synchronize()
    held = torch.cuda.memory_allocated()
    for turn in range(200):
        step(*calls[turn % 7][0], calls[turn % 7][1])
    torch.cuda.synchronize()
    gc.collect()
    assert torch.cuda.memory_allocated() <= held + (1 << 20)
    step.wait()
