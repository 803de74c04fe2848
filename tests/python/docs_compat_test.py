"""The pages about other libraries: what they show in Python runs as it stands, and their options exist."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

from pumice.convert import command

PAGES = pathlib.Path(__file__).parent.parent.parent / "docs/how_to"
NAMES = ["come_from_torchsparse", "come_from_minkowski_engine", "convert_checkpoints"]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_runs(name: str) -> None:
    page = PAGES / f"{name}.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    run = subprocess.run([sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGES / "convert_checkpoints.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    with pytest.raises(SystemExit):
        command.main(["--help"])
    offered = set(re.findall(r"--[a-z0-9-]+", capsys.readouterr().out))
    named = set(re.findall(r"`(--[a-z0-9-]+)", page.read_text()))
    assert len(named) > 8 and named <= offered, named - offered
