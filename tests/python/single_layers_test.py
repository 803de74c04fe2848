"""Single layers beside other libraries on tiny inputs, with stand-ins for these."""

from __future__ import annotations

import json
import math
import pathlib
import subprocess
import sys
import time
import types

import pytest
import torch
from driving_test import ROOT, SHIMS, surroundings

import driving_stand_ins  # isort: skip; found by driving_test
import single_layers  # isort: skip
from adapters import Absent, Voxels, look_for  # isort: skip
from adapters.torchsparse_adapter import SAMPLES, TorchSparse  # isort: skip
from driving_suite import remote  # isort: skip

SCRIPT = ROOT / "benchmarks/peers/single_layers.py"


def run(*words: str, paths: tuple[pathlib.Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    tiny = ["--size=tiny", "--device=cpu", "--rounds=2", "--passes=1"]
    environment = surroundings(*paths, PUMICE_PLANS="off", PUMICE_DATA="", OMP_NUM_THREADS="1")
    return subprocess.run([sys.executable, str(SCRIPT), *tiny, *words], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("resolution", [3, 8, 33, 64])
def test_shells_hold_the_cells_below_the_surface_of_a_ball(resolution: int) -> None:
    made = single_layers.shell(resolution, torch.device("cpu"))
    expected = []
    for x in range(resolution):
        for y in range(resolution):
            for z in range(resolution):
                radius = math.dist((x + 0.5, y + 0.5, z + 0.5), [resolution / 2] * 3)
                if resolution / 2 - 1.25 < radius < resolution / 2:
                    expected.append([0, x, y, z])
    assert made.cells.tolist() == expected and made.spatial_shape == [resolution] * 3 and made.batch_size == 1
    assert made.cells.dtype == torch.int32


def test_layers_of_peers_are_compared_and_measured(tmp_path: pathlib.Path) -> None:
    if not SHIMS.is_dir():
        pytest.skip("python/shims is not there: these are not the sources")
    driving_stand_ins.write(tmp_path / "stand_ins")
    paths = (tmp_path / "stand_ins", *(SHIMS / name for name in ("spconv", "torchsparse", "MinkowskiEngine")))
    words = ["--channels", "8", "--shell", "8:16", "--record", str(tmp_path / "layers.json")]
    done = run(*words, paths=paths)
    assert done.returncode == 0, done.stderr
    record = single_layers.Record.read(tmp_path / "layers.json")
    all_of_them = ["spconv", "TorchSparse++", "spconv-triton", "WarpConvNet", "MinkowskiEngine", "FlexGEMM"]
    assert [one["library"] for one in record.agreement] == all_of_them * 2
    assert max(one["difference"] for one in record.agreement) < 1e-5
    found = {(row.input, row.library, row.task) for row in record.rows}
    for name, channels in (("simulated street", 8), ("shell of 8", 16)):
        for library in ("Pumice", *all_of_them):
            tasks = {f"3x3x3 layer of {channels}, {what}" for what in ("forward", "forward and backward")}
            got = {task for where, who, task in found if (where, who) == (name, library)}
            assert got == (set() if library == "MinkowskiEngine" else tasks), library
    assert {row.voxels for row in record.rows if row.input == "shell of 8"} == {len(single_layers.shell(8, torch.device("cpu")).cells)}
    assert all(row.rounds == 2 and 0 < row.low_ms <= row.ms <= row.high_ms for row in record.rows)
    left = {one["library"]: one["reason"] for one in record.left_out}
    assert left == {"MinkowskiEngine": "MinkowskiEngine computes in float32 alone"}
    assert str(tmp_path) not in json.dumps(record.header)
    assert done.stdout.count("| FlexGEMM |") == 4


def test_a_layer_that_computes_something_else_is_not_measured(tmp_path: pathlib.Path) -> None:
    driving_stand_ins.write(tmp_path)
    file = tmp_path / "flex_gemm/ops/spconv.py"
    file.write_text(file.read_text().replace('return y, "map"', 'return 1.01 * y, "map"'))
    words = ["--channels", "--shell", "8:8", "--peer", "flexgemm", "torchsparse", "--seconds=1e-9"]
    words += ["--record", str(tmp_path / "layers.json")]
    done = run(*words, paths=(tmp_path,))
    assert done.returncode == 0, done.stderr
    record = single_layers.Record.read(tmp_path / "layers.json")
    assert {(row.library, row.rounds) for row in record.rows} == {("Pumice", 1)}
    reasons = {one["library"]: one["reason"] for one in record.left_out}
    assert reasons["FlexGEMM"].startswith("its outputs in float32 differ by") and record.agreement[0]["difference"] > 1e-3
    assert reasons["TorchSparse++"] == "torchsparse is left out: there is no package torchsparse"
    for wrong in (["--shell", "8"], ["--shell", "2:8"], ["--shell", "8:x"], ["--rounds", "0"], ["--channels", "x"]):
        assert run(*wrong).returncode == 2, wrong


def test_packages_that_are_not_there_start_no_process() -> None:
    assert look_for("flexgemm").layers_only
    for name in ("warpconvnet", "minkowski"):
        with pytest.raises(Absent, match=f"{name} is left out: there is no package"):
            look_for(name)


def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SECONDS_BEYOND", 0.2)
    child = object.__new__(remote.Child)
    child.name, child.until = "sleeper", time.monotonic()
    child.folder = types.SimpleNamespace(cleanup=lambda: None)
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    child.process = subprocess.Popen(sleeps, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with pytest.raises(remote.Ended, match="sleeper: no answer to “version” within 0 s"):
        child.version()
    assert child.process.poll() == -9
    child.close()


def test_torchsparse_is_tuned_once_for_each_task_on_all_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def tune(model, data_loader, **options):
        asked.append((list(data_loader), options))
        for layer in model.modules():
            if hasattr(layer, "kernel_extent"):
                layer._config = f"best of {len(asked)}"

    package = types.ModuleType("torchsparse.utils.tune")
    package.tune = tune
    for name in ("torchsparse", "torchsparse.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, package.__name__, package)
    library = object.__new__(TorchSparse)
    library.tuned = {}
    library.functions = types.SimpleNamespace(Dataflow=types.SimpleNamespace(ImplicitGEMM="gemm", FetchOnDemand="fetch"))
    library.tensor = lambda voxels, features: (voxels, features)
    values = types.SimpleNamespace(is_cuda=True, half=lambda: "half")
    scans = [(Voxels(torch.zeros(1, 4), [1, 1, 1], 1), values) for _ in range(2)]

    def network(width: int) -> torch.nn.Module:
        net = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU())
        net[0].kernel_extent, net[0]._config = (3, 3, 3), None
        return net

    nets = [network(4), network(4), network(4), network(8)]
    for net, training in zip(nets, (False, False, True, False)):
        library.tune(net, scans, training)
    assert [net[0]._config for net in nets] == ["best of 1", "best of 1", "best of 2", "best of 3"]
    items, options = asked[0]
    assert [item[0] for item in items] == [scan[0] for scan in scans] * (SAMPLES // 2) and options["n_samples"] == SAMPLES
    flows = [(options["dataflow_range"], options["tune_with_bwd"]) for _, options in asked]
    assert flows == [(["gemm", "fetch"], False), (["gemm"], True), (["gemm", "fetch"], False)]
    assert all(options["enable_fp16"] and options["force_retune"] for _, options in asked)
    assert next(nets[0].parameters()).dtype == torch.float32
