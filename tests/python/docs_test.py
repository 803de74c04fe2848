"""What the documentation shows in Python runs as it stands."""

from __future__ import annotations

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parent.parent.parent / "docs/how_to/use_from_python.md"


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is not here")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["scores"].shape == (len(names["x"]), 19)
    assert "voxels" in capsys.readouterr().out
