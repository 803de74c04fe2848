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
