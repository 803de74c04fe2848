"""A few turns of each long run (long_runs.py): on a CPU as compiled networks run there and with graphs that are pretended, and
on a GPU. Runs also find what is put wrong on purpose."""

from __future__ import annotations

import os
import sys
from typing import Any

import long_run_maps
import long_runs
import pretended_device
import pretended_step
import pytest
import torch
from conftest import NO_GPU
from long_runs import MAY_GROW, RUNS, Different, Makers

import pumice
from pumice import losses, nn

TURNS = {"replay": 30, "curves": 30, "memory": 120, "threads": 12, "gpus": 12, "outgrown": 40, "maps": 20}
PRETENDED = Makers(pretended_device.compile, pretended_step.compile_step, torch.nn.Sequential, {"batch_size": 2})  # sites of the room lie outside of any grid


@pytest.fixture
def with_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended_step.use_counts(monkeypatch)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU))])
@pytest.mark.parametrize("name", list(RUNS))
def test_a_few_turns(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        monkeypatch.setitem(MAY_GROW, "used", sys.maxsize)  # of the GPU, which other processes of the tests use too
    if name == "gpus" and device == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("fewer than two CUDA devices are here; two_gpus_test.py needs them, too")
    said = RUNS[name][0](TURNS[name], device, 1, Makers())
    assert "\n" not in said and said


# Sites that follow from those given are pretended with rows of their own (maps), and one thread is pretended at a time (threads).
@pytest.mark.parametrize("name", ["replay", "curves", "memory", "outgrown"])
def test_with_pretended_graphs(name: str, with_counts: None) -> None:
    said = RUNS[name][0](TURNS[name], "cpu", 2, PRETENDED)
    assert " 0 buckets" not in said


def test_the_command_prints_one_line_a_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["long_runs.py", "maps", "memory", "--count", "41", "--device", "cpu"])
    assert long_runs.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["maps", "memory"]
    monkeypatch.setattr(sys, "argv", ["long_runs.py", "memory", "--count", "3", "--device", "cpu"])
    assert long_runs.main() == 1 and "memory: FAILS: Different: 3 steps are too few" in capsys.readouterr().out


class Wrong:
    """A compiled network or step, something of which is wrong from the fifth call on."""

    _buckets = ()
    exceeded = 0

    def __init__(self, run: Any, spoil: Any) -> None:
        self.run, self.spoil, self.calls = run, spoil, 0

    def __call__(self, *given: Any, **grid: Any) -> Any:
        self.calls += 1
        y = self.run(*given, **grid)
        return self.spoil(y) if self.calls > 4 else y

    def wait(self) -> None:
        pass


def one_bit(x: Any) -> Any:
    features = x.features.clone()
    if len(features):
        features[-1, 0] = torch.nextafter(features[-1, 0], torch.tensor(1e9))
    return x.replace(features=features)


def an_entry(made: Any) -> Any:
    table = made["3x3x3 with stride 2"].exact()
    features = table.features.clone()
    if len(features):
        features[0, 13] += 1
    return {**made, "3x3x3 with stride 2": table.replace(features=features)}


kept: list[Any] = []


def keep(loss: torch.Tensor) -> torch.Tensor:
    kept.extend([object.__new__(Wrong) for _ in range(50)])
    return loss


def compiled_wrongly(spoil: Any) -> Any:
    return lambda net, eager=False: pumice.compile(net) if eager else Wrong(pumice.compile(net), spoil)


def step_wrongly(spoil: Any) -> Any:
    return lambda *given, **options: Wrong(pumice.compile_step(*given, **options), spoil)


def of_another_rate(net: Any, loss: Any, optimizer: Any, **options: Any) -> Any:
    optimizer.param_groups[0]["lr"] *= 1.1
    return pumice.compile_step(net, loss, optimizer, **options)


def drawing(net: Any, loss: Any, optimizer: Any, **options: Any) -> Any:
    return pumice.compile_step(nn.Sequential(*net, nn.Dropout(0.5)), losses.cross_entropy, optimizer)


@pytest.mark.parametrize(
    "name, makers, what",
    [
        ("replay", Makers(compile=compiled_wrongly(one_bit)), "graph and plan give other bits"),
        ("maps", Makers(compile=compiled_wrongly(an_entry)), "3x3x3 with stride 2: 1 entries of the graph differ"),
        ("curves", Makers(compile_step=of_another_rate), "f32: from step .* on losses differ"),
        ("curves", Makers(compile_step=step_wrongly(lambda loss: loss * torch.nan)), "is no number"),
        ("memory", Makers(compile_step=step_wrongly(keep)), "objects has grown"),
        ("threads", Makers(compile_step=drawing), "losses are not those of one thread after the other"),
        ("gpus", Makers(compile_step=drawing), "cpu: losses are not those of cpu alone"),
        ("outgrown", Makers(compile_step=step_wrongly(lambda loss: loss * torch.nan)), "nobody said why|the loss is no number"),
        ("outgrown", Makers(compile_step=of_another_rate), "by hand"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(name: str, makers: Makers, what: str) -> None:
    try:
        with pytest.raises(Different, match=what):
            RUNS[name][0](TURNS[name], "cpu", 1, makers)
    finally:
        kept.clear()


def test_tables_are_those_of_loops() -> None:
    """The grid's tables by a dictionary of cells."""
    cells = long_runs.scan(60, 3, "cpu")[0]
    number = {tuple(cell): row + 1 for row, cell in enumerate(cells.tolist())}
    found = long_run_maps.expected_tables(cells, 48)
    around = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
    sites, table = found["3x3x3"]
    assert sites.tolist() == sorted(cells.tolist())
    for (b, x, y, z), row in zip(sites.tolist(), table.tolist()):
        assert row == [number.get((b, x + i, y + j, z + k), 0) for i, j, k in around]
    sites, table = found["3x3x3 with stride 2"]
    reached = {(b, (x - i) // 2, (y - j) // 2, (z - k) // 2) for b, x, y, z in number for i, j, k in around
               if (x - i) % 2 == (y - j) % 2 == (z - k) % 2 == 0 and min(x - i, y - j, z - k) >= 0}  # fmt: skip
    assert [tuple(site) for site in sites.tolist()] == sorted(reached)
    for (b, x, y, z), row in zip(sites.tolist(), table.tolist()):
        assert row == [number.get((b, 2 * x + i, 2 * y + j, 2 * z + k), 0) for i, j, k in around]
    sites, table = found["back from cells of two"]
    largest: dict[Any, int] = {}
    for (b, x, y, z), value in number.items():
        cell = (b, x // 2, y // 2, z // 2)
        largest[cell] = max(value, largest.get(cell, 0))
    for (b, x, y, z), row in zip(sites.tolist(), table.tolist()):
        assert row[x % 2 * 4 + y % 2 * 2 + z % 2] == largest[(b, x // 2, y // 2, z // 2)] == sum(row)
    for (b, x, y, z), row in zip(*(part.tolist() for part in found["2x2x2 with stride 2"])):
        assert max(row) == largest[(b, x, y, z)]
