"""Compiled steps of a DistributedDataParallel whose model is given nodes and edges, in two processes on pretended devices: the
numbers of the loop on the CPU, and an edge of no node in one process, which changes nothing in any."""

from __future__ import annotations

import copy
import datetime
import pathlib
from typing import Any

import pretended_step
import programs
import pytest
import torch
import torch.distributed as dist
from compiled_step_graphs_test import MAKERS, Network, labels_of
from compiled_step_test import expect_same_bits, state_of
from joint_step_test import DDP, same_in_all
from planned_graphs_test import CHANNELS, PLAIN, graph_of

import pumice
from pumice import losses

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="this PyTorch has no torch.distributed")


def given(rank: int, turn: int) -> tuple[torch.Tensor, ...]:
    """Rooms differ between the processes, and one has no nodes now and then."""
    if rank == 1 and turn % 7 == 3:
        return torch.zeros(0, CHANNELS), torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    nodes, edges = 300 + 800 * (rank * turn % 3 == 1) - turn, 900 + 50 * turn
    x, index, _ = graph_of(nodes, edges, 2 * turn + rank)
    return x, index, labels_of(nodes, turn)


def made(name: str) -> tuple[Any, ...]:
    torch.manual_seed(0)
    net = Network(PLAIN["SAGE"])
    optimizer = MAKERS[name](net.parameters())
    return net, optimizer, pretended_step.compile_joint_step(DDP(net), losses.cross_entropy, optimizer, clip_norm=0.5)


def train_together(rank: int, name: str) -> None:
    net, optimizer, step = made(name)
    other = copy.deepcopy(net)
    by_hand = MAKERS[name](other.parameters())
    ordinary = pumice.compile_step(DDP(other), losses.cross_entropy, by_hand, clip_norm=0.5)
    for turn in range(22):
        one = given(rank, turn)
        torch.testing.assert_close(step(*one), ordinary(*one), rtol=2e-3, atol=2e-4, equal_nan=True)
        same_in_all([*net.parameters(), *(t for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t))])
    assert step.recordings > 1 and int(step.exceeded) == 0
    for left, right in zip(net.parameters(), other.parameters()):
        torch.testing.assert_close(left, right, rtol=2e-2, atol=4e-3)


def one_has_an_edge_of_no_node(rank: int, name: str) -> None:
    net, optimizer, step = made(name)
    x, index, labels = given(0, 5)
    wrong = index.clone()
    if rank == 1:
        wrong[1, 7] = 300
    said = r"edge_index\[1\]\[7\] = 300" if rank == 1 else "another process exceeded"
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    with pytest.raises(pumice.UserError, match=said):  # in the first step all know at once
        step(x, wrong, labels)
    expect_same_bits(state_of(net, optimizer), before)
    for _ in range(2):
        assert step(x, index, labels).isfinite()
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    assert step(x, wrong, labels).isnan()  # in place of a recording
    expect_same_bits(state_of(net, optimizer), before)
    with pytest.raises(pumice.UserError, match=said):
        for _ in range(10):
            step(x, index, labels)
    assert step(x, index, labels).isfinite() and int(step.exceeded) == 1
    same_in_all(list(net.parameters()))


JOBS = {one.__name__: one for one in (train_together, one_has_an_edge_of_no_node)}


def one_of_two(rank: int, store: str, job: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2, timeout=datetime.timedelta(seconds=60)
    )
    with pytest.MonkeyPatch.context() as patch:
        pretended_step.use_counts(patch)
        for name in ("fused AdamW", "SGD"):
            JOBS[job](rank, name)
    programs.leave_group()


@pytest.mark.parametrize("job", list(JOBS))
def test_two_processes(tmp_path: pathlib.Path, job: str) -> None:
    torch.multiprocessing.spawn(one_of_two, (str(tmp_path / "store"), job), nprocs=2)
