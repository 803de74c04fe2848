"""What the documentation shows in Python runs as it stands."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import pytest
import torch

import pumice

PAGE = pathlib.Path(__file__).parent.parent.parent / "docs/how_to/use_from_python.md"


@pytest.mark.filterwarnings("ignore")
def test_the_page_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is not here")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["scores"].shape == (len(names["x"]), 19)
    assert "voxels" in capsys.readouterr().out
    x = names["x"]
    cut = pumice.SparseTensor(x.indices[100:], x.features[100:])
    torch.testing.assert_close(names["again"], names["net"].eval()(cut).features)


@pytest.mark.filterwarnings("ignore")
def test_the_readme_trains() -> None:
    page = PAGE.parents[2] / "README.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(page), "exec"), names)
    assert names["scores"].shape == (len(names["scan"]), 19)
    assert names["loss"].item() < 2.5  # of ln 19 = 2.9 to begin with
