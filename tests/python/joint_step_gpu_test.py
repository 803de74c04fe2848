"""Compiled steps of a DistributedDataParallel on two GPUs over NCCL: curves of its own loop, buckets that differ, recording
in one process while the other replays, and a step that exceeds its room in one and changes nothing in either."""

from __future__ import annotations

import copy
import datetime
import os
import pathlib
from typing import Any

import programs
import pytest
import torch
import torch.distributed as dist
from compiled_step_gpu_test import MAKERS, small
from compiled_step_test import expect_same_bits, state_of
from conftest import random_sites
from planned_test import scan

import pumice
from pumice import losses

pytestmark = pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason="fewer than two CUDA devices are here, and NCCL takes one for each process"
)
DDP = torch.nn.parallel.DistributedDataParallel


def batch(rank: int, turn: int) -> tuple[torch.Tensor, ...]:
    count = 3000 + 41 * turn + (3000 if rank == 1 and turn % 3 == 1 else 0)  # another bucket, at other times
    cells, features = scan(count, 2 * turn + rank, "cuda")
    generator = torch.Generator().manual_seed(turn)
    return cells, features, torch.randint(-1, 5, (len(cells),), generator=generator).cuda()


def made(rank: int, name: str, **options: Any) -> tuple[Any, ...]:
    net = small()
    optimizer = MAKERS[name](net.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10)
    ddp = DDP(net, device_ids=[rank])
    return net, optimizer, scaler, pumice.compile_step(ddp, losses.cross_entropy, optimizer, scaler=scaler, **options)


def same_in_both(tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        first = tensor.detach().clone()
        dist.broadcast(first, 0)
        assert torch.equal(first, tensor)


def curves(rank: int, name: str) -> None:
    net, optimizer, scaler, step = made(rank, name)
    other = copy.deepcopy(net)
    wrapped, by_hand = DDP(other, device_ids=[rank]), MAKERS[name](other.parameters())
    again = torch.amp.GradScaler("cuda", init_scale=2.0**10)
    for turn in range(30):
        cells, features, labels = batch(rank, turn)
        with torch.autocast("cuda", torch.float16):
            found = step(cells, features, labels, batch_size=2)
            expected = losses.cross_entropy(wrapped(pumice.SparseTensor(cells, features, batch_size=2)).features, labels)
        by_hand.zero_grad()
        again.scale(expected).backward()
        again.step(by_hand)
        again.update()
        torch.testing.assert_close(found, expected.detach(), rtol=5e-2, atol=5e-2)
        same_in_both([*net.parameters(), scaler._scale])
    step.wait()
    assert step._recorder._graphs >= 2 + rank and int(step.exceeded) == 0


def one_exceeds(rank: int, name: str) -> None:
    net, optimizer, scaler, step = made(rank, name)
    sparse = torch.cat([torch.zeros(2000, 1, dtype=torch.int32), 9 * random_sites(3, 30, 2200, 1, 4)[:2000, 1:]], 1).cuda()
    dense = torch.tensor([[0, i, j, k] for i in range(20) for j in range(10) for k in range(10)], dtype=torch.int32).cuda()
    labels, features = torch.randint(0, 5, (2000,)).cuda(), torch.randn(2000, 4).cuda()
    grid = {"batch_size": 1, "spatial_shape": [300, 300, 300]}
    for _ in range(5):
        assert step(sparse, features, labels, **grid).isfinite()
    step.wait()
    before = [tensor.clone() for tensor in (*state_of(net, optimizer), scaler._scale, scaler._growth_tracker)]
    loss = step(dense if rank == 1 else sparse, features, labels, **grid)
    with pytest.raises(pumice.UserError, match="needed, capacity" if rank == 1 else "another process exceeded the room"):
        step.wait()
    assert loss.isnan() and int(step.exceeded) == 1
    now = [*state_of(net, optimizer), scaler._scale, scaler._growth_tracker]
    if rank == 0:  # the other has the buffers of the first
        expect_same_bits(now, before)
    same_in_both(list(net.parameters()))
    assert step(sparse, features, labels, **grid).isfinite()
    step.wait()


def one_of_two(rank: int, store: str, job: str, name: str) -> None:
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", store=dist.FileStore(store, 2), rank=rank, world_size=2, timeout=datetime.timedelta(seconds=60)
    )
    {"curves": curves, "one_exceeds": one_exceeds}[job](rank, name)
    torch.cuda.synchronize()
    programs.leave_group()


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("job", ["curves", "one_exceeds"])
def test_two_processes(tmp_path: pathlib.Path, job: str, name: str) -> None:
    torch.multiprocessing.spawn(one_of_two, (str(tmp_path / "store"), job, name), nprocs=2)
