"""Several threads that share a frozen model get what one thread gets."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
import torch

from pumice import SparseTensor, nn

THREADS, ROUNDS = 4, 40


def layer() -> torch.nn.Module:
    return nn.SubMConv3d(64, 64, 3, bias=False)


def chain() -> torch.nn.Module:
    return nn.Sequential(
        nn.SubMConv3d(64, 64, 3, bias=False), nn.BatchNorm(64), nn.ReLU(),
        nn.SubMConv3d(64, 64, 3, bias=False), nn.BatchNorm(64), nn.ReLU(),
    )  # fmt: skip


MODELS = {"layer": layer, "chain": chain}


def frozen(name: str) -> torch.nn.Module:
    torch.manual_seed(1)
    return nn.freeze(MODELS[name]().eval())


def results_of(model: torch.nn.Module, x: SparseTensor) -> list[torch.Tensor]:
    start = threading.Barrier(THREADS)
    results: list[torch.Tensor] = []

    def run() -> None:
        start.wait()
        with torch.no_grad():
            results.append(model(x).features)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def compare(name: str) -> None:
    sites = torch.stack(torch.meshgrid(*[torch.arange(8)] * 3, indexing="ij"), -1).reshape(-1, 3)
    x = SparseTensor(torch.cat([torch.zeros(len(sites), 1), sites], 1).int(), torch.randn(len(sites), 64))
    with torch.no_grad():
        expected = frozen(name)(x).features
    for _ in range(ROUNDS):  # each with a model of which nothing has been packed
        results = results_of(frozen(name), x)
        assert len(results) == THREADS, "a thread raised"
        assert all(torch.equal(one, expected) for one in results)


@pytest.mark.parametrize("name", MODELS)
def test_first_passes_at_the_same_time(name: str) -> None:
    """glibc overwrites what is freed there: weights that one thread packs over those another one reads would go
    unseen, since both are the same."""
    environment = {**os.environ, "MALLOC_PERTURB_": "165", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, __file__, name], env=environment, check=True, timeout=300)


if __name__ == "__main__":
    compare(sys.argv[1])
