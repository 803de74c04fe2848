"""The page on training runs as it stands, with simulated scans in the place of recorded ones."""

from __future__ import annotations

import pathlib
import re

import pytest
import torch

from pumice import data

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "how_to" / "train_a_network.md"


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is not here")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    streets = data.SimulatedScans(range(2), beams=32)
    monkeypatch.setattr(data, "SemanticKitti", lambda root: streets)
    names: dict = {"torch": torch, "device": "cpu"}
    fewer = blocks[0].replace("num_workers=8", "num_workers=0").replace("voxel=0.05", "voxel=1.0")
    fewer = re.sub(r"multiprocessing_context=.*pin_memory=True,", "", fewer, flags=re.DOTALL)
    exec(fewer, names)
    exec(blocks[1].replace("width_factor=0.5", "width_factor=0.05"), names)
    assert (tmp_path / "model.safetensors").stat().st_size > 1000
    assert "stem.0" in str(names["model"].explain(names["batch"].tensor()))
