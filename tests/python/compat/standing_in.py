"""Pumice under spconv's name, for the length of a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pumice.compat.spconv


@contextmanager
def spconv_by_name() -> Iterator[None]:
    before = dict(sys.modules)
    pumice.compat.spconv.install()
    try:
        yield
    finally:
        for name in set(sys.modules) - set(before):
            if name.split(".")[0] in ("spconv", "cumm", "spunet", "pcdet", "pointcept"):
                del sys.modules[name]
