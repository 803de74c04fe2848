"""Holds the switches of waiting: the one that pumice.compat.defer_layers sets, and the one for graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

defers = True
in_graphs = False  # whether layers wait while a CUDA graph is recorded too


@contextmanager
def waiting_in_graphs() -> Iterator[None]:
    """For who records whole calls of a model, at whose end nothing waits: the graph then has the kernels of chains."""
    global in_graphs
    before, in_graphs = in_graphs, True
    try:
        yield
    finally:
        in_graphs = before
