"""All that compiled models ask of a GPU: the order of work on streams, recordings, and their memory."""

from __future__ import annotations

import functools
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _C
from ..nn.deferred.switch import waiting_in_graphs

MARGIN = 1.25  # room of sets and maps that follow from the input, times what the learned scans had in proportion


# Of a process: PyTorch empties no cache while a recording is under way, and has one mode of refusing waits for all threads.
_turns = threading.RLock()


def _by_turns(work: Callable[..., Any]) -> Callable[..., Any]:
    """`work`, which threads do one after the other."""

    @functools.wraps(work)
    def in_turn(*given: Any) -> Any:
        with _turns:
            return work(*given)

    return in_turn


class Recording(NamedTuple):
    """A graph, what the recorded work returned, and how many bytes it holds beside what was there before."""

    graph: torch.cuda.CUDAGraph
    result: Any
    bytes: int


class Recorder:
    """What the buckets of a model share: the memory of graphs, packed weights, and the order of their work, of which
    only one may run at a time.

    Learning and recording have a stream of their own, to whose record of trouble the kernels of all graphs report;
    graphs run on the stream of whoever calls."""

    def __init__(self, model: torch.nn.Module, call: Callable[[Any], Any], device: torch.device) -> None:
        self.model = model
        self.call = call  # (a sparse tensor of any kind) -> what the model returns
        self.device = device
        self.name = str(device)
        self.packed: dict[Any, Any] = {}
        self._stream = torch.cuda.Stream(device)
        self._end = torch.cuda.Event()  # of the work that was enqueued last, on the stream `_last`
        self._last = self._stream.cuda_stream
        self._pool: Any = None
        self._graphs = 0

    def begin(self) -> None:
        """What the caller enqueues next comes after all earlier work of buckets."""
        if torch._C._cuda_getCurrentRawStream(self.device.index) != self._last:
            torch.cuda.current_stream(self.device).wait_event(self._end)

    def end(self) -> None:
        """The work of a bucket is enqueued on the caller's stream."""
        stream = torch.cuda.current_stream(self.device)
        self._end.record(stream)
        self._last = stream.cuda_stream

    @contextmanager
    def ordered(self) -> Iterator[None]:
        """Work on the stream of recordings, after what the caller's and earlier calls hold, and before what the
        caller's gets next."""
        caller = torch.cuda.current_stream(self.device)
        self.settle()
        self._stream.wait_stream(caller)
        try:
            with torch.cuda.stream(self._stream):
                yield
        finally:
            caller.wait_stream(self._stream)
            self.end()

    def settle(self) -> None:
        """Memory of the stream of recordings that is given up from here on is used again after all work so far."""
        self._stream.wait_event(self._end)

    def wait(self) -> None:
        """Waits for all graphs, and raises what went wrong in one of them."""
        self.settle()
        with torch.cuda.stream(self._stream):
            _C.wait(self.name)

    def has_trouble(self) -> bool:
        """Whether something went wrong in a graph, as far as the GPU has come: does not wait."""
        return _C.has_trouble(self.name, self._stream.cuda_stream)

    def handed_out(self, tensor: Tensor, caller: torch.cuda.Stream) -> Tensor:
        """A tensor that was made in `ordered`, for whoever called."""
        tensor.record_stream(caller)
        return tensor

    def stream_of_caller(self) -> torch.cuda.Stream:
        """The current one."""
        return torch.cuda.current_stream(self.device)

    def bounds(self, sites: _C.Sites) -> tuple[list[int], list[int]]:
        """The lowest and the highest site that there may be."""
        return sites.bounds

    def learn(
        self,
        sites: _C.Sites,
        rows: int,
        low: list[int],
        high: list[int],
        earlier: _C.MapPlan | None,
        margin: float = MARGIN,
        points: int = 0,
    ) -> _C.MapPlan:
        """A plan of what was asked of `sites`, with room for `rows` of them, of which there are as many more as of
        what follows by `margin`; `points`: the room of those that they are made of. Waits."""
        return _C.learn_map_plan(sites, rows, low, high, margin, earlier, points)

    @_by_turns
    def record(self, work: Callable[[], Any]) -> Recording:
        """Records what `work` enqueues as a graph, whose memory all graphs share. Waits."""
        if self._graphs == 0:  # PyTorch gives up a pool with its last graph
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved(self.device)
        caller, has_begun = self.stream_of_caller(), False
        try:
            with _no_collection(), self._recording(graph), waiting_in_graphs():
                has_begun = True
                result = work()
        except BaseException:
            torch.cuda.set_stream(caller)  # that of the recording may be current still
            if has_begun:
                self._end_failed_recording()
            raise
        self._graphs += 1
        return Recording(graph, result, max(0, torch.cuda.memory_reserved(self.device) - before))

    def _recording(self, graph: torch.cuda.CUDAGraph) -> Any:
        return torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local")

    def _end_failed_recording(self) -> None:
        """PyTorch ends a recording that failed only half: its allocator and its random numbers take it for under way. The
        former is told, and gets other memory for graphs; of the latter a copy is not in a recording, and graphs of before
        draw from the original."""
        _end_allocation(self.device.index, self._pool)
        self._pool = torch.cuda.graph_pool_handle()
        self._generator.graphsafe_set_state(self._generator.clone_state())

    def drop(self, graph: torch.cuda.CUDAGraph) -> None:
        """Gives up a graph, which may still run."""
        self.settle()
        graph.reset()
        self._graphs -= 1

    def trouble(self) -> Tensor:
        """A float of the device: 1 where something went wrong in a graph and has not been raised since, else 0. Part of
        what is recorded; does not wait."""
        word = torch.empty((), dtype=torch.int32, device=self.device)
        _C.copy_trouble(word)
        return (word != 0).float()

    def draws(self) -> int:
        """How far the device's random numbers have come. Does not wait."""
        return int(self._generator.get_offset())

    def give_back_draws(self, draws: int) -> None:
        """As if that many had not been drawn."""
        self._generator.set_offset(self._generator.get_offset() - draws)

    @property
    def _generator(self) -> Any:
        return torch.cuda.default_generators[self.device.index]

    @contextmanager
    def as_in_a_graph(self, gradients: bool = False) -> Iterator[None]:
        """With or without gradients, and without autocast's memory of weights, which a graph must not read later."""
        with torch.set_grad_enabled(gradients):
            if torch.is_autocast_enabled("cuda"):
                with torch.autocast("cuda", torch.get_autocast_dtype("cuda"), cache_enabled=False):
                    yield
            else:
                yield

    @contextmanager
    def refusing_waits(self) -> Iterator[None]:
        """Raises UserError or RuntimeError where the host would wait for the GPU on this thread: a recording that fails half
        way would leave PyTorch's allocator in disorder. Threads take turns, so that each finds the mode that there was
        before."""
        with _turns:
            before = torch.cuda.get_sync_debug_mode()
            refused = _C.RefusedWaits()
            if before != _ERROR:
                _set_sync_debug_mode("warn")
            try:
                with _raised_here(is_wanted_elsewhere=before == _WARN):
                    yield
            finally:
                _set_sync_debug_mode(before)
                del refused


_WARN, _ERROR = 1, 2  # PyTorch's modes, each of which is for all threads
_WAIT = "called a synchronizing CUDA operation"


@contextmanager
def _raised_here(is_wanted_elsewhere: bool) -> Iterator[None]:
    """PyTorch's warning of a wait is an error on this thread, and on others no more than it was before."""
    here = threading.get_ident()
    with warnings.catch_warnings():
        warnings.filterwarnings("always", message=_WAIT)
        show = warnings.showwarning

        def shown(message: Any, *more: Any, **named: Any) -> None:
            if not str(message).startswith(_WAIT):
                show(message, *more, **named)
            elif threading.get_ident() == here:
                raise RuntimeError(_WAIT)
            elif is_wanted_elsewhere:
                show(message, *more, **named)

        warnings.showwarning = shown
        yield


def _end_allocation(device: int, pool: Any) -> None:
    try:
        torch._C._cuda_endAllocateToPool(device, pool)
    except RuntimeError as error:
        if "not currently recording" not in str(error):  # it was ended: which part of the end failed differs
            raise


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing is collected in it: the end of a graph that only a reference cycle holds, another model's, would end the
    recording that is under way, and a pass whose tensors are in such a cycle holds on to where it added gradients up."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _set_sync_debug_mode(mode: int | str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is a prototype, which finds most waits and not all
        torch.cuda.set_sync_debug_mode(mode)
