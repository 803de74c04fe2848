"""What type checkers and editors know: the lines of the README, and what calls of layers give."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

README = pathlib.Path(__file__).parents[2] / "README.md"
KNOWN = """
from pumice import nn
from typing_extensions import assert_type

scan = pumice.simulate()
voxels = pumice.voxelize(torch.zeros(5, 4), size=0.2)
x = voxels.tensor
assert_type(voxels, pumice.TensorVoxels)
assert_type(pumice.voxelize(scan.positions, size=0.1), pumice.Voxels)
assert_type(pumice.models.MinkUNet42()(x).features, torch.Tensor)
assert_type(pumice.models.SPVCNN()(x), pumice.SparseTensor)
assert_type(nn.SubMConv3d(4, 8, 3)(x), pumice.SparseTensor)
assert_type(nn.InverseConv3d(4, 8, 2, 2)(x, x).features, torch.Tensor)
assert_type(nn.Sequential(nn.SubMConv3d(4, 8, 3), torch.nn.ReLU())(x).features, torch.Tensor)
assert_type(nn.ReLU()(nn.BatchNorm(4)(nn.Linear(4, 4)(x))), pumice.SparseTensor)
assert_type(nn.GlobalPool()(nn.MaxPool(2)(x)), torch.Tensor)
assert_type(nn.ToBEV()(x), torch.Tensor)
assert_type(2 * x - x / 3, pumice.SparseTensor)
assert_type(x.half().detach().to("cpu"), pumice.SparseTensor)
assert_type(x.shape, torch.Size)
assert_type(pumice.cat([x, x]), pumice.SparseTensor)
layer = nn.SubMConv3d(4, 8, 3, plan={"forward": pumice.Plan("{}")})
layer.plan = None
map = pumice.ops.submanifold_map(x.coords, layer.window)
assert_type(pumice.ops.plan_of(x.features, layer.weight, map).text, str)
assert_type(pumice.ops.candidates(x.features, layer.weight, map), list[tuple[pumice.Plan, float]])
"""
# Of PyTorch's functions that have no annotations a checker that is strict complains too.
OF_PYTORCH = ("from_numpy", "backward", "step")


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks, "the README has no lines of Python"
    (tmp_path / "readme.py").write_text("".join(blocks), encoding="utf-8")
    (tmp_path / "known.py").write_text("import pumice\nimport torch\n" + KNOWN, encoding="utf-8")
    return tmp_path


def test_mypy_finds_nothing(folder: pathlib.Path) -> None:
    shutil.copy(README.parent / "examples" / "train_network.py", folder)
    if importlib.util.find_spec("mypy") is None:
        pytest.skip('mypy is not installed: pip install ".[test]"')
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--untyped-calls-exclude=torch", "--cache-dir", str(folder),
         "readme.py", "known.py", "train_network.py"],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


def test_pyright_finds_nothing(folder: pathlib.Path) -> None:
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed: pip install pyright")
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "strict", "extraPaths": [p for p in sys.path if p]}), encoding="utf-8"
    )
    run = subprocess.run(["pyright", "-p", str(folder), "--outputjson"], capture_output=True, text=True, cwd=folder)
    if not run.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here: {(run.stderr or run.stdout).strip()[:200]}")
    found = [
        entry["message"] for entry in json.loads(run.stdout)["generalDiagnostics"]
        if not any(f'Type of "{name}" is partially unknown' in entry["message"] for name in OF_PYTORCH)
    ]  # fmt: skip
    assert found == []
