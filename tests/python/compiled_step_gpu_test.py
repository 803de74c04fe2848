"""Compiled training steps on a GPU: the curves of steps by hand, the same bits as the plan without a graph, no waits, and
steps beyond a capacity, which change nothing."""

from __future__ import annotations

import copy
import gc
import math
from typing import Any

import pytest
import torch
from compiled_step_flow_test import Changed, ForSpconv, Recomputed
from compiled_step_test import expect_same_bits, state_of
from conftest import NO_GPU, random_sites
from planned_test import scan, unet

import pumice
import pumice.compat.spconv as spconv
from pumice import _C, losses, nn

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
CLASSES = 5
MAKERS = {
    "fused AdamW": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
    "fused SGD": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, fused=True),
    "capturable Adam": lambda p: torch.optim.Adam(p, lr=1e-3, capturable=True),
}


def batch(seed: int, count: int = 3000) -> tuple[Any, ...]:
    """All of them have a room of 4,096."""
    cells, features = scan(count + 300 + 61 * (seed % 5), seed, "cuda")
    generator = torch.Generator().manual_seed(seed)
    return cells, features, torch.randint(-1, CLASSES, (len(cells),), generator=generator).cuda()


def small() -> torch.nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.SubMConv3d(4, 16, 3, bias=False), nn.BatchNorm(16), nn.ReLU(), nn.Conv3d(16, 16, 2, stride=2), nn.LayerNorm(16),
        nn.InverseConv3d(16, 16, 2, stride=2), nn.Linear(16, CLASSES),
    ).cuda()  # fmt: skip


def made(net: Any, name: str, scaled: bool = False, **options: Any) -> tuple[Any, ...]:
    optimizer = MAKERS[name](net.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10) if scaled else None
    return optimizer, scaler, pumice.compile_step(net, losses.cross_entropy, optimizer, scaler=scaler, **options)


def by_hand(net: Any, optimizer: Any, scaler: Any, given: tuple[Any, ...], half: bool) -> torch.Tensor:
    cells, features, labels = given
    with torch.autocast("cuda", torch.float16, enabled=half):
        loss = losses.cross_entropy(net(pumice.SparseTensor(cells, features, batch_size=2)).features, labels)
    optimizer.zero_grad()
    (loss if scaler is None else scaler.scale(loss)).backward()
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
    return loss.detach()


def graphs(step: Any) -> int:
    return step._recorder._graphs


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", list(MAKERS))
def test_curves_are_those_of_steps_by_hand(name: str, half: bool) -> None:
    for net in (small(), unet().train().cuda()):
        other = copy.deepcopy(net)
        _, _, step = made(net, name, half)
        optimizer = MAKERS[name](other.parameters())
        scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10) if half else None
        for turn in range(30):
            given = batch(turn)
            with torch.autocast("cuda", torch.float16, enabled=half):
                loss = step(*given, batch_size=2)
            expected = by_hand(other, optimizer, scaler, given, half)
            torch.testing.assert_close(loss, expected, rtol=5e-2, atol=5e-2)
        step.wait()
        assert graphs(step) == 1 and int(step.exceeded) == 0


@pytest.mark.parametrize("name", list(MAKERS))
def test_a_graph_has_the_bits_of_its_plan(name: str) -> None:
    made_losses = []
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        states = []
        for eager in (False, True):
            net = small()
            optimizer, _, step = made(net, name, clip_norm=0.5, eager=eager)
            made_losses.append(torch.stack([step(*batch(turn), batch_size=2) for turn in range(20)]))
            states.append(state_of(net, optimizer))
    finally:
        torch.use_deterministic_algorithms(before)
    assert torch.equal(*made_losses)
    expect_same_bits(*states)


def settled(step: Any) -> None:
    for turn in range(6):
        step(*batch(turn), batch_size=2)


def test_steps_do_not_wait() -> None:
    net = small()
    _, _, step = made(net, "fused AdamW", True, clip_norm=1.0)
    settled(step)
    given = [batch(turn) for turn in range(8)]
    torch.cuda.synchronize()
    refused = _C.RefusedWaits()
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        values = [step(*one, batch_size=2) for one in given]
        norm, overflows = step.grad_norm, step.overflows
    finally:
        torch.cuda.set_sync_debug_mode(mode)
        del refused
    assert torch.stack(values).isfinite().all() and norm.isfinite() and int(overflows) == 0


@pytest.mark.parametrize("name", list(MAKERS))
def test_a_step_beyond_a_capacity_changes_nothing(name: str) -> None:
    net = small()
    optimizer, scaler, step = made(net, name, True)
    sparse = torch.cat([torch.zeros(2000, 1, dtype=torch.int32), 9 * random_sites(3, 30, 2200, 1, 4)[:2000, 1:]], 1)
    dense = torch.tensor([[0, i, j, k] for i in range(20) for j in range(10) for k in range(10)], dtype=torch.int32)
    labels = torch.randint(0, CLASSES, (2000,)).cuda()
    features = torch.randn(2000, 4).cuda()
    grid = {"batch_size": 1, "spatial_shape": [300, 300, 300]}
    for _ in range(5):
        assert step(sparse.cuda(), features, labels, **grid).isfinite()
    before = [tensor.clone() for tensor in (*state_of(net, optimizer), scaler._scale, scaler._growth_tracker)]
    torch.cuda.synchronize()
    given = dense.cuda()
    loss = step(given, features, labels, **grid)
    with pytest.raises(pumice.UserError, match="needed, capacity"):
        step.wait()
    assert loss.isnan() and int(step.exceeded) == 1
    expect_same_bits([*state_of(net, optimizer), scaler._scale, scaler._growth_tracker], before)
    assert step(sparse.cuda(), features, labels, **grid).isfinite()
    step.wait()


def test_what_an_optimiser_loads_is_noticed_and_memory_does_not_grow() -> None:
    net = small()
    optimizer, _, step = made(net, "fused AdamW")
    settled(step)
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    settled(step)
    assert graphs(step) == 1
    gc.collect()
    torch.cuda.synchronize()
    held = torch.cuda.memory_allocated()
    for turn in range(200):
        step(*batch(turn % 7), batch_size=2)
    torch.cuda.synchronize()
    gc.collect()
    assert torch.cuda.memory_allocated() <= held + (1 << 20)


def test_what_cannot_be_recorded_is_refused_and_leaves_everything_usable() -> None:
    net = small()
    with pytest.raises(pumice.UserError, match="optimizer Adam keeps numbers of group 0 on the host"):
        step = pumice.compile_step(net, losses.cross_entropy, torch.optim.Adam(net.parameters()))
        step(*batch(0), batch_size=2)

    class Waiting(torch.nn.Module):
        def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
            return x.replace(features=x.features * float(x.features.abs().max().clamp(max=1)))

    waiting = nn.Sequential(*net, Waiting())
    _, _, step = made(waiting, "fused AdamW")
    for turn in range(2):
        step(*batch(turn), batch_size=2)
    with pytest.raises(pumice.UserError, match=r"module '7' \(Waiting\) cannot be recorded"):
        step(*batch(2), batch_size=2)
    _, _, step = made(net, "fused AdamW")
    settled(step)
    assert graphs(step) == 1


def test_a_pass_that_is_still_referred_to_does_not_keep_a_recording_from_being_made() -> None:
    net = small()
    cells, features, labels = batch(0)
    _, _, step = made(net, "fused SGD", True)
    x = pumice.SparseTensor(cells, features, batch_size=2)
    with torch.autocast("cuda", torch.float16):  # which keeps its conversions of weights
        held = losses.cross_entropy(net(x).features, labels)
        settled(step)
    assert graphs(step) == 1 and held.requires_grad
    step.wait()


class FailsInRecordings(torch.nn.Module):
    """Waits for the GPU where a graph is recorded, and nowhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.is_on = True

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        if self.is_on and torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize()
        return x


def test_a_recording_that_fails_leaves_everything_usable() -> None:
    fails = FailsInRecordings()
    net = nn.Sequential(*small(), nn.Dropout(0.5), fails)
    _, _, step = made(net, "fused SGD")
    for turn in range(2):
        step(*batch(turn), batch_size=2)
    stream = torch.cuda.current_stream()
    with pytest.raises(pumice.UserError, match="cannot be recorded as a graph"):
        step(*batch(2), batch_size=2)
    assert torch.cuda.current_stream() == stream
    assert torch.rand(5, device="cuda").unique().numel() == 5
    held = torch.cuda.memory_allocated()
    large = torch.empty(1 << 24, dtype=torch.uint8, device="cuda")
    large.record_stream(torch.cuda.Stream())
    del large
    torch.cuda.synchronize()
    torch.empty(1, device="cuda")  # looks at what is over
    assert torch.cuda.memory_allocated() <= held + 4096
    fails.is_on = False
    settled(step)
    assert graphs(step) == 1
    step.wait()


@pytest.mark.parametrize("half", [False, True])
def test_networks_for_spconv_train_as_steps(half: bool) -> None:
    torch.manual_seed(2)
    net = ForSpconv().cuda()
    other = copy.deepcopy(net)
    _, _, step = made(net, "fused SGD", half)
    optimizer = MAKERS["fused SGD"](other.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10) if half else None
    for turn in range(20):
        cells, features, labels = batch(turn)
        labels = labels.clamp(max=2)  # the network's classes

        def tensor() -> Any:
            return spconv.SparseConvTensor(features, cells, [64, 64, 64], 2)

        with torch.autocast("cuda", torch.float16, enabled=half):
            loss = step(tensor(), labels)
            expected = losses.cross_entropy(other(tensor()), labels)
        optimizer.zero_grad()
        (expected if scaler is None else scaler.scale(expected)).backward()
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        torch.testing.assert_close(loss, expected.detach(), rtol=5e-2, atol=5e-2)
    step.wait()
    assert graphs(step) == 1 and int(step.exceeded) == 0


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_what_is_computed_again_counts_rows_as_before(use_reentrant: bool, nested: bool, half: bool) -> None:
    torch.manual_seed(4)
    head = Recomputed(use_reentrant, nested, 16, preserve_rng_state=False)
    body = small()
    net = torch.nn.Sequential(*body[:-1], Changed(head), body[-1]).cuda()
    other = copy.deepcopy(net)
    _, _, step = made(net, "fused SGD", half)
    optimizer = MAKERS["fused SGD"](other.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10) if half else None
    for turn in range(10):
        given = batch(turn)
        with torch.autocast("cuda", torch.float16, enabled=half):
            loss = step(*given, batch_size=2)
        torch.testing.assert_close(loss, by_hand(other, optimizer, scaler, given, half), rtol=5e-2, atol=5e-2)
    step.wait()
    assert graphs(step) == 1 and int(step.exceeded) == 0


def records_random_state() -> bool:
    """Whether this PyTorch can read the state of random numbers while it records, which newer ones can."""
    reads = True
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        try:
            torch.cuda.get_rng_state()
        except RuntimeError:
            reads = False
    return reads


def test_random_numbers_that_are_kept_for_a_pass_back_are_refused_with_a_remedy() -> None:
    if records_random_state():
        pytest.skip("this PyTorch keeps them in a recording, too: test_dropout_that_is_computed_again_drops_the_same")
    body = small()
    net = torch.nn.Sequential(*body[:-1], Changed(Recomputed(False, False, 16)), body[-1]).cuda()
    _, _, step = made(net, "fused SGD")
    for turn in range(2):
        step(*batch(turn), batch_size=2)
    with pytest.raises(pumice.UserError, match="preserve_rng_state=False"):
        step(*batch(2), batch_size=2)
    assert torch.rand(5, device="cuda").unique().numel() == 5
    net[-2].function.how["preserve_rng_state"] = False
    settled(step)
    assert graphs(step) == 1
    step.wait()


class DroppedAgain(torch.nn.Module):
    """Scores 0 and, of about half of the rows, twice what PReLU's weight is; which rows these are is drawn again in the pass back."""

    def __init__(self, use_reentrant: bool) -> None:
        super().__init__()
        self.use_reentrant = use_reentrant
        self.scaled = torch.nn.PReLU(1, 1.0)

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        second = -self.scaled(-torch.nn.functional.dropout(torch.ones_like(x[:, :1]), 0.5))
        return torch.cat([torch.zeros_like(second), second], 1) + 0.0 * x[:, :1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(self.scores, x, use_reentrant=self.use_reentrant)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_dropout_that_is_computed_again_drops_the_same(use_reentrant: bool) -> None:
    if not records_random_state():
        pytest.skip("this PyTorch cannot read the state of random numbers while it records")
    net = torch.nn.Sequential(*small()[:-1], Changed(DroppedAgain(use_reentrant))).cuda()
    scale = net[-1].function.scaled.weight
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, fused=True)
    step = pumice.compile_step(net, losses.cross_entropy, optimizer)
    cells, features, labels = batch(1)
    kept = []
    for _ in range(8):
        before = scale.detach().double().item()
        loss = float(step(cells, features, torch.zeros_like(labels), batch_size=2))
        # Rows that are kept cost log(1 + exp(2 scale)), the others log 2: the loss says how many there are, and so what
        # the gradient is: 2 sigmoid(2 scale) of each row that is kept, and kept again in the pass back.
        share = (loss - math.log(2)) / (math.log1p(math.exp(2 * before)) - math.log(2))
        gradient = share * 2 / (1 + math.exp(-2 * before))
        assert scale.item() == pytest.approx(before - 0.5 * gradient, abs=1e-4)
        assert 0.4 < share < 0.6
        kept.append(share)
    step.wait()
    assert graphs(step) == 1 and len(set(kept[3:])) > 1


def test_dropout_draws_other_numbers_in_every_step() -> None:
    net = nn.Sequential(*small(), nn.Dropout(0.5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0, fused=True)
    step = pumice.compile_step(net, losses.cross_entropy, optimizer)
    given = batch(1)
    values = [float(step(*given, batch_size=2)) for _ in range(8)]
    assert graphs(step) == 1 and len(set(values[3:])) > 1


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", list(MAKERS))
def test_a_plan_changes_nothing_that_is_trained(name: str, scaled: bool) -> None:
    net = small()
    optimizer, scaler, step = made(net, name, scaled, clip_norm=1.0)
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    assert step.plan(*batch(0), batch_size=2) > 0
    expect_same_bits(state_of(net, optimizer), before)
    assert len(optimizer.state) == 0 and graphs(step) == 0, "with the optimiser's memory the graph is given up"
    settled(step)
    assert graphs(step) == 1
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    held = step.plan(*batch(0, 9000), batch_size=2)
    expect_same_bits(state_of(net, optimizer), before)
    assert graphs(step) == 2 and held > 0
    step(*batch(0, 9000), batch_size=2)
    settled(step)
    step.wait()
    assert graphs(step) == 2 and int(step.exceeded) == 0
