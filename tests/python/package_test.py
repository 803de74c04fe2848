"""The wheel: its tag, what it carries, and that it works in an environment with nothing else."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import venv
import zipfile

import pytest

import pumice


@pytest.fixture(scope="module")
def wheel() -> pathlib.Path:
    if "PUMICE_WHEEL" not in os.environ:
        pytest.skip("no wheel is named in PUMICE_WHEEL: tools/test_python.sh builds one")
    return pathlib.Path(os.environ["PUMICE_WHEEL"])


def test_one_wheel_for_every_python(wheel: pathlib.Path) -> None:
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version) == ("pumice", pumice.__version__)
    assert (python, abi) == ("cp310", "abi3")
    names = zipfile.ZipFile(wheel).namelist()
    assert "pumice/_C.abi3.so" in names
    assert any(name.startswith("pumice/lib/libtbb.so") for name in names)
    assert "pumice/nn/convolution.py" in names and "pumice/py.typed" in names


def test_carries_the_licence_of_everything_inside(wheel: pathlib.Path) -> None:
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    texts = {
        pathlib.PurePath(name).stem: archive.read(name).decode()
        for name in names
        if ".dist-info/licenses/" in name
    }
    assert "Apache License" in texts["LICENSE"]
    carried = {"libtbb": "oneTBB", "libhwy": "Highway", "libfmt": "fmt", "libspdlog": "spdlog",
               "libpng16": "libpng", "libsqlite3": "SQLite"}
    libraries = [name for name in names if re.match(r"pumice/lib/[^/]+$", name)]
    assert libraries
    inside = {carried[pathlib.PurePath(name).name.split(".")[0]] for name in libraries}
    compiled_in = {"Eigen", "nlohmann_json", "nanobind", "CLI11", "stb", "DejaVu", "SQLite"}
    for library in inside | compiled_in:
        assert "opyright" in texts[library] and len(texts[library]) > 1000, library


def test_finds_the_kernels_it_carries(wheel: pathlib.Path, tmp_path: pathlib.Path) -> None:
    bundles = [n for n in zipfile.ZipFile(wheel).namelist() if n.endswith(".bundle")]
    if not bundles:
        pytest.skip("this wheel carries no kernels: tools/build_wheel.sh builds one that does")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    script = "import json, pumice._C as c; print(json.dumps(c.kernel_bundles()))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("PUMICE_BUNDLE", None)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert run.returncode == 0, run.stderr
    (bundle,) = json.loads(run.stdout)
    assert pathlib.Path(bundle["path"]) == (tmp_path / bundles[0]).resolve()
    assert bundle["problem"] == "" and bundle["kernels"] > 0


@pytest.fixture(scope="module")
def clean(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of programs of an environment that has the wheel and what it asks for alone."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    install = [programs / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel]
    subprocess.run(install, check=True)
    return programs


def test_installs_and_works_without_pytorch(clean: pathlib.Path, tmp_path: pathlib.Path) -> None:
    python = clean / "python"
    script = """
import pumice
scan = pumice.simulate(seed=1, beams=32)
voxels = pumice.voxelize(scan.positions, scan.features(), size=0.2)
assert len(voxels) > 10_000 and voxels.coordinates.shape[1] == 4, len(voxels)
assert (voxels.point_to_voxel >= 0).all()
try:
    pumice.SparseTensor
except ImportError as error:
    assert "pip install torch" in str(error)
else:
    raise AssertionError("PyTorch is in a clean environment")
print(pumice.__version__)
"""
    run = subprocess.run([python, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == pumice.__version__
    doctor = subprocess.run(
        [python, "-m", "pumice", "doctor"], capture_output=True, text=True, cwd=tmp_path
    )
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "PyTorch   not installed" in doctor.stdout


def test_doctor_says_that_a_bundle_is_not_there(tmp_path: pathlib.Path) -> None:
    gone = tmp_path / "gone.bundle"
    said = subprocess.run(
        [sys.executable, "-m", "pumice", "doctor"], capture_output=True, text=True,
        cwd=pathlib.Path(pumice.__file__).parents[1], env={**os.environ, "PUMICE_BUNDLE": str(gone)},
    ).stdout  # fmt: skip
    assert f"kernels   {gone}: ignored, there is no such file\n" in said
    assert "All is well" not in said and "a bundle of kernels is ignored" in said


def test_doctor_says_what_the_program_says_of_the_processor_and_the_compiler() -> None:
    def said(*options: str) -> str:
        run = subprocess.run(
            [sys.executable, "-m", "pumice", "doctor", *options], capture_output=True, text=True,
            cwd=pathlib.Path(pumice.__file__).parents[1], check=True,
        )  # fmt: skip
        return run.stdout

    facts, words = json.loads(said("--json")), said()
    assert f"kernels run with {facts['instructions']}" in words and f"bf16: {facts['bf16']}" in words
    assert "compiler  " in words


@pytest.mark.parametrize("name, value", [("PUMICE_CACHE_MB", "abc"), ("PUMICE_SYNC", "maybe")])
def test_doctor_says_which_variable_is_wrong(name: str, value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pumice", "doctor"], capture_output=True, text=True,
        cwd=pathlib.Path(pumice.__file__).parents[1], env={**os.environ, name: value},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    if done.returncode != 0:
        assert f'{name} = "{value}": it is ' in done.stdout + done.stderr
    assert done.returncode == 1 or name == "PUMICE_SYNC"  # which doctor has no need of


def test_brings_the_program_and_its_trained_network(clean: pathlib.Path, tmp_path: pathlib.Path) -> None:
    def pumice_says(*arguments: str) -> str:
        run = subprocess.run(
            [clean / "pumice", *arguments], capture_output=True, text=True, cwd=tmp_path
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    assert pumice_says("--version").split() == ["pumice", pumice.__version__]
    for command in ("run", "view", "convert", "doctor"):
        assert f"\n  {command} " in pumice_says("--help"), command
    assert "PyTorch   not installed" in pumice_says("doctor")
    assert json.loads(pumice_says("doctor", "--json"))["version"] == pumice.__version__
    pumice_says("simulate", "--seed", "2000001", "--beams", "32", "--out", "street.ply")
    run = ("run", "minkunet42", "street.ply", "--weights", "streets", "--picture", "street.png", "--json")
    said = json.loads(pumice_says(*run))
    assert said["trained"] and said["agreement"]["accuracy"] > 0.9
    assert (tmp_path / "street.png").read_bytes()[:4] == b"\x89PNG"

    # A reader that leaves ends it, as it ends any program, without a word.
    left = subprocess.run(
        f"{clean / 'pumice'} info street.ply --json | true; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert left.stdout.strip() in ("141", "0") and left.stderr == "", left

    convert = subprocess.run(
        [clean / "pumice", "convert", "net.pth"], capture_output=True, text=True, cwd=tmp_path
    )
    assert convert.returncode == 1 and "pip install torch" in convert.stderr


def test_importing_brings_in_no_framework() -> None:
    script = "import sys, pumice; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_mistakes_on_the_command_line_are_answered() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pumice", "docter"], capture_output=True, text=True
    )
    assert run.returncode == 2 and '"docter"' in run.stderr and "doctor" in run.stderr
    assert "and convert in the Python package" in run.stderr
    bare = subprocess.run([sys.executable, "-m", "pumice"], capture_output=True, text=True)
    assert bare.returncode == 2 and bare.stdout == "" and bare.stderr.startswith("pumice: no command; there are info")
    help = subprocess.run([sys.executable, "-m", "pumice", "--help"], capture_output=True, text=True)
    assert help.returncode == 0 and help.stdout.count("\n  doctor ") == 1 and help.stdout.count("\n  convert ") == 1
