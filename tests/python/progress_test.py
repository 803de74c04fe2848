"""What is shown while kernels are compiled."""

from __future__ import annotations

import io
import time

from pumice._progress import CompileProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_line_that_ends() -> None:
    stream = Terminal()
    progress = CompileProgress(stream)
    progress("tile map", "sm_90a", 300.0)
    progress("tile map", "sm_90a", 450.0)
    text = stream.getvalue()
    assert text.count("\r") == 2 and "\n" not in text
    assert "2 kernels compiled for sm_90a in 0.8 s" in text
    deadline = time.monotonic() + 20
    while not stream.getvalue().endswith("\n"):
        assert time.monotonic() < deadline, "the line does not end"
        time.sleep(0.05)
    progress("tile map", "sm_90a", 100.0)
    assert "\rpumice: 1 kernel compiled" in stream.getvalue()


def test_nothing_where_nobody_looks() -> None:
    stream = io.StringIO()
    CompileProgress(stream)("tile map", "sm_90a", 300.0)
    assert stream.getvalue() == ""
