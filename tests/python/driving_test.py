"""The seven driving benchmarks on tiny inputs, with stand-ins for the libraries that are measured beside Pumice."""

from __future__ import annotations

import copy
import csv
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

import numpy as np
import pytest
import torch
from programs import SHIMS, surroundings

import pumice
from pumice._program import PROGRAM, program_environment

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks/driving.py"
if not SCRIPT.exists():
    pytest.skip("the benchmarks are not here", allow_module_level=True)
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks/peers"), str(pathlib.Path(__file__).parent)]

import driving_stand_ins  # noqa: E402
from adapters import Absent, open_library  # noqa: E402
from driving_suite import ablation, inputs, ours, records, report, work, workloads  # noqa: E402
from driving_suite.cases import WAYS, difference, output_of  # noqa: E402
from driving_suite.records import Record, Row  # noqa: E402

TINY = ["--size=tiny", "--device=cpu", "--rounds=1", "--passes=1", "--scans=2"]
COMPILES = hasattr(pumice, "compile")
OTHERS_OF_OURS = {"Pumice, compiled", "Pumice, C++ layers", "Pumice, C++ graph"}
NOTHING = inputs.Sources({}, "v1.0-mini", None)


def run(*words: str, paths: tuple[pathlib.Path, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {"PUMICE_PLANS": "off", "PUMICE_DATA": "", "OMP_NUM_THREADS": "1", **environment}
    command = [sys.executable, str(SCRIPT), *TINY, *words]
    return subprocess.run(command, env=surroundings(*paths, **environment), capture_output=True, text=True)


def measured(*words: str, out: pathlib.Path, **more) -> Record:
    done = run(*words, f"--out={out}", **more)
    assert done.returncode == 0, done.stderr
    return Record.read(out / "driving.json")


def named(name: str) -> workloads.Workload:
    return next(work for work in workloads.WORKLOADS if work.name == name)


def test_the_program_has_the_same_table() -> None:
    command = [str(PROGRAM), "bench", "driving", "--list", "--json"]
    said = subprocess.run(command, env=program_environment(), capture_output=True, text=True, check=True).stdout
    rows = json.loads(said)["workloads"]
    assert [row["name"] for row in rows] == list(workloads.NAMES)
    for row, work in zip(rows, workloads.WORKLOADS):
        mine = json.loads(json.dumps(dataclasses.asdict(work)))
        assert set(row) == set(mine)
        for key, value in mine.items():
            assert row[key] == (pytest.approx(value) if key in ("voxel", "range") and value else value), (work.name, key)


def test_workloads_are_those_published() -> None:
    """Widths and voxels as the artifact of the published comparison has them."""
    assert named("SK-M-1x").widths == (64, 64, 64, 128, 256, 256, 128, 64, 64)
    assert named("SK-M-0.5x").widths == (32, 32, 32, 64, 128, 128, 64, 32, 32)
    assert (named("NS-M-1f").classes, named("NS-M-1f").in_channels, named("SK-M-1x").in_channels) == (32, 6, 4)
    convolutions = [m for m in workloads.network(named("SK-M-1x")).modules() if isinstance(m, pumice.nn.Convolution)]
    assert sum(layer.window.volume > 1 for layer in convolutions) == 42
    encoder = [m for m in workloads.network(named("NS-C-10f")).modules() if isinstance(m, pumice.nn.Convolution)]
    assert len(encoder) == 21
    for name in ("NS-C-10f", "WM-C-1f", "WM-C-3f"):
        work = named(name)
        extents = np.subtract(work.range[3:], work.range[:3])
        assert np.round(extents / work.voxel).astype(int).tolist() == [*work.grid[:2], work.grid[2] - 1]


def test_scans_come_from_folders_then_files_then_streets(tmp_path: pathlib.Path) -> None:
    work = named("SK-M-1x")
    velodyne = tmp_path / "kitti/sequences/08/velodyne"
    velodyne.mkdir(parents=True)
    for i in range(5):
        np.full((3, 4), i, np.float32).tofile(velodyne / f"{i:06}.bin")
    lidar = tmp_path / "data/lidar/semantickitti"
    lidar.mkdir(parents=True)
    np.full((2, 4), 7, np.float32).tofile(lidar / "only.bin")
    both = inputs.Sources({"semantickitti": tmp_path / "kitti"}, "", tmp_path / "data")
    clouds, said = inputs.scans_of(work, both, 3, 0)
    assert [cloud.positions[0, 0] for cloud in clouds] == [0, 2, 4] and said == "semantickitti, 3 scans of a folder"
    clouds, said = inputs.scans_of(work, dataclasses.replace(both, folders={}), 2, 0)
    assert [len(cloud) for cloud in clouds] == [2, 2] and said == "only.bin"
    clouds, said = inputs.scans_of(named("NS-M-3f"), dataclasses.replace(both, folders={}), 1, 4)
    assert said == "simulated beams32, 3 sweeps"
    np.testing.assert_array_equal(clouds[0].positions, pumice.simulate(4, beams=32, sweeps=3).positions)
    street = pumice.simulate(4, sensor="waymo64")
    (cloud,), _ = inputs.scans_of(named("WM-C-1f"), NOTHING, 1, 4)
    np.testing.assert_allclose(cloud.positions[:, 2], street.positions[:, 2] + 2.18, atol=1e-5)
    frames = tmp_path / "waymo"
    frames.mkdir()
    for i in range(3):
        np.savez(frames / f"{i}.npz", points=np.ones((4, 4), np.float32), pose=np.eye(4))
    (cloud,), said = inputs.scans_of(named("WM-C-3f"), inputs.Sources({"waymo": frames}, "", None), 1, 0)
    assert len(cloud) == 4 and said == "waymo, 1 scan of a folder"


def test_voxels_above_the_limit_are_left_out_at_random() -> None:
    work = dataclasses.replace(named("NS-C-10f"), most_voxels=3000, sweeps=1)
    cloud = pumice.simulate(2, beams=32)
    everything, _ = inputs.voxels_of(dataclasses.replace(work, most_voxels=0), cloud, False, 1)
    cells, features = inputs.voxels_of(work, cloud, False, 1)
    assert len(cells) == len(features) == 3000 < len(everything)
    rows = {tuple(cell): row for row, cell in enumerate(everything)}
    kept = np.array([rows[tuple(cell)] for cell in cells])
    assert len(np.unique(kept)) == 3000
    expected = len(everything) / 2
    assert abs(kept.mean() - expected) < 5 * len(everything) / (12 * 3000) ** 0.5
    again, _ = inputs.voxels_of(work, cloud, False, 1)
    other, _ = inputs.voxels_of(work, cloud, False, 2)
    assert np.array_equal(again, cells) and not np.array_equal(other, cells)


def test_columns_are_x_y_z_intensity_ring_time() -> None:
    cloud = pumice.PointCloud(
        np.ones((2, 3), np.float32), np.full(2, 0.5, np.float32), None, np.array([0.1, 0], np.float32), np.array([3, 9], np.int32)
    )
    assert inputs.columns_of(cloud, 6).tolist() == [[1, 1, 1, 0.5, 3, pytest.approx(0.1)], [1, 1, 1, 0.5, 9, 0]]
    bare = pumice.PointCloud(np.ones((2, 3), np.float32))
    assert inputs.columns_of(bare, 6).tolist() == [[1, 1, 1, 0, 0, 0]] * 2
    assert inputs.columns_of(bare, 4).shape == (2, 4)


def test_a_scan_elsewhere_is_refused() -> None:
    far = pumice.PointCloud(np.full((3, 3), 900, np.float32))
    with pytest.raises(pumice.UserError, match="WM-C-1f: no point"), pytest.warns(UserWarning):
        inputs.voxels_of(named("WM-C-1f"), far, False, 0)


def test_the_seven_are_measured_and_recorded(tmp_path: pathlib.Path) -> None:
    record = measured("--peer=none", "--way", "f32", "--scans=1", out=tmp_path)
    assert list(dict.fromkeys(row.workload for row in record.rows)) == list(workloads.NAMES)
    mine = [row for row in record.rows if row.library == "Pumice"]
    for name in workloads.NAMES:
        found = {(row.task, row.way, row.norms) for row in mine if row.workload == name}
        expected = {(task, "f32", "folded") for task in ("inference", "inference, maps kept", "training step")}
        assert found == expected | {("inference", "f32", "identity")}
    for row in record.rows:
        assert 0 < row.low_ms <= row.ms <= row.high_ms and 0 < row.host_ms <= row.ms and row.rounds == 1
        assert row.row_ms is None if "C++" in row.library else row.row_ms > 0
        assert row.voxels > 0 and row.input.startswith("simulated")
        assert (row.busy_ms, row.peak_mib, row.energy_mj) == (None, None, None)  # of a GPU
    assert set(record.header) >= {"date", "commit", "device", "driver", "cuda", "versions", "settings", "energy"}
    assert record.header["versions"]["torch"] == torch.__version__ and "no GPU" in record.header["energy"]
    left_out = {one["library"]: one["reason"] for one in record.left_out}
    assert ("Pumice, compiled" in left_out) or COMPILES
    for name in workloads.NAMES:
        made = {(row.task, row.way, row.norms) for row in record.rows if row.library == "Pumice, C++ layers" and row.workload == name}
        assert made == {("inference", "f32", "folded"), ("inference, maps kept", "f32", "folded")}
        compiled = {row.task for row in record.rows if row.library == "Pumice, compiled" and row.workload == name}
        assert compiled == ({"inference", "training step"} if COMPILES else set())
    table = list(csv.DictReader((tmp_path / "driving.csv").read_text().splitlines()))
    assert len(table) == len(record.rows) and float(table[0]["ms"]) == record.rows[0].ms
    page = (tmp_path / "driving.html").read_text()
    assert "no figures of the benchmarks" in page and "<script" not in page
    assert page.count("http") == page.count("http://www.w3.org/2000/svg")  # nothing is loaded
    drawn = [xml.fromstring(f"<svg{part.split('</svg>')[0]}</svg>") for part in page.split("<svg")[1:]]
    bars = [bar for chart in drawn for bar in chart.iter() if bar.tag.endswith("rect") and len(bar)]
    drawn_rows = [row for row in record.rows if row.way in ("half", "autocast") and row.norms == "folded" and "kept" not in row.task]
    assert len(bars) == len(drawn_rows)  # none without pumice.compile: the charts are of half precision


def test_a_page_is_drawn_again_from_its_record(tmp_path: pathlib.Path) -> None:
    record = Record({**HEADER, "settings": {}}, [a_row(), a_row(library="spconv <2>", ms=4.0)])
    (tmp_path / "kept.json").write_text(record.to_json())
    done = run("--draw", str(tmp_path / "kept.json"), "--out", str(tmp_path / "page"))
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["driving.html"]
    page = (tmp_path / "page/driving.html").read_text()
    assert "geometric mean layer by layer 2.00" in page and "spconv &lt;2&gt;" in page and "<2>" not in page
    (tmp_path / "kept.json").write_text("{}")
    refused = run("--draw", str(tmp_path / "kept.json"), "--out", str(tmp_path / "page"))
    assert refused.returncode == 1 and "kept.json is no record" in refused.stderr
    assert run("--draw", str(tmp_path / "kept.json")).returncode == 2


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, ...]:
    if not SHIMS.is_dir():
        pytest.skip("python/shims is not there: these are not the sources")
    folder = tmp_path_factory.mktemp("stand_ins")
    driving_stand_ins.write(folder)
    return (folder, *(SHIMS / name for name in ("spconv", "torchsparse", "MinkowskiEngine")))


SEGMENTING = ["spconv", "TorchSparse++", "spconv-triton", "WarpConvNet", "MinkowskiEngine"]


def test_peers_get_the_same_weights_and_are_measured(tmp_path: pathlib.Path, stand_ins: tuple[pathlib.Path, ...]) -> None:
    words = ["--workload", "SK-M-0.5x", "--way", "autocast", "--norms", "folded", "--layers", "8"]
    record = measured(*words, out=tmp_path, paths=stand_ins)
    apart = {one["library"]: one["difference"] for one in record.agreement if one["types"] == "float32"}
    assert list(apart) == [*SEGMENTING, "FlexGEMM"] and max(apart.values()) < 1e-5
    measured_of = {name: {(row.task, row.way) for row in record.rows if row.library == name} for name in apart}
    for name in SEGMENTING[:-1]:
        for task in ("inference", "training step"):
            assert {(task, "autocast"), (task, "half")} <= measured_of[name], name
        assert (("inference, maps kept", "half") in measured_of[name]) == (name in ("TorchSparse++", "WarpConvNet"))
    assert {way for task, way in measured_of["MinkowskiEngine"] if "layer" not in task} == {"f32"}
    layers = {(f"3x3x3 layer of 8, {what}", "half") for what in ("forward", "forward and backward")}
    assert measured_of["FlexGEMM"] == layers and layers <= measured_of["spconv"]
    assert set(records.ratios(record.rows, "inference")) == set(records.ratios(record.rows, "training step")) == {"SK-M-0.5x"}
    assert "fastest peer" in (tmp_path / "driving.html").read_text()


def test_peers_that_make_other_sites_are_left_out_of_centerpoint(tmp_path: pathlib.Path, stand_ins: tuple[pathlib.Path, ...]) -> None:
    words = ["--workload", "WM-C-1f", "--task", "inference", "--way", "half", "--norms", "folded"]
    record = measured(*words, out=tmp_path, paths=stand_ins)
    apart = {one["library"]: one["difference"] for one in record.agreement if one["types"] == "float32"}
    assert list(apart) == ["spconv", "TorchSparse++", "spconv-triton"] and max(apart.values()) < 1e-5
    reasons = {one["library"]: one["reason"] for one in record.left_out if not one["task"]}
    for name in ("warpconvnet", "minkowski"):
        assert "computes something else" in reasons[name]
    assert "--layers measures them" in reasons["flexgemm"]


def test_a_peer_that_computes_something_else_is_not_measured(tmp_path: pathlib.Path, stand_ins: tuple[pathlib.Path, ...]) -> None:
    package = tmp_path / "wrong/spconv_triton"
    package.mkdir(parents=True)
    wrong = driving_stand_ins.SPCONV_TRITON + (
        "class Wrong(spconv.SubMConv3d):\n"
        "    def forward(self, x):\n"
        "        y = super().forward(x)\n"
        "        return y.replace_feature(y.features * 1.01)\n"
        "pytorch.SubMConv3d = Wrong\n"
    )
    (package / "__init__.py").write_text(wrong)
    words = ["--workload", "WM-C-1f", "--task", "inference", "--way", "f32", "--peer", "spconv-triton"]
    record = measured(*words, out=tmp_path, paths=(tmp_path / "wrong", *stand_ins))
    (reason,) = [one["reason"] for one in record.left_out if one["library"] == "spconv-triton"]
    (agreement,) = [one for one in record.agreement if one["library"] == "spconv-triton"]
    assert "outputs in float32 differ by" in reason and agreement["difference"] > 1e-3
    assert {row.library for row in record.rows} - OTHERS_OF_OURS == {"Pumice"}


def test_a_peer_whose_process_dies_leaves_the_others(tmp_path: pathlib.Path, stand_ins: tuple[pathlib.Path, ...]) -> None:
    """At its first training step; what was measured of it before is not kept, since its rounds never ended."""
    package = tmp_path / "dying/torchsparse"
    package.mkdir(parents=True)
    shutil.copy(SHIMS / "torchsparse/torchsparse/__init__.py", package / "__init__.py")
    with open(package / "__init__.py", "a") as file:
        file.write(
            "import os, torch\n"
            "def die(self, *given, **named):\n"
            "    os.kill(os.getpid(), 6)\n"
            "torch.optim.SGD.step = die\n"
            "print('said to nobody')\n"
        )
    words = ["--workload", "SK-M-0.5x", "--way", "autocast", "--norms", "folded", "--peer", "torchsparse", "spconv"]
    record = measured(*words, out=tmp_path, paths=(tmp_path / "dying", *stand_ins))
    reasons = [one["reason"] for one in record.left_out if one["library"] == "TorchSparse++"]
    assert any("ended with signal 6" in reason for reason in reasons)
    assert {row.library for row in record.rows} - OTHERS_OF_OURS == {"Pumice", "spconv"}
    assert {row.task for row in record.rows if row.library == "spconv"} == {"inference", "training step"}


def test_libraries_that_are_not_there_are_named() -> None:
    with pytest.raises(Absent, match="flexgemm is left out: import fails with ModuleNotFoundError: No module named 'flex_gemm'"):
        open_library("flexgemm")


def test_ablation_measures_what_can_be_switched_off(tmp_path: pathlib.Path) -> None:
    words = ["--workload", "WM-C-1f", "--task", "inference", "--way", "autocast", "--ablation", "--tune-seconds", "1"]
    record = measured(*words, out=tmp_path, PUMICE_PLANS=str(tmp_path / "plans.sqlite"))
    libraries = {row.library for row in record.rows}
    flows = {f"Pumice, {flow} alone" for flow in ("implicit_gemm", "fetch_on_demand", "gather_gemm_scatter")}
    assert libraries >= flows | {"Pumice", "Pumice, without fusion"}
    too_short = any(one["library"] == "Pumice, tuned" and "--tune-seconds" in one["reason"] for one in record.left_out)
    for tuned in ("Pumice, tuned", *(["Pumice, compiled, tuned"] if COMPILES else [])):
        assert (tuned in libraries) != too_short, [one["reason"] for one in record.left_out]
    if COMPILES:
        assert libraries >= {"Pumice, compiled, without graph", "Pumice, compiled, implicit_gemm alone"}
    reasons = {one["library"]: one["reason"] for one in record.left_out}
    assert "no switch" in reasons["Pumice, without groups"] and "no switch" in reasons["Pumice, without planner"]
    assert "no layer's offsets are cut into parts" in reasons["Pumice, without splits"]  # what is so on a CPU
    counted = {row.gflop for row in record.rows}
    assert len(counted) == 1 and 0 < counted.pop() < 10  # one network on one scan, whoever runs it
    page = (tmp_path / "driving.html").read_text()
    assert "inference: time with one thing changed over time without that change" in page
    assert "Pumice, without fusion, autocast / Pumice<" in page


def test_rows_of_the_ablation_are_compared_with_what_differs_in_one_thing() -> None:
    base = {name: ablation.base_of(name) for name in (
        "Pumice", "Pumice, compiled", "spconv", "Pumice, without fusion", "Pumice, fetch_on_demand alone", "Pumice, compiled, without graph",
        "Pumice, compiled, implicit_gemm alone", "Pumice, compiled, fetch_on_demand alone", "Pumice, C++ graph, without groups",
        "Pumice, C++ graph, fetch_on_demand alone", "Pumice, compiled, tuned",
    )}  # fmt: skip
    assert list(base.values()) == [
        None, None, None, "Pumice", "Pumice, without fusion", "Pumice, compiled", "Pumice, compiled",
        "Pumice, compiled, implicit_gemm alone", "Pumice, C++ graph", "Pumice, C++ graph", "Pumice, compiled",
    ]  # fmt: skip
    rows = [a_row(ms=2.0), a_row(ms=3.0, library="Pumice, without fusion"), a_row(ms=5.0, library="Pumice, tuned", way="autocast")]
    assert ablation.effects(rows, "inference") == {"SK-M-1x": [("Pumice, without fusion, half / Pumice", 1.5)]}
    assert ablation.effects(rows, "training step") == {}


def test_plans_without_splits_take_the_place_of_those_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU no plan is cut into parts, so that some are said to be."""
    x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
    net = pumice.nn.Sequential(pumice.nn.SubMConv3d(4, 8, 3), pumice.nn.ReLU(), pumice.nn.SubMConv3d(8, 8, 3)).train()
    whole, other = pumice.Plan('{"dataflow":"fetch_on_demand"}'), pumice.Plan('{"dataflow":"gather_gemm_scatter"}')
    cut = pumice.Plan('{"dataflow":"implicit_gemm","splits":3}')
    assert [ablation.splits_of(plan) for plan in (whole, cut)] == [1, 3]
    directions = ("forward", "input_gradient")
    monkeypatch.setattr(ablation.ops, "plan_of", lambda rows, weight, map, direction, groups: cut if rows.shape[1] == 8 else whole)
    monkeypatch.setattr(ablation.ops, "candidates", lambda rows, weight, map, direction, groups: [(cut, 1.0), (other, 1.1), (whole, 1.2)])
    assert ablation.give_unsplit_plans(net, x, torch.float32, directions) == 1
    assert net[0].plan is None and net[2].plan == {"forward": other, "input_gradient": other} and net.training
    monkeypatch.setattr(ablation.ops, "candidates", lambda *_: [(cut, 1.0)])
    with pytest.raises(Absent, match="the forward of a layer of 8 > 8 channels has no plan without splits"):
        ablation.give_unsplit_plans(net, x, torch.float32, directions)


@pytest.mark.parametrize("name", ["SK-M-0.5x", "NS-C-10f"])
def test_what_is_switched_off_changes_no_result(name: str) -> None:
    work = workloads.slim(named(name))
    clouds, _ = inputs.scans_of(work, NOTHING, 1, 0)
    batch = inputs.batch_of(work, clouds, True, 0, torch.device("cpu"))
    from driving_suite.cases import Job

    job = Job(work, [], [], [], [batch], [], workloads.network(work).state_dict())
    wanted = output_of(ours.Pumice(), job, "folded")
    for library in ablation.ablation(torch.float32):
        if hasattr(library, "options"):  # a graph, which on a CPU are the same layers
            continue
        assert difference(output_of(library, job, "folded"), wanted) < 1e-5, library.name
    # Identity norms change nothing here: new norms have mean 0 and variance 1, so that only eps is left out.
    assert 0 < difference(output_of(ours.Pumice(), job, "identity"), wanted) < 0.1


def test_outputs_are_compared_site_by_site() -> None:
    values, sites = torch.randn(5, 3), torch.tensor([[0, 1, 2, i] for i in range(5)])
    order = torch.tensor([3, 0, 4, 2, 1])
    assert difference((values, sites), (values[order], sites[order])) == 0
    assert difference((values, None), (values[order], None)) > 0
    assert difference((values, sites), (values[order], None)) == 0  # by ascending channels
    assert difference((values, sites), (values, sites + 1)) == float("inf")
    assert difference((values, sites), (values[:4], sites[:4])) == float("inf")
    assert difference((values, None), (values * 1.5, None)) == pytest.approx(1 / 3)


HEADER = {"date": "d", "commit": "c", "device": "g", "driver": "1", "cuda": "2", "threads": 1, "versions": {}, "settings": {}, "energy": ""}


def a_row(**changed: object) -> Row:
    given = {"workload": "SK-M-1x", "input": "scan", "voxels": 9, "task": "inference", "library": "Pumice", "way": "half",
             "norms": "folded", "ms": 2.0, "low_ms": 1.5, "high_ms": 2.5, "host_ms": 1.0, "row_ms": 1.8, "busy_ms": 1.0,
             "peak_mib": 10.0, "energy_mj": 5.0, "rounds": 6}  # fmt: skip
    return Row(**{**given, **changed})


def test_ratios_take_the_faster_way_of_the_fastest_peer() -> None:
    rows = [
        a_row(ms=2.0), a_row(ms=3.0, way="autocast"), a_row(ms=1.0, way="f32"), a_row(ms=0.5, library="Pumice, compiled"),
        a_row(ms=0.1, norms="identity"), a_row(ms=9.0, library="a"), a_row(ms=6.0, library="a", way="autocast"),
        a_row(ms=8.0, library="b"), a_row(ms=0.1, library="b", way="f32"), a_row(ms=5.0, library="b", workload="other"),
    ]  # fmt: skip
    assert records.ratios(rows, "inference") == {"SK-M-1x": 3.0}
    assert records.ratios(rows, "inference", "Pumice, compiled") == {"SK-M-1x": 12.0}
    assert records.ratios(rows, "training step") == {}
    assert records.geometric_mean([2.0, 8.0]) == pytest.approx(4)


def test_changes_are_relative_to_a_peer_where_there_is_one() -> None:
    then = Record(HEADER, [a_row(ms=2.0), a_row(library="a", ms=10.0), a_row(task="training step", ms=4.0)])
    now = Record(HEADER, [a_row(ms=3.0), a_row(library="a", ms=12.0), a_row(task="training step", ms=5.0)])
    first, second = records.changes(now, then)
    assert (first.ratio, first.against) == (pytest.approx(3 / 2 / 1.2), "a")
    assert (second.ratio, second.against) == (pytest.approx(1.25), "")
    with pytest.raises(ValueError, match="other GPU"):
        records.changes(Record({**HEADER, "device": "other GPU"}, now.rows), then)
    with pytest.raises(ValueError, match="nothing to compare"):
        records.changes(Record(HEADER, [a_row(way="f32")]), then)


def test_a_slower_run_ends_with_a_status_of_its_own(tmp_path: pathlib.Path) -> None:
    words = ["--workload", "WM-C-1f", "--task", "inference", "--way", "f32", "--peer=none", "--norms", "folded"]
    record = measured(*words, out=tmp_path)
    kept = tmp_path / "kept.json"
    faster, slower = copy.deepcopy(record), copy.deepcopy(record)
    for row in faster.rows:
        row.ms /= 1000
    for row in slower.rows:
        row.ms *= 1000
    kept.write_text(faster.to_json())
    done = run(*words, "--compare", str(kept))
    assert done.returncode == 3 and "slower: WM-C-1f, inference, Pumice, f32, folded" in done.stdout, done.stderr
    kept.write_text(slower.to_json())
    done = run(*words, "--compare", str(kept))
    assert done.returncode == 0 and "rows within 1.1 times the record's" in done.stdout, done.stderr
    slower.header["device"] = "another one"
    kept.write_text(slower.to_json())
    done = run(*words, "--compare", str(kept))
    assert done.returncode == 1 and "times do not compare" in done.stderr
    done = run(*words, "--compare", str(tmp_path / "absent.json"))
    assert done.returncode == 1 and "absent.json" in done.stderr and "WM-C-1f" not in done.stdout


NVML = """
static unsigned long long used = 1000;
int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) { const char* v = "580.1"; while ((*text++ = *v++)); return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) { *device = &used; return uuid[0] == 'G' && uuid[4] == 'a' ? 0 : 6; }
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* value) {
  *value = (*(unsigned long long*)device += 50);
  return 0;
}
"""
ASKS = """
from driving_suite.energy import Meter
meter = Meter("abc")
print(meter.refused, meter.driver, -meter.millijoules() + meter.millijoules())
print(Meter("other").refused)
"""


def test_energy_is_read_from_the_management_library(tmp_path: pathlib.Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to make a stand-in of NVIDIA's library with")
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "nvml.c"], check=True)
    search = os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    environment = surroundings(ROOT / "benchmarks", LD_LIBRARY_PATH=search)
    said = subprocess.run([sys.executable, "-c", ASKS], env=environment, capture_output=True, text=True, check=True).stdout
    first, second = said.splitlines()
    assert first == " 580.1 50"
    assert second.startswith("energy is not measured") and "GPU-other" in second and "returns 6" in second


def test_options_that_cannot_be_had_are_refused() -> None:
    assert "--rounds 0" in run("--rounds", "0").stderr
    assert "SK-M" in run("--workload", "SK-M").stderr
    if not torch.cuda.is_available():
        done = run("--device", "cuda")
        assert done.returncode == 1 and "needs a CUDA device" in done.stderr


def test_bars_are_as_long_as_their_values() -> None:
    drawn = xml.fromstring(report.bars("t", {"a": [("x", 1.0), ("y", 4.0)], "b": [("x", 2.0)]}, "ms"))
    widths = [float(bar.get("width")) for bar in drawn.iter() if bar.tag.endswith("rect") and len(bar)]
    assert widths == pytest.approx([widths[1] / 4, widths[1], widths[1] / 2], abs=0.06)
    assert report.bars("t", {}, "ms") == ""


def test_work_is_that_of_the_pairs_there_are() -> None:
    """Two neighbours and one alone: five pairs of a 3x3x3 layer, one of each row of a 1x1x1 layer."""
    cells = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4], [0, 9, 9, 9]])
    x = pumice.SparseTensor(cells, torch.ones(3, 4))
    net = pumice.nn.Sequential(
        pumice.nn.SubMConv3d(4, 8, 3, bias=False), pumice.nn.BatchNorm(8), pumice.nn.ReLU(), pumice.nn.SubMConv3d(8, 2, 1, bias=False)
    ).eval()  # fmt: skip
    layers = work.layers_of(net, x)
    assert [(one.pairs, one.rows_in, one.rows, one.channels_in, one.channels, one.weights) for one in layers] == [
        (5, 3, 3, 4, 8, 27 * 32), (0, 3, 3, 8, 8, 16), (3, 3, 3, 8, 2, 16),
    ]  # fmt: skip
    half = WAYS["half"]
    limits = work.Limits(half=1e9, tf32=5e8, f32=1e8, gathered=1e6, memory=1e7)
    found = work.work_of([layers], half, False, 900, limits)
    flop, gathered = (2 * 5 * 32, 2 * 3 * 16), (2 * 5 * 4, 2 * 3 * 8)
    moved = (2 * (3 * 4 + 3 * 8 + 27 * 32), 2 * (3 * 8 + 3 * 2 + 16))
    assert found.gflop == pytest.approx(sum(flop) / 1e9)
    assert found.gathered_mib == pytest.approx(sum(gathered) / 2**20) and found.moved_mib == pytest.approx(sum(moved) / 2**20)
    least = [max(f / 1e9, g / 1e6, m / 1e7) for f, g, m in zip(flop, gathered, moved)]
    assert found.least_ms == pytest.approx(1e3 * sum(least))
    assert work.work_of([layers], half, False, 900, None).least_ms is None
    assert work.peak_of(limits, WAYS["f32"]) == 1e8 and work.peak_of(limits, WAYS["tf32"]) == 5e8
    # The gradient of weights has the products of the forward pass again, and that of inputs too, but for the first layer.
    trained = work.work_of([layers, layers], half, True, 900, limits)
    assert trained.gflop == pytest.approx((2 * flop[0] + 3 * flop[1]) / 1e9)
    assert trained.gathered_mib * 2**20 == pytest.approx(gathered[0] + 2 * 5 * (4 + 8) + gathered[1] + 2 * 3 * 2 + 2 * 3 * (8 + 2))


def test_rows_have_their_share_of_the_least_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Record(HEADER, [a_row(), a_row(library="a", gflop=2.0, gathered_mib=3.0, moved_mib=4.0, least_ms=0.5, share=0.25)])
    assert given.to_csv().splitlines()[0].endswith("rounds,gflop,gathered_mib,moved_mib,least_ms,share")
    page = report.page(given)
    assert "<td>2.0</td><td>3</td><td>4</td><td>0.500</td><td>25 %</td>" in page and "no implementation leaves out" in page
    given.rows.pop()  # as records were before it was counted
    assert given.to_csv().splitlines()[0].endswith("rounds") and "least ms" not in report.page(given)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert work.limits_of(torch.device("cuda:0")).memory == 4.2e12 and work.limits_of(torch.device("cpu")) is None
