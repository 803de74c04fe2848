"""Threads that record or try graphs of different models do so by turns (on the CPU, with PyTorch's CUDA pretended)."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from pumice.planned.recorder import Recorder


class Overlaps:
    """How many threads were inside at once."""

    def __init__(self) -> None:
        self.inside, self.most = 0, 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.02)
        yield
        self.inside -= 1


def on_threads(work: Callable[[int], Any]) -> list[Any]:
    found: list[Any] = [None] * 4
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            found[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return found


def recorder() -> Recorder:
    made = Recorder.__new__(Recorder)
    made._graphs, made.device = 0, torch.device("cuda:0")
    return made


def test_the_mode_of_before_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[Any] = [0]
    inside = Overlaps()
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    def work(number: int) -> None:
        with recorder().refusing_waits(), inside():
            with recorder().refusing_waits():  # of one thread, within itself
                assert modes[-1] in ("warn", 1)

    on_threads(work)
    assert inside.most == 1 and modes[-1] == 0


@pytest.mark.parametrize("mode", [0, 1])
def test_waits_of_other_threads_are_left_alone(monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: mode)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)

    def wait() -> None:
        warnings.warn("called a synchronizing CUDA operation (Triggered internally at …)", UserWarning, stacklevel=1)

    errors: list[BaseException] = []

    def elsewhere() -> None:
        try:
            wait()
            warnings.warn("another", UserWarning, stacklevel=1)
        except BaseException as error:
            errors.append(error)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with recorder().refusing_waits():
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                wait()
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        wait()  # as before
    assert not errors
    assert len([one for one in seen if "synchronizing" in str(one.message)]) == 1 + mode
    assert len([one for one in seen if str(one.message) == "another"]) == 1


def test_recordings_are_made_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Overlaps()
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)
    monkeypatch.setattr(Recorder, "stream_of_caller", lambda self: None)
    monkeypatch.setattr(Recorder, "_recording", lambda self, graph: inside())
    found = on_threads(lambda number: recorder().record(lambda: number).result)
    assert found == [0, 1, 2, 3] and inside.most == 1
