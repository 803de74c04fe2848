"""Compiled steps of a DistributedDataParallel in two processes: the bits of its own loop on the CPU, and on pretended
devices buckets that differ, steps that change nothing in any process, and what all processes raise in the same call."""

from __future__ import annotations

import copy
import datetime
import pathlib
from collections.abc import Callable
from typing import Any

import pretended_step
import programs
import pytest
import torch
import torch.distributed as dist
from compiled_step_test import CLASSES, expect_same_bits, network, scan, state_of

import pumice
from pumice import losses, nn

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="this PyTorch has no torch.distributed")
DDP = torch.nn.parallel.DistributedDataParallel
MAKERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "fused AdamW": lambda p: torch.optim.AdamW(p, lr=2**-7, fused=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=2**-4, momentum=0.875, weight_decay=2**-8, foreach=False),
}


class Unused(torch.nn.Module):
    """Has a layer that only scans of an odd number of voxels go through, and that comes to nothing there."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network()
        self.more = nn.Linear(CLASSES, CLASSES)

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        y = self.body(x)
        return self.more(y) if len(x) % 2 else y


class Features(torch.nn.Module):
    """Gives the features alone, in which DistributedDataParallel looks for parameters that are not used."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: pumice.SparseTensor) -> torch.Tensor:
        return self.net(x).features


def given(rank: int, turn: int) -> tuple[torch.Tensor, ...]:
    if turn % 7 == 3 and rank == 1:  # an empty scan
        return torch.zeros(0, 4, dtype=torch.int32), torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)
    return scan(2 * turn + rank, 30 + 90 * rank + 7 * turn)


def same_in_all(tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        first = tensor.detach().clone()
        dist.broadcast(first, 0)
        assert torch.equal(first, tensor)


def loop_is_the_same(rank: int, name: str, scaled: bool) -> None:
    net = Unused()
    other = copy.deepcopy(net)
    optimizer, by_hand = MAKERS[name](net.parameters()), MAKERS[name](other.parameters())
    made = [torch.amp.GradScaler("cpu", init_scale=2.0**60, growth_interval=3) if scaled else None for _ in range(2)]
    step = pumice.compile_step(DDP(net), losses.cross_entropy, optimizer, scaler=made[0], clip_norm=0.5)
    wrapped = DDP(Features(other), find_unused_parameters=True)
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(one, 24) for one in (optimizer, by_hand)]
    for turn in range(24):
        cells, features, labels = given(rank, turn)
        loss = step(cells, features, labels, batch_size=2)
        x = pumice.SparseTensor(cells, features, batch_size=2)
        expected = losses.cross_entropy(wrapped(x), labels)
        by_hand.zero_grad(set_to_none=False)  # what no process has a gradient of is trained with zeros
        scaler = made[1]
        (expected if scaler is None else scaler.scale(expected)).backward()
        for parameter in other.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if scaler is not None:
            scaler.unscale_(by_hand)
        torch.nn.utils.clip_grad_norm_(other.parameters(), 0.5)
        (by_hand if scaler is None else scaler).step(*([] if scaler is None else [by_hand]))
        if scaler is not None:
            scaler.update()
        for schedule in schedules:
            schedule.step()
        torch.testing.assert_close(loss, expected.detach(), rtol=0, atol=0, equal_nan=True)  # of an empty scan it is none
    trained = [*net.parameters(), *(value for state in optimizer.state.values() for value in state.values())]
    others = [*other.parameters(), *(value for state in by_hand.state.values() for value in state.values())]
    expect_same_bits([one for one in trained if torch.is_tensor(one)], [one for one in others if torch.is_tensor(one)])
    expect_same_bits(list(net.buffers()), list(other.buffers()))
    same_in_all(list(net.parameters()))
    assert not torch.equal(net.body[0].weight, network()[0].weight)


def pretended(rank: int, name: str, scaled: bool, **options: Any) -> tuple[Any, ...]:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        nn.SubMConv3d(4, 8, 3, bias=False), nn.BatchNorm(8), nn.ReLU(), nn.Conv3d(8, 8, 2, stride=2),
        nn.InverseConv3d(8, 8, 2, stride=2), nn.LayerNorm(8), nn.Linear(8, CLASSES),
    )  # fmt: skip
    optimizer = MAKERS[name](net.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3) if scaled else None
    step = pretended_step.compile_joint_step(DDP(net), losses.cross_entropy, optimizer, scaler=scaler, clip_norm=0.5, **options)
    return net, optimizer, scaler, step


def numbers(net: Any, optimizer: Any, scaler: Any) -> list[torch.Tensor]:
    more = [] if scaler is None else [scaler._scale, scaler._growth_tracker]
    return [tensor.clone() for tensor in (*state_of(net, optimizer), *more)]


def buckets_differ(rank: int, name: str, scaled: bool) -> None:
    net, optimizer, scaler, step = pretended(rank, name, scaled)
    other = copy.deepcopy(net)
    by_hand = MAKERS[name](other.parameters())
    again = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3) if scaled else None
    ordinary = pumice.compile_step(DDP(other), losses.cross_entropy, by_hand, scaler=again, clip_norm=0.5)
    many = torch.tensor([[0, i, j, k] for i in range(12) for j in range(12) for k in range(8)], dtype=torch.int32)
    for turn in range(22):
        one = given(rank, turn)
        if rank == 1 and turn % 3 == 1:  # a bucket that the other process does not have
            one = many, torch.randn(len(many), 4), torch.randint(0, CLASSES, (len(many),))
        found, expected = step(*one, batch_size=2), ordinary(*one, batch_size=2)
        torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-4, equal_nan=True)
        same_in_all([*net.parameters(), *(t for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t))])
    assert step.recordings == 2 + rank and int(step.exceeded) == 0
    for left, right in zip(net.parameters(), other.parameters()):
        torch.testing.assert_close(left, right, rtol=2e-2, atol=4e-3)
    if name == "fused AdamW":  # what was loaded is noticed in both, whatever each has recorded
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for turn in range(5):
            assert step(*given(rank, turn + 30), batch_size=2).isfinite() or rank == 1
            same_in_all(list(net.parameters()))


def one_exceeds(rank: int, name: str, scaled: bool) -> None:
    net, optimizer, scaler, step = pretended(rank, name, scaled)
    for turn in range(5):
        step(*scan(turn, 50 + 9 * rank), batch_size=2)
    before = numbers(net, optimizer, scaler)
    weights = [parameter.detach().clone() for parameter in net.parameters()]
    if rank == 1:
        step._recorder.text = "voxels: 7 needed, capacity 5"
    raised = None
    for turn in range(12):
        try:
            loss = step(*scan(turn, 50 + 9 * rank), batch_size=2)
        except pumice.UserError as error:
            raised = turn, str(error)
            break
        if turn >= 3:  # the three steps before are read first
            assert loss.isnan()
        expect_same_bits([one.detach() for one in net.parameters()], weights)
    assert raised is not None and raised[0] == 8, raised
    told = "voxels: 7 needed, capacity 5" if rank == 1 else "another process exceeded the room"
    assert told in raised[1] and f"process {rank} of 2" in raised[1]
    now = numbers(net, optimizer, scaler)
    expect_same_bits(now[:3], before[:3])
    if rank == 0:  # the others had the buffers of the first
        expect_same_bits(now, before)
    assert int(step.exceeded) == 8
    assert step(*scan(3, 60), batch_size=2).isfinite()
    same_in_all(list(net.parameters()))
    assert not torch.equal(net[0].weight, weights[0])
    if rank == 1:
        step._recorder.text = "pairs: 9 needed, capacity 8"
    assert step(*scan(4, 60), batch_size=2).isnan()
    with pytest.raises(pumice.UserError, match="which has changed nothing in any process: "):
        step.wait()
    step.wait()


def one_is_refused(rank: int, name: str, scaled: bool) -> None:
    """A scan of more voxels than may be, at first and among graphs: all leave that step out, and go on together."""
    net, optimizer, scaler, step = pretended(rank, name, scaled, max_voxels=70)
    for first in (0, 10):
        for turn in range(first, first + 5):
            assert step(*scan(turn, 40), batch_size=2).isfinite()
        same_in_all(list(net.parameters()))
        before = [parameter.detach().clone() for parameter in net.parameters()]
        assert step(*scan(first + 5, 90 if rank == 1 else 40), batch_size=2).isnan()
        with pytest.raises(pumice.UserError, match="max_voxels = 70" if rank == 1 else "another process exceeded the room"):
            step.wait()
        expect_same_bits([one.detach() for one in net.parameters()], before)
    net, optimizer, scaler, step = pretended(rank, name, scaled, max_voxels=70)
    with pytest.raises(pumice.UserError, match="max_voxels = 70" if rank == 1 else "another process exceeded the room"):
        step(*scan(0, 90 if rank == 1 else 40), batch_size=2)
    assert step(*scan(1, 40), batch_size=2).isfinite()
    same_in_all(list(net.parameters()))


def all_repeat(rank: int, name: str, scaled: bool) -> None:
    net, optimizer, scaler, step = pretended(rank, name, scaled, fallback="eager", eager=scaled)
    for turn in range(5):
        step(*scan(turn, 50 + 9 * rank), batch_size=2)
    if rank == 1:
        step._recorder.text = "voxels: 7 needed, capacity 5"
    before = net[0].weight.detach().clone()
    assert step(*scan(7, 50 + 9 * rank), batch_size=2).isfinite()
    assert not torch.equal(net[0].weight, before)
    same_in_all(list(net.parameters()))
    for turn in range(3):
        assert step(*scan(turn, 60), batch_size=2).isfinite()
    same_in_all(list(net.parameters()))


def refusals(rank: int, name: str, scaled: bool) -> None:
    entropy = losses.cross_entropy

    def made(net: Any = None, **options: Any) -> Any:
        net = DDP(network() if net is None else net, **options)
        return net, torch.optim.SGD(net.parameters(), 0.1)

    net, sgd = made()
    net.register_comm_hook(None, lambda state, bucket: torch.futures.Future())
    with pytest.raises(pumice.UserError, match="DistributedDataParallel. has a communication hook"):
        pumice.compile_step(net, entropy, sgd)
    net, sgd = made(static_graph=True)
    with pytest.raises(pumice.UserError, match="has static_graph=True"):
        pumice.compile_step(net, entropy, sgd)
    net, sgd = made(nn.Sequential(nn.SubMConv3d(4, CLASSES, 3), nn.SyncBatchNorm(CLASSES)))
    with pytest.raises(pumice.UserError, match=r"module '1' \(SyncBatchNorm\) adds up over processes"):
        pumice.compile_step(net, entropy, sgd)
    net, sgd = made()
    sgd.add_param_group({"params": [torch.nn.Parameter(torch.zeros(3))]})
    with pytest.raises(pumice.UserError, match=r"a parameter of shape \(3,\) is trained that the DistributedDataParallel"):
        pumice.compile_step(net, entropy, sgd)
    net, sgd = made()
    net.register_forward_hook(lambda *_: None)
    with pytest.raises(pumice.UserError, match="has hooks"):
        pumice.compile_step(net, entropy, sgd)
    net, sgd = made()
    step = pumice.compile_step(net, entropy, sgd)
    with net.no_sync(), pytest.raises(pumice.UserError, match=r"inside no_sync\(\)"):
        step(*scan(rank), batch_size=2)
    assert step(*scan(rank), batch_size=2).isfinite()


def buffers_are_those_of_the_first(rank: int, name: str, scaled: bool) -> None:
    net, _, _, step = pretended(rank, name, scaled)
    processes = step._processes
    for turn in range(3):
        net[1].running_mean.add_(rank)
        step(*scan(2 * turn + rank), batch_size=2)
        views = [id(view) for piece in processes._buffers for view in piece.views]
        assert len(views) == 3 and (turn == 0 or views == kept), "views of buffers are made once"
        kept = views
    net[1].running_mean = torch.full((8,), 3.0 + rank)  # another tensor
    net[1].register_buffer("more", torch.full((5,), rank, dtype=torch.int8))
    processes.share_buffers()
    same_in_all(list(net.buffers()))
    assert torch.equal(net[1].running_mean, torch.full((8,), 3.0)) and not net[1].more.any()


JOBS = {
    one.__name__: one
    for one in (
        loop_is_the_same, buckets_differ, one_exceeds, one_is_refused, all_repeat, refusals, buffers_are_those_of_the_first
    )
}  # fmt: skip


def one_of_two(rank: int, store: str, job: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2, timeout=datetime.timedelta(seconds=60)
    )
    cases = [("SGD", False)] if job == "refusals" else [(name, scaled) for name in MAKERS for scaled in (False, True)]
    with pytest.MonkeyPatch.context() as patch:
        pretended_step.use_counts(patch)
        for name, scaled in cases:
            try:
                JOBS[job](rank, name, scaled)
            except BaseException as error:
                error.add_note(f"process {rank}, {name}, scaled: {scaled}")
                raise
    programs.leave_group()


@pytest.mark.parametrize("job", list(JOBS))
def test_two_processes(tmp_path: pathlib.Path, job: str) -> None:
    torch.multiprocessing.spawn(one_of_two, (str(tmp_path / "store"), job), nprocs=2)
