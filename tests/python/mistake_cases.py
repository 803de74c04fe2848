"""What tests of usual mistakes share: a small tensor, what an error says, and warnings that come anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import pumice
from pumice import _checks

CELLS = torch.tensor([[0, 1, 2, 3], [0, 4, 5, 6]], dtype=torch.int32)
ROWS = torch.ones(2, 4)


@pytest.fixture(autouse=True)
def warned_of_nothing_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_checks, "_warned", set())
    yield


@pytest.fixture
def x() -> pumice.SparseTensor:
    return pumice.SparseTensor(CELLS, ROWS)


def said(call: Callable[[], Any], kind: type[Exception] = pumice.UserError) -> str:
    with pytest.raises(kind) as raised:
        call()
    return str(raised.value)
