"""Processes that share the work: sparse tensors made in the workers of a DataLoader, and layers after a
fork."""

from __future__ import annotations

import programs
import pytest
import torch
from conftest import random_tensor

import pumice
from pumice import data, nn


class Scenes(torch.utils.data.Dataset):
    """Simulated scenes as sparse tensors of one batch item; scene 2 has no points."""

    def __init__(self, layer: torch.nn.Module | None = None) -> None:
        self.layer = layer

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> pumice.SparseTensor:
        scan = pumice.simulate(index, beams=32)
        points = scan.positions[:0] if index == 2 else scan.positions
        voxels = pumice.voxelize(points, size=1.0)
        coords = torch.from_numpy(voxels.coordinates)
        x = pumice.SparseTensor(coords, torch.from_numpy(voxels.features), batch_size=1)
        if self.layer is None:
            return x
        with torch.no_grad():
            return self.layer(x)


def compute() -> None:
    """So that a fork finds threads of the parent at work or asleep."""
    x = random_tensor(extent=40, count=20_000, channels=8, dtype=torch.float32)
    nn.SubMConv3d(8, 8, 3)(x).features.sum().backward()


def load(method: str, layer: torch.nn.Module | None = None) -> list[pumice.SparseTensor]:
    loader = torch.utils.data.DataLoader(
        Scenes(layer),
        batch_size=2,
        num_workers=2,
        collate_fn=pumice.collate,
        multiprocessing_context=method,
        worker_init_fn=data.one_thread,
        timeout=300,
    )
    return list(loader)


class Refusing(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> None:
        raise pumice.UserError("scans[0] has no labels,\n\x1b[2Jor so")


def test_an_error_of_a_worker_has_lines_and_ends_with_its_sentence() -> None:
    with pytest.raises(pumice.UserError) as raised:
        list(torch.utils.data.DataLoader(Refusing(), num_workers=1))
    lines = str(raised.value).split("\n")
    assert lines[0] == "Caught UserError in DataLoader worker process 0."
    assert lines[1] == "Original Traceback (most recent call last):"
    assert lines[-1] == r"pumice.UserError: scans[0] has no labels,\n\x1b[2Jor so"
    assert all(line.isprintable() for line in lines)
    for other in ("a\nb", "Caught UserError in x.\nOriginal", "Caught UserError in\nx.\nOriginal Traceback (m"):
        assert "\n" not in str(pumice.UserError(other))
    assert str(pumice.UserError("a", "b")) == "('a', 'b')" and str(pumice.UserError()) == ""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_made_by_two_workers(method: str) -> None:
    compute()
    scenes = Scenes()
    batches = load(method)
    assert len(batches) == 2
    for batch, items in zip(batches, ((0, 1), (2, 3)), strict=True):
        assert isinstance(batch, pumice.SparseTensor) and batch.batch_size == 2
        for number, item in enumerate(items):
            mine = batch.indices[:, 0] == number
            expected = scenes[item]
            assert torch.equal(batch.indices[mine][:, 1:], expected.indices[:, 1:])
            assert torch.equal(batch.features[mine], expected.features)
        # What came through is whole: maps are made, gradients come back.
        layer = nn.Conv3d(3, 4, 2, stride=2)
        layer(batch).features.sum().backward()
        assert layer.weight.grad.abs().sum() > 0
    assert not (batches[1].indices[:, 0] == 0).any()


def test_layers_in_forked_workers() -> None:
    compute()
    layer = nn.Sequential(nn.SubMConv3d(3, 8, 3), nn.BatchNorm(8), nn.ReLU()).eval()
    nn.freeze(layer)
    for batch, items in zip(load("fork", layer), ((0, 1), (2, 3)), strict=True):
        expected = pumice.collate([Scenes(layer)[item] for item in items])
        assert torch.equal(batch.indices, expected.indices)
        torch.testing.assert_close(batch.features, expected.features, rtol=1e-5, atol=1e-5)


def test_training_after_a_fork() -> None:
    """With all threads, in a process whose parent had them first. In one of its own: PyTorch refuses
    gradients in a fork of a process that ever took some on a GPU."""
    done = programs.run(
        """
import multiprocessing
import torch
from conftest import random_tensor
from pumice import nn

def gradient_of(layer, x):
    layer.zero_grad()
    layer(x).features.square().sum().backward()
    return layer.weight.grad.numpy()

# So few rows that PyTorch itself starts no threads of OpenMP, which do not survive a fork.
x = random_tensor(extent=20, count=3000, dtype=torch.float32).detach()
layer = nn.SubMConv3d(4, 8, 3)
here = gradient_of(layer, x)  # the map and the threads are there before the fork
with multiprocessing.get_context("fork").Pool(1) as pool:
    there = pool.apply_async(gradient_of, (layer, x)).get(timeout=60)
torch.testing.assert_close(torch.from_numpy(there), torch.from_numpy(here), rtol=1e-5, atol=1e-4)
"""
    )
    assert done.returncode == 0, done.stderr


def test_tensors_of_one_batch_share_their_sites_in_a_worker_too() -> None:
    x = random_tensor(dtype=torch.float32).detach()
    pair = [(x, x.replace(features=x.features * 2))]
    loader = torch.utils.data.DataLoader(
        pair, batch_size=None, num_workers=1, multiprocessing_context="fork", timeout=300
    )
    ((left, right),) = list(loader)
    assert left.coords is right.coords
    assert torch.equal(pumice.cat([left, right]).features, torch.cat([x.features, x.features * 2], 1))


# Only what calls no function of PyTorch with the GIL in hand: those that let go of it, as new_empty, end the process
# the same way, by guards of their own.
DAEMONS = """
import os, threading, time, traceback
import torch
import pumice

rounds = [0, 0, 0]

def fail(raised):
    traceback.print_exception(raised.exc_type, raised.exc_value, raised.exc_traceback)
    os._exit(1)

def forever(at):
    while True:
        pumice.simulate(1, beams=32)
        rounds[at] += 1

threading.excepthook = fail
for at in range(3):
    threading.Thread(target=forever, args=(at,), daemon=True).start()
while min(rounds) == 0:
    time.sleep(0.01)
"""


def test_threads_that_are_at_work_when_the_interpreter_ends_do_not_end_the_process() -> None:
    """They ask for the GIL, which they do not get any more: Python unwinds them then, through frames of C++."""
    for _ in range(3):
        done = programs.run(DAEMONS, OMP_NUM_THREADS="1")
        assert (done.returncode, done.stderr) == (0, "")
