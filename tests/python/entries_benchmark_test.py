"""The benchmark of time against entries: its sizes, its slope, its graphs, and that it runs on a CPU."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys

import pytest
import torch

SCRIPT = pathlib.Path(__file__).parents[2] / "benchmarks/python/entries.py"
if not SCRIPT.exists():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


def benchmark():  # noqa: ANN201
    spec = importlib.util.spec_from_file_location("entries_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sizes_and_the_slope_through_times() -> None:
    module = benchmark()
    assert module.sizes(1e6, 5e8) == [step * 10**power for power in (6, 7, 8) for step in (1, 2, 5)]
    assert module.sizes(15, 99) == [20, 50]
    entries = [10, 100, 1000]
    assert module.exponent(entries, [2.0 * count**1.5 for count in entries]) == pytest.approx(1.5)
    assert module.exponent(entries, [3.0, 3.0, 3.0]) == pytest.approx(0)


def test_graphs_have_degrees_of_a_power_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `power_law_edges` has them, which `neighbours_test.py` compares with the graphs of the tables."""
    from pumice.data import power_law_edges

    module = benchmark()
    monkeypatch.setattr(module, "PART", 7777)
    nodes, entries = 20_000, 300_000
    found, expected = module.power_law(nodes, entries, torch.device("cpu")), power_law_edges(nodes, entries)
    assert found.shape == (2, entries) and int(found.min()) >= 0 and int(found.max()) < nodes
    for side in range(2):
        ours, theirs = (torch.bincount(edges[side].long(), minlength=nodes).sort(descending=True).values for edges in (found, expected))
        for place in (100, 1000, 5000):
            assert float(ours[place]) == pytest.approx(float(theirs[place]), rel=0.25)


def test_it_prints_an_exponent_for_each_call() -> None:
    command = [sys.executable, str(SCRIPT), "--device=cpu", "--smallest=1e3", "--largest=5e3", "--channels=3", "--passes=1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in said[1:4]] == ["1,000", "2,000", "5,000"]
    slopes = [line.split(":")[0] for line in said[4:]]
    assert slopes == ["spmm", "spmm with values", "sddmm", "making the graph"]
    refused = subprocess.run([*command, "--largest=1e3"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "fewer than two sizes" in refused.stderr
