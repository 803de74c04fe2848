"""Fixtures of the tests of layers that run together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pumice
from pumice.nn.deferred import running


@pytest.fixture(autouse=True)
def switched_on_again() -> Iterator[None]:
    """Layers wait after each test as before it."""
    yield
    pumice.compat.defer_layers(True)


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of links of all chains that run."""
    lengths: list[int] = []
    run = running._run

    def counted(links: Any) -> None:
        lengths.append(len(links))
        run(links)

    monkeypatch.setattr(running, "_run", counted)
    return lengths


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of links that took two values side by side, of all chains that run."""
    counts: list[int] = []
    run = running._run

    def counted(links: Any) -> None:
        counts.append(sum(link.second is not None for link in links))
        run(links)

    monkeypatch.setattr(running, "_run", counted)
    return counts
