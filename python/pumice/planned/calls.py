"""What compiled models and compiled steps have in common: their options, the bucket of a call, and what went wrong in an
earlier one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .. import _C
from .._checks import kind_of, whole_number
from .._sites import standing_on
from ..ops import modes
from ..voxels import Voxelizer
from .graph_call import Arguments, GraphCall, graph_call_of, is_graph_call
from .points import at_points, points_of
from .recorder import Recorder
from .rows_seen import RowsSeen
from .scans import OWN, Scan, check_no_gradient, scan_of
from .sizes import Kept, capacity_for

EAGER_CALLS = 2  # of a bucket, which learn what it has to make
_MOST_BUCKETS = 16


class Options(NamedTuple):
    """How to compile, as `compile` and `compile_step` take it."""

    max_voxels: int | None
    ratio: float  # of buckets
    max_bytes: int | None
    falls_back: bool
    eager: bool
    input: Callable[[Any], Any] | None
    voxelizer: Voxelizer | None

    @classmethod
    def checked(
        cls,
        model: Any,
        max_voxels: Any,
        buckets: Any,
        max_bytes: Any,
        fallback: Any,
        eager: Any,
        input: Any,
        voxelize: Any = None,
    ) -> Options:
        """Raises UserError, naming the argument, for what is none."""
        if not isinstance(model, torch.nn.Module):
            raise _C.UserError(f"model is {kind_of(model)}: give a module")
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
        if voxelize is not None and not isinstance(voxelize, Voxelizer):
            raise _C.UserError(f"voxelize is {kind_of(voxelize)}: give pumice.Voxelizer(size=…)")
        return cls(max_voxels, float(buckets), max_bytes, fallback == "eager", bool(eager), input, voxelize)


class Planned:
    """Calls of a model that run as graphs of buckets."""

    _WHAT = "compiled model, whose results are no numbers"  # of a call that went wrong
    _TRAINS = False

    def __init__(self, model: torch.nn.Module, options: Options) -> None:
        self.model = model
        self.options = options
        self._lock = threading.RLock()
        self._buckets = Kept(_MOST_BUCKETS, options.max_bytes)
        self._recorder: Recorder | None = None
        self._seen = RowsSeen()  # of further arguments, and of labels
        self._seen_outputs = RowsSeen()  # of what the model returns, by places in it

    def _scan(
        self,
        given: tuple[Any, ...],
        batch_size: int | None,
        spatial_shape: Sequence[int] | None,
        stride: Sequence[int] | None,
        batch: Any = None,
        named: dict[str, Any] | None = None,
    ) -> Any:
        if self.options.voxelizer is None and is_graph_call(given):
            declared = {"batch_size": batch_size, "spatial_shape": spatial_shape, "stride": stride, "batch": batch}
            return self._graph_call(given, {**{k: v for k, v in declared.items() if v is not None}, **(named or {})})
        if named:
            raise _C.UserError(f"{next(iter(named))} is no argument of a call with {kind_of(given[0]) if given else 'nothing'}")
        if self.options.voxelizer is not None:
            if spatial_shape is not None or stride is not None:
                raise _C.UserError("spatial_shape and stride are not for points: give Voxelizer(spatial_shape=…)")
            points = points_of(given, batch, batch_size, self.options.voxelizer)
            check_no_gradient(points.features)
            self._check()
            return points
        if batch is not None:
            raise _C.UserError("batch is for points, of models that are compiled with voxelize=…: coords have the item first")
        scan = scan_of(given, batch_size, spatial_shape, stride)
        if self.options.input is not None and scan.kind is not OWN:
            raise _C.UserError(
                f"the model was compiled with input=…, which takes a SparseTensor, and got {kind_of(given[0])}: "
                "give coords and features"
            )
        self._check()
        return scan

    def _graph_call(self, given: tuple[Any, ...], named: dict[str, Any]) -> GraphCall:
        if self.options.input is not None:
            raise _C.UserError("the model was compiled with input=…, which takes a SparseTensor, and got edges: leave it out")
        options = self.options
        call = graph_call_of(given, named, options.ratio, options.max_voxels, self._seen, self._TRAINS)
        check_no_gradient(call.features)
        self._check()
        return call

    def _check(self) -> None:
        """Raises UserError where the model cannot be called as it is."""

    def _bucket_for(self, scan: Scan, more: tuple[Any, ...], kind: Callable[[Recorder, int, Scan], Any]) -> Any:
        """The bucket that takes the voxels, one of its own for `more` that differs; None where the model runs as it
        is."""
        rows, channels = scan.rows, scan.features.shape[1]
        device = scan.features.device
        if not self._records(device) or rows == 0 or (isinstance(scan, GraphCall) and not scan.is_clear):
            return None
        modes.traced(scan.features)  # refuses transforms of functions
        most = None if self.options.voxelizer is not None else self.options.max_voxels
        capacity = capacity_for(rows, self.options.ratio, most)
        if capacity is None:
            if self.options.falls_back:
                return None
            what = "nodes" if isinstance(scan, GraphCall) else "voxels"
            raise _C.UserError(f"{rows} {what}, max_voxels = {most}: compile with room for them, or with fallback='eager'")
        recorder = self._recorder_for(device)
        key = (capacity, scan.grid, scan.kind, channels, *scan.key, *_modes(scan), *more)
        return self._buckets.get(key, lambda: kind(recorder, capacity, scan))

    def _recorder_for(self, device: torch.device) -> Recorder:
        if self._recorder is None or self._recorder.device != device:
            self.forget()
            self._recorder = self._new_recorder(device)
        return self._recorder

    def _records(self, device: torch.device) -> bool:
        if device.type != "cuda":
            return False
        if torch.cuda.is_current_stream_capturing():
            raise _C.UserError("a compiled model is called while a graph is recorded: record the model itself")
        return True

    def _new_recorder(self, device: torch.device) -> Recorder:
        return Recorder(self.model, self._call, device)

    def _call(self, x: Any) -> Any:
        if isinstance(x, Arguments):
            return self.model(*x.given, **x.named)
        made = self._made_of(x)
        if not self._is_at_points:
            return made
        # A pass that gradients go back through has no other beside it, which would change running statistics.
        return at_points(made, x, self._seen_outputs, None if torch.is_grad_enabled() else self._made_of_fewer)

    def _made_of(self, x: Any) -> Any:
        make = self.options.input
        if make is not None:
            given = make(x)
        else:
            given = x if self.options.voxelizer is None else x.tensor
        return self.model(*given) if type(given) is tuple else self.model(given)

    def _made_of_fewer(self, voxels: Any) -> Any:
        with standing_on(voxels.tensor.coords):
            return self._made_of(voxels)

    @property
    def _is_at_points(self) -> bool:
        return self.options.voxelizer is not None and self.options.voxelizer.at_points

    def _raise_trouble(self) -> None:
        """What went wrong in an earlier call, if the device has come to it."""
        if self._recorder is not None and self._recorder.has_trouble():
            try:
                self.wait()
            except _C.UserError as error:
                raise _C.UserError(f"an earlier call of the {self._WHAT}: {error}") from None

    def _forget_graphs(self) -> None:
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
        return f"{type(self).__name__}({type(self.model).__name__}, room for {rooms}, {self.bytes:,} bytes)"


def _modes(scan: Scan) -> tuple[Any, ...]:
    """The switches that a graph records: types, determinism, TF32, autocast, and which plans there are."""
    features = scan.features
    return features.dtype, modes.of(features), modes.autocast_dtype(features), _C.plans_in_use()
