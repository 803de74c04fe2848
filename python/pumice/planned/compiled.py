"""Defines `compile`, and the models that it makes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _C
from .._checks import kind_of, whole_number
from .._sites import standing_on
from ..coords import Coordinates
from ..ops import modes
from .bucket import Bucket
from .outputs import Output, SitesOfRun, hand_out, take_apart
from .recorder import Recorder
from .scans import OWN, Scan, scan_of
from .sizes import Kept, capacity_for
from .state import ModelState, check_runnable
from .watch import cannot_be_recorded, first_line

_EAGER_CALLS = 2  # of a bucket, which learn what it has to make
_MOST_BUCKETS = 16


def compile(
    model: torch.nn.Module,
    *,
    max_voxels: int | None = None,
    buckets: float = 1.25,
    max_bytes: int | None = None,
    fallback: str = "raise",
    eager: bool = False,
    input: Callable[[Any], Any] | None = None,
) -> CompiledModel:
    """Makes a function that runs `model` as CUDA graphs, with other voxels in every call, for inference.

    The rows of a call choose a bucket: room for 1024 · buckets^n voxels. The first two calls of a bucket
    run eagerly; the third records sites, kernel maps and layers as one graph, which it and all later ones
    replay. Weights are packed once; where parameters, buffers or modules change, graphs are recorded anew.
    PyTorch does not count writes through `.data`: call `forget()` after them. On the CPU the model runs as it is.

    Args:
        model: a module in evaluation, of layers of `pumice.nn` or `pumice.compat`, and of modules of
            torch.nn that take each row for itself.
        max_voxels: the most rows a call may have; the largest bucket has room for just so many. Default:
            a larger scan opens a larger bucket.
        buckets: the ratio between the room of one bucket and the next, above 1.
        max_bytes: of all buckets; the least recently used go first. There are at most 16 in any case.
        fallback: what becomes of a scan that has more voxels than `max_voxels`, or leads to more rows or
            pairs than a bucket has room for: "raise", or "eager", which runs it as the model does, and
            for that waits in every call.
        eager: run what was learned without a graph, which is slower, and which a debugger can follow.
        input: makes of a `SparseTensor` what the model is called with, a tuple for several arguments; default:
            what the call was given. Sites that the model makes of `x.indices` itself are those of the call.
    Returns:
        A function of (coords, features, batch_size=1, spatial_shape=None, stride=None), or of one sparse
        tensor, that gives what the model returns.
    Raises:
        UserError: for what is no module, is in training or has hooks, and for arguments out of range.
    Waits:
        Never; of calls see `CompiledModel`.
    Example:
        >>> net = nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8), nn.ReLU()).eval()
        >>> fast = pumice.compile(net)
        >>> fast(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4)).shape
        torch.Size([2, 8])
    """
    if not isinstance(model, torch.nn.Module):
        raise _C.UserError(f"model is {kind_of(model)}: give a module")
    check_runnable(model)
    if max_voxels is not None:
        max_voxels = whole_number("max_voxels", max_voxels, 1, 2**31 - 1)
    if max_bytes is not None:
        max_bytes = whole_number("max_bytes", max_bytes, 1, 2**62)
    if isinstance(buckets, bool) or not isinstance(buckets, (int, float)) or not 1 < buckets <= 16:
        raise _C.UserError(f"buckets = {buckets!r}: give the ratio of their sizes, above 1 and at most 16")
    if fallback not in ("raise", "eager"):
        raise _C.UserError(f"fallback = {fallback!r}: give 'raise' or 'eager'")
    if input is not None and not callable(input):
        raise _C.UserError(f"input is {kind_of(input)}: give a function of a SparseTensor")
    return CompiledModel(model, max_voxels, float(buckets), max_bytes, fallback, bool(eager), input)


class CompiledModel:
    """A model as CUDA graphs: see `compile`.

    A call takes coords int32 or int64 [N, 1 + D] and features [N, C] with what it declares of the sites,
    batch_size (default 1), spatial_shape and stride, or one sparse tensor; it runs without gradients, under the
    autocast of the caller. It returns what the model does, in memory of its own: features on the sites of
    the input are exact; on other sites, which only the GPU has counted, a `CapacityTensor` stands for them.
    Without a spatial shape, scans may lie in the bounds of a bucket's first one, wider by half its extent on
    either side.

    A scan that a bucket has no room for, or that lies out of bounds, makes results that are no numbers, and
    the next call that waits (`wait()`, or `rows()` and `exact()` of a result) raises UserError with the sites,
    what they needed, and the room. So does a later call, as soon as the GPU has come to it.

    Calls may come from several threads and streams; one bucket runs at a time.

    Args:
        model: as `compile` takes it; so are the others, which it has checked.
        max_voxels: the most rows of a call.
        ratio: of buckets.
        max_bytes: of all buckets.
        fallback: "raise" or "eager".
        eager: whether there are no graphs.
        input: makes the arguments of the model.
    Raises:
        UserError: in calls, for arguments that are no voxels, for what went wrong in an earlier call, and where a module
            cannot be recorded, by its name.
    Waits:
        The first three calls of a bucket, and the one after a change of the model; later ones never, but with
        fallback="eager".
    Example:
        >>> fast = pumice.compile(nn.SubMConv3d(4, 8, 3).eval())
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> fast(x).coords is x.coords
        True
    """

    def __init__(
        self,
        model: torch.nn.Module,
        max_voxels: int | None,
        ratio: float,
        max_bytes: int | None,
        fallback: str,
        eager: bool,
        input: Callable[[Any], Any] | None,
    ) -> None:
        self.model = model
        self._most = max_voxels
        self._ratio = ratio
        self._falls_back = fallback == "eager"
        self._eager_plans = eager
        self._input = input
        self._lock = threading.RLock()
        self._buckets = Kept(_MOST_BUCKETS, max_bytes)
        self._recorder: Recorder | None = None
        self._state: ModelState | None = None

    def __call__(
        self,
        *given: Any,
        batch_size: int | None = None,
        spatial_shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> Any:
        """The model of these voxels."""
        scan = self._scan(given, batch_size, spatial_shape, stride)
        with self._lock:
            bucket = self._bucket_of(scan)
            if bucket is None:
                return self._as_it_is(scan)
            self._raise_trouble()
            if bucket.calls < _EAGER_CALLS:
                return self._learning_from(scan, bucket)
            return self._by_plan(bucket, scan)

    def plan(
        self,
        *given: Any,
        batch_size: int | None = None,
        spatial_shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> int:
        """Learns and records what calls with such scans need, and returns how many bytes that holds, before it runs;
        the first call runs the graph then. Takes what a call does.

        Returns:
            The bytes of the bucket's inputs, and what its graph added to the memory that all graphs share; 0 on the
            CPU and for scans that run eagerly.
        Waits:
            For the GPU.
        """
        scan = self._scan(given, batch_size, spatial_shape, stride)
        with self._lock:
            bucket = self._bucket_of(scan)
            if bucket is None:
                return 0
            while bucket.calls < _EAGER_CALLS:
                self._learning_from(scan, bucket)
            self._renew(bucket, scan)
            return bucket.bytes

    def _scan(
        self,
        given: tuple[Any, ...],
        batch_size: int | None,
        spatial_shape: Sequence[int] | None,
        stride: Sequence[int] | None,
    ) -> Scan:
        scan = scan_of(given, batch_size, spatial_shape, stride)
        if self._input is not None and scan.kind is not OWN:
            raise _C.UserError(
                f"the model was compiled with input=…, which takes a SparseTensor, and got {kind_of(given[0])}: "
                "give coords and features"
            )
        if self.model.training:
            check_runnable(self.model)
        return scan

    def _bucket_of(self, scan: Scan) -> Bucket | None:
        """The one that takes the voxels; None where the model runs as it is."""
        rows, channels = scan.features.shape
        device = scan.features.device
        if not self._records(device) or rows == 0:
            return None
        modes.traced(scan.features)  # refuses transforms of functions
        capacity = capacity_for(rows, self._ratio, self._most)
        if capacity is None:
            if self._falls_back:
                return None
            raise _C.UserError(
                f"{rows} voxels, max_voxels = {self._most}: compile with room for them, or with fallback='eager'"
            )
        if self._recorder is None or self._recorder.device != device:
            self.forget()
            self._recorder = self._new_recorder(device)
        recorder = self._recorder
        key = (capacity, scan.grid, scan.kind, channels, *_modes(scan))
        return self._buckets.get(key, lambda: Bucket(recorder, capacity, scan))

    def _records(self, device: torch.device) -> bool:
        if device.type != "cuda":
            return False
        if torch.cuda.is_current_stream_capturing():
            raise _C.UserError("a compiled model is called while a graph is recorded: record the model itself")
        return True

    def _new_recorder(self, device: torch.device) -> Recorder:
        return Recorder(self.model, self._call, device)

    def _call(self, x: Any) -> Any:
        given = x if self._input is None else self._input(x)
        return self.model(*given) if type(given) is tuple else self.model(given)

    def _eager(self, scan: Scan, x: Any) -> tuple[Coordinates, Output]:
        coords, _ = scan.kind.parts(x)
        with standing_on(coords):
            return coords, take_apart(self._call(x), SitesOfRun(coords, scan.grid))

    def _as_it_is(self, scan: Scan) -> Any:
        with torch.no_grad():
            x = scan.kind.of(scan.indices, scan.features, scan.grid) if scan.given is None else scan.given
            return _as_made(self._eager(scan, x)[1], scan)

    def _learned(self, scan: Scan, bucket: Bucket) -> Output:
        """An eager pass, from which the bucket learns."""
        with torch.no_grad():
            # Of a sparse tensor that was given, other maps may be known than this model's.
            coords, output = self._eager(scan, scan.kind.of(scan.indices, scan.features, scan.grid))
            bucket.learn(coords)
        return output

    def _learning_from(self, scan: Scan, bucket: Bucket) -> Any:
        bucket.calls += 1
        return _as_made(self._learned(scan, bucket), scan)

    def _by_plan(self, bucket: Bucket, scan: Scan) -> Any:
        if not bucket.is_prepared:
            self._renew(bucket, scan)
        result = bucket.run(scan)
        # The device is busy by now, so that looking takes no time of it.
        if self._state is None or not self._state.holds():
            self._renew(bucket, scan)
            result = bucket.run(scan)
        if self._falls_back:
            try:
                self.wait()
            except _C.UserError:
                bucket.drop()
                return _as_made(self._learned(scan, bucket), scan)
        return result

    def _renew(self, bucket: Bucket, scan: Scan) -> None:
        """Records the bucket where it is not, and gives up all graphs of a model that was another."""
        if self._state is not None and not self._state.holds():
            self._forget_graphs()
        if bucket.is_prepared:
            return
        check_runnable(self.model)
        expected = self._learned(scan, bucket)  # this very scan has room in any case
        bucket.prepare(scan, expected, waits=self._eager_plans)
        if self._state is None:
            self._state = ModelState(self.model)
        if not self._eager_plans:
            try:
                bucket.record()
            except torch.cuda.OutOfMemoryError:
                raise
            except (_C.Error, ValueError, RuntimeError) as error:
                raise cannot_be_recorded(self.model, None, first_line(error)) from error
        for dropped in self._buckets.shrink():
            dropped.drop()

    def _raise_trouble(self) -> None:
        """What went wrong in an earlier call, if the device has come to it."""
        if self._recorder is not None and self._recorder.has_trouble():
            try:
                self.wait()
            except _C.UserError as error:
                raise _C.UserError(f"an earlier call of the compiled model, whose results are no numbers: {error}") from None

    def _forget_graphs(self) -> None:
        self._state = None
        if self._recorder is not None:
            self._recorder.settle()
            self._recorder.packed = {}
        for bucket in self._buckets:
            bucket.drop()

    def forget(self) -> None:
        """Gives up all that was learned and recorded, and its memory. Needed after writes through `.data`, which
        PyTorch does not count. Does not wait."""
        with self._lock:
            self._forget_graphs()
            self._buckets.clear()

    def wait(self) -> None:
        """Waits for the GPU to be done with all calls.

        Raises:
            UserError: where one of them exceeded its room, or had coordinates out of bounds.
        """
        if self._recorder is not None:
            self._recorder.wait()

    @property
    def bytes(self) -> int:
        """Memory of all buckets: their inputs, and what graphs hold between calls."""
        return self._buckets.bytes

    def __repr__(self) -> str:
        rooms = sorted(bucket.capacity for bucket in self._buckets)
        return f"CompiledModel({type(self.model).__name__}, room for {rooms}, {self.bytes:,} bytes)"


def _as_made(output: Output, scan: Scan) -> Any:
    return hand_out(output, scan, lambda tensor, rows: tensor, None)


def _modes(scan: Scan) -> tuple[Any, ...]:
    """The switches that a graph records: types, determinism, TF32, autocast, and which plans there are."""
    features = scan.features
    return features.dtype, modes.of(features), modes.autocast_dtype(features), _C.plans_in_use()
