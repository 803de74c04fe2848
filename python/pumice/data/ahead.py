"""Makes the items of a sequence ahead of time in threads, and hands them out in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def made_ahead(make: Callable[[int], Item], count: int, workers: int, prefetch: int) -> Iterator[Item]:
    """make(0), …, make(count - 1), of which `workers` threads have at most workers * prefetch ready or in work; without
    threads each is made when it is asked for. What `make` raises is raised in its place, and nothing comes after it.
    Whoever drops or closes the iterator waits for the items in work; no thread is left."""
    if workers == 0:
        yield from map(make, range(count))
        return
    threads = ThreadPoolExecutor(workers, "pumice-ahead")
    started: deque[Future[Item]] = deque()
    try:
        for index in range(count):
            started.append(threads.submit(make, index))
            if len(started) >= workers * prefetch:
                yield started.popleft().result()
        while started:
            yield started.popleft().result()
    finally:
        threads.shutdown(wait=True, cancel_futures=True)
