"""The command `pumice` of the package, but for what the program does."""

from __future__ import annotations

import pytest

from pumice import __main__ as program


def test_ctrl_c_ends_it_in_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "main", interrupted)
    assert program.command() == 130
    assert capsys.readouterr().err == "pumice: interrupted\n"
