"""A plug-in of pytest: Pumice under the peer's name, and one line of JSON for each test."""

from __future__ import annotations

import json
import os

import pytest

import pumice.compat

pumice.compat.install(os.environ["PUMICE_CONFORMANCE_PEER"])


def write(test: str, outcome: str) -> None:
    with open(os.environ["PUMICE_CONFORMANCE_REPORT"], "a", encoding="utf-8") as file:
        file.write(json.dumps([test, outcome]) + "\n")


def sentence(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The last line that says which error it was."""
    lines = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
    return (lines or report.longreprtext.splitlines() or ["failed"])[0 if lines else -1][:200]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        write(report.nodeid, sentence(report))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        write(report.nodeid, sentence(report))
    elif report.skipped:
        write(report.nodeid, "skip")
    elif report.when == "call":
        write(report.nodeid, "pass")
