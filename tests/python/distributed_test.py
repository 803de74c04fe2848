"""Two processes make the step of one with the joint batch: gloo on the CPU, NCCL on two GPUs."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import socket
import sys

import programs
import pytest
import torch
import torch.distributed as dist
from conftest import random_tensor, working_type

import pumice
from pumice import models

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "train_distributed.py"
CLASSES = 5
needs_two_gpus = pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason="fewer than two CUDA devices are here, and NCCL takes one for each process"
)


def parts() -> list[tuple[pumice.SparseTensor, torch.Tensor]]:
    """Of very different sizes, some rows without a class."""
    generator = torch.Generator().manual_seed(7)
    made = []
    for count, seed in ((500, 1), (60, 2)):
        x = random_tensor(extent=16, count=count, seed=seed, batch=2)
        features = torch.randn(len(x), 4, dtype=torch.float64, generator=generator)
        truth = torch.randint(-1, CLASSES, (len(x),), generator=generator)
        made.append((pumice.SparseTensor(x.indices, features, batch_size=2), truth))
    return made


def joint() -> tuple[pumice.SparseTensor, torch.Tensor]:
    (first, left), (second, right) = parts()
    cells = second.indices.clone()
    cells[:, 0] += 2
    x = pumice.SparseTensor(
        torch.cat([first.indices, cells]),
        torch.cat([first.features, second.features]),
        batch_size=4,
    )
    return x, torch.cat([left, right])


def network() -> models.MinkUNet42:
    torch.manual_seed(3)
    return models.MinkUNet42(4, CLASSES, (4, 4, 4, 5, 6, 6, 5, 4, 4)).double()


def example():  # noqa: ANN201
    spec = importlib.util.spec_from_file_location("train_distributed", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    if str(EXAMPLE.parent) not in sys.path:
        sys.path.append(str(EXAMPLE.parent))  # its neighbours
    spec.loader.exec_module(module)
    return module


def step(model: torch.nn.Module, x: pumice.SparseTensor, truth: torch.Tensor, device: str) -> None:
    # Devices have no float64.
    x = pumice.SparseTensor(x.indices, x.features.to(working_type(torch.device(device))), batch_size=x.batch_size).to(device)
    truth = truth.to(device)
    # SGD: what Adam makes of a rounding error in a tiny gradient is large.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        example().joint_mean_loss(model(x).features.double(), truth).backward()
        optimizer.step()


def one_of_two(rank: int, port: int, out: str, device: str) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if device == "cuda":
        device = f"cuda:{rank}"
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if device == "cpu" else "nccl", rank=rank, world_size=2)
    model = pumice.nn.SyncBatchNorm.convert(network()).to(device, working_type(torch.device(device)))
    wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=None if device == "cpu" else [device])
    step(wrapped, *parts()[rank], device)
    torch.save(model.state_dict(), f"{out}/{rank}.pt")
    programs.leave_group()


@pytest.mark.skipif(not dist.is_available(), reason="this PyTorch has no torch.distributed")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_two_gpus)])
def test_a_step_is_that_of_one_process_with_the_joint_batch(tmp_path: pathlib.Path, device: str) -> None:
    if not EXAMPLE.exists():
        pytest.skip("the examples are not here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(one_of_two, (port, str(tmp_path), device), nprocs=2)
    alone = network().to(device, working_type(torch.device(device)))
    step(alone, *joint(), device)
    expected = {name: value.cpu() for name, value in alone.state_dict().items()}
    start = network().state_dict()
    # Sums of a few hundred terms in another order, float32 in the loss; on a device everywhere, where the CPU's differ by 9e-7.
    near = {"cpu": {"rtol": 1e-5, "atol": 2e-7}, "cuda": {"rtol": 1e-4, "atol": 2e-5}}
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True, map_location="cpu")
        assert found.keys() == expected.keys()
        for name, value in found.items():
            torch.testing.assert_close(value, expected[name], **near[device], msg=lambda said, name=name: f"{name}: {said}")
    moved = max((expected[n].double() - start[n].double()).abs().max().item() for n in start)
    assert moved > 1e-2


def test_conversion_keeps_names_and_values() -> None:
    model = network()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    after = pumice.nn.SyncBatchNorm.convert(model).state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert not any(type(m) is pumice.nn.BatchNorm for m in model.modules())
    assert any(isinstance(m, pumice.nn.SyncBatchNorm) for m in model.modules())
