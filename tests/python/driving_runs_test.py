"""What a run of the driving benchmarks compares before it measures, and how records grow, end in time and are kept."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest
import torch
from driving_test import NOTHING, ROOT, SCRIPT, TINY, measured, named, run

import pumice

from driving_suite import cases, inputs, ours, program, report, workloads  # isort: skip; found by driving_test
from driving_suite.records import Record  # isort: skip


def run_here(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """In this process, so that parts of it can be replaced."""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *TINY, *words])
    spec = importlib.util.spec_from_file_location("driving_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main()


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_compiled_models_are_compared_with_eager_ones(factor: float, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(net):
        def call(coords, features, **declared):
            y = net(pumice.SparseTensor(coords, features, **declared))
            return y.replace(features=y.features * factor)

        call.bytes = 0
        return call

    compile_step = pumice.compile_step

    def with_other_rates(net, loss, optimizer, **options):
        optimizer.param_groups[0]["lr"] *= 1 if factor == 1 else 1e3
        return compile_step(net, loss, optimizer, **options)

    monkeypatch.setattr(pumice, "compile", compiled)
    monkeypatch.setattr(pumice, "compile_step", with_other_rates)
    words = ["--workload", "SK-M-0.5x", "--way", "half", "--norms", "folded", "--peer", "none", "--scans=1", "--no-program"]
    assert run_here(monkeypatch, *words, "--out", str(tmp_path)) == 0
    record = Record.read(tmp_path / "driving.json")
    outputs, steps = record.agreement
    assert outputs["types"] == "half precision" and steps["types"].startswith("half, of the losses of ")
    found = {(row.task, row.way) for row in record.rows if row.library == "Pumice, compiled"}
    reasons = {one["task"]: one["reason"] for one in record.left_out if one["library"] == "Pumice, compiled"}
    if factor == 1:
        assert outputs["difference"] == steps["difference"] == 0 and found == {("inference", "half"), ("training step", "half")}, reasons
    else:
        assert outputs["difference"] == pytest.approx(1 / 3, rel=0.02) and steps["difference"] > 0.03 and not found
        assert reasons["inference"] == "its outputs in half precision differ by 3.3e-01 of the largest"
        assert "of the losses of" in reasons["training step"]


@pytest.mark.parametrize("way, scale", [("half", 64.0), ("f32", 1.0)])
@pytest.mark.parametrize("name", ["SK-M-0.5x", "WM-C-1f"])
def test_compiled_steps_train_as_those_by_hand(name: str, way: str, scale: float) -> None:
    work = workloads.slim(named(name))
    clouds, _ = inputs.scans_of(work, NOTHING, 2, 0)
    batches = [inputs.batch_of(work, [cloud], True, 0, torch.device("cpu")) for cloud in clouds]
    job = cases.Job(work, [way], ["training step"], ["folded"], batches, batches, workloads.network(work).state_dict())
    by_hand, _ = cases.losses_of(ours.Pumice(), job, way, 6)
    compiled, _ = cases.losses_of(ours.Compiled(), job, way, 6)
    torch.testing.assert_close(compiled, by_hand, rtol=1e-6, atol=0)
    net = workloads.network(work).train().to(torch.bfloat16 if way == "half" else torch.float32)
    y = net(ours.Pumice().tensor(batches[0].voxels, batches[0].features.to(next(net.parameters()).dtype))).features.float()
    if work.classes:
        expected = torch.nn.functional.cross_entropy(y, batches[0].labels)
    else:
        expected = y.square().sum() / (128 * len(batches[0].labels))
    assert float(by_hand[0]) == pytest.approx(scale * float(expected.detach()), rel=1e-5)
    (passes,) = [case.passes for case in cases.cases_of(ours.Compiled(), job)[0]]
    assert passes.run.graph_bytes() == 0  # on a CPU; a step that reports none would leave its graphs out of peak memory


def test_a_run_adds_to_the_record_of_another(tmp_path: pathlib.Path) -> None:
    words = ["--workload", "SK-M-0.5x", "--task", "inference", "--peer", "none", "--commit", "abc"]
    first = measured(*words, "--way", "half", "--norms", "folded", "--budget-s", "1e-9", out=tmp_path)
    (nothing,) = first.left_out
    assert first.rows == [] and (nothing["library"], nothing["way"]) == ("everything", "half")
    assert nothing["reason"] == "the 1e-09 s of --budget-s were over"
    second = measured(*words, "--way", "half", "f32", "--norms", "folded", "--add", out=tmp_path)
    assert not [one for one in second.left_out if one["library"] == "everything"]
    third = measured(*words, "--way", "f32", "--norms", "identity", "folded", "--add", "--no-program", out=tmp_path)
    keys = [row.key for row in third.rows]
    assert len(set(keys)) == len(keys) and {row.way for row in third.rows} == {"half", "f32"}
    assert {row.key for row in second.rows} < set(keys)
    times = {row.key: row.ms for row in second.rows}
    again = ("SK-M-0.5x", "inference", "Pumice", "f32", "folded")
    kept = ("SK-M-0.5x", "inference", "Pumice", "half", "folded")
    now = {row.key: row.ms for row in third.rows}
    assert now[kept] == times[kept] and now[again] != times[again]
    assert [earlier["settings"]["way"] for earlier in third.header["earlier_runs"]] == [["half"], ["half", "f32"]]
    assert str(tmp_path) not in (tmp_path / "driving.json").read_text()
    assert third.header["earlier_runs"][1]["date"] in (tmp_path / "driving.html").read_text()
    words[-1] = "def"
    done = run(*words, "--add", f"--out={tmp_path}")
    assert done.returncode == 1 and "the record's commit is abc and this run's def" in done.stderr
    assert run(*words, "--add", f"--out={tmp_path / 'none'}").returncode == 1 and run("--add").returncode == 2


def test_rounds_end_with_the_time_of_a_workload(tmp_path: pathlib.Path) -> None:
    words = ["--task", "inference", "--way", "f32", "--peer", "spconv", "--norms", "folded", "--rounds=1000", "--budget-s", "5"]
    record = measured("--workload", "SK-M-0.5x", "SK-M-1x", *words, "--no-program", out=tmp_path)
    assert {row.workload for row in record.rows} == {"SK-M-0.5x", "SK-M-1x"}
    assert all(1 <= row.rounds < 1000 for row in record.rows)


def check_record(folder: pathlib.Path) -> Record:
    """The table and the page of a folder are those of its record."""
    record = Record.read(folder / "driving.json")
    assert (folder / "driving.csv").read_text() == record.to_csv()
    assert (folder / "driving.html").read_text() == report.page(record)
    return record


def test_records_that_are_kept_are_whole(tmp_path: pathlib.Path) -> None:
    check_one = measured("--workload", "WM-C-1f", "--task", "inference", "--way", "f32", "--peer=none", out=tmp_path)
    assert check_record(tmp_path).rows == check_one.rows
    for path in sorted((ROOT / "benchmarks/records").glob("*/driving.json")):
        record = check_record(path.parent)
        assert record.header["settings"]["size"] == "full" and record.header["driver"], path
        assert record.header["commit"].isalnum(), f"{path}: of a tree with changes"


def test_the_program_says_why_it_has_no_figures(tmp_path: pathlib.Path) -> None:
    where = torch.device("cpu")
    rows = program.rows_of("WM-C-1f", ["autocast", "half", "tf32"], where, True, 0, 2, 1)
    assert [(row.task, row.way, row.rounds) for row in rows] == [("inference", "half", 2), ("inference, maps kept", "half", 2)]
    assert program.rows_of("WM-C-1f", ["autocast", "tf32"], where, True, 0, 2, 1) == []
    with pytest.raises(program.Refused, match="no workload|unknown|WM"):
        program.rows_of("WM", ["f32"], where, True, 0, 1, 1)
    with pytest.raises(program.Refused, match="it took more than 0 s"):
        program.rows_of("WM-C-1f", ["f32"], where, True, 0, 1, 1, seconds=1e-3)
    with pytest.raises(program.Refused, match="absent does not run: No such file"):
        program.rows_of("WM-C-1f", ["f32"], where, True, 0, 1, 1, program=tmp_path / "absent")
