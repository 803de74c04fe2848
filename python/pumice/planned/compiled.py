"""Defines `compile`, and the models that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._sites import standing_on
from ..coords import Coordinates
from ..voxels import Voxelizer
from .bucket import Bucket
from .graph_bucket import GraphBucket
from .graph_call import GraphCall
from .calls import EAGER_CALLS, Options, Planned
from .outputs import INPUT, WHOLE, Output, hand_out, rows_of_pass, take_apart, whole_at
from .point_bucket import PointBucket
from .recorder import Recorder
from .scans import Scan
from .sizes import TooManyVoxels
from .state import ModelState, check_runnable
from .watch import cannot_be_recorded, first_line


_FEW = 33  # rows, so that what depends on their number by a share of it differs by 3 %


def compile(
    model: torch.nn.Module,
    *,
    max_voxels: int | None = None,
    buckets: float = 1.25,
    max_bytes: int | None = None,
    fallback: str = "raise",
    eager: bool = False,
    input: Callable[[Any], Any] | None = None,
    voxelize: Voxelizer | None = None,
) -> CompiledModel:
    """Makes a function that runs `model` as CUDA graphs, with other voxels in every call, for inference.

    The rows of a call choose a bucket: room for 1024 · buckets^n voxels. The first two calls of a bucket
    run eagerly; the third records sites, kernel maps and layers as one graph, which it and all later ones
    replay. Weights are packed once; where parameters, buffers or modules change, graphs are recorded anew.
    PyTorch does not count writes through `.data`: call `forget()` after them. On the CPU the model runs as it is.

    Args:
        model: a module in evaluation, of layers of `pumice.nn`, `pumice.nn.graph` or `pumice.compat`, and of modules
            of torch.nn that take each row for itself.
        max_voxels: the most rows a call may have, of nodes too; the largest bucket has room for just so many. Default:
            a larger scan opens a larger bucket.
        buckets: the ratio between the room of one bucket and the next, above 1.
        max_bytes: of all buckets; the least recently used go first. There are at most 16 in any case.
        fallback: what becomes of a scan that has more voxels than `max_voxels`, or leads to more rows or
            pairs than a bucket has room for: "raise", or "eager", which runs it as the model does, and
            for that waits in every call.
        eager: run what was learned without a graph, which is slower, and which a debugger can follow.
        input: makes of a `SparseTensor` what the model is called with, a tuple for several arguments; default:
            what the call was given. Sites that the model makes of `x.indices` itself are those of the call.
        voxelize: how voxels are made of points, as part of the graph. Calls are given points then, `input` is given
            `TensorVoxels`, buckets are sizes of points, and `max_voxels` is the room for voxels of each; by default that
            is learned, as that of coarser sites is.
    Returns:
        A function of (coords, features, batch_size=1, spatial_shape=None, stride=None), or of one sparse
        tensor, that gives what the model returns; with `voxelize` of (points, features=all columns, batch=None,
        batch_size=1); for models on graphs of (features of nodes, edges, more).
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
    options = Options.checked(model, max_voxels, buckets, max_bytes, fallback, eager, input, voxelize)
    check_runnable(model)
    return CompiledModel(model, options)


class CompiledModel(Planned):
    """A model as CUDA graphs: see `compile`.

    A call takes coords int32 or int64 [N, 1 + D] and features, 2-D [N, C], with what it declares of the sites,
    batch_size (default 1), spatial_shape and stride, or one sparse tensor; it runs without gradients, under the
    autocast of the caller. It returns what the model does, in memory of its own: features on the sites of
    the input are exact; on other sites, which only the GPU has counted, a `CapacityTensor` stands for them.
    Without a spatial shape, scans may lie in the bounds of a bucket's first one, wider by half its extent on
    either side.

    With `voxelize` a call takes points [P, 3 or more], features [P, C] and batch, integers [P]. Only the GPU knows how many
    voxels there are, so that features on them are `CapacityTensor`s. What the model makes for each point, as
    `TensorVoxels.at_points` and `Voxelizer(at_points=True)` do, is exact, [P, C'].

    Models on graphs are called as they are: with features of nodes, 2-D [N, C], and edges, [2, E], a `Graph`, a `TypedGraph` or
    several, or with dictionaries of both by types. More tensors go with nodes or edges where they have as many rows in every
    call, others have the same shape in each call of a bucket, which has room for a power of two of edges.

    A scan that a bucket has no room for, or that lies out of bounds, makes results that are no numbers, and
    the next call that waits (`wait()`, or `rows()` and `exact()` of a result) raises UserError with the sites,
    what they needed, and the room. So does a later call, as soon as the GPU has come to it.

    Calls may come from several threads and streams; one bucket runs at a time.

    Args:
        model: as `compile` takes it.
        options: the other arguments of `compile`, which it has checked.
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

    def __init__(self, model: torch.nn.Module, options: Options) -> None:
        super().__init__(model, options)
        self._state: ModelState | None = None

    def __call__(
        self,
        *given: Any,
        batch_size: int | None = None,
        spatial_shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        batch: Tensor | None = None,
        **named: Any,
    ) -> Any:
        """The model of these voxels, points, or nodes and edges."""
        scan = self._scan(given, batch_size, spatial_shape, stride, batch, named)
        with self._lock:
            bucket = self._bucket_of(scan)
            if bucket is None:
                return self._as_it_is(scan)
            self._raise_trouble()
            try:
                if bucket.calls < EAGER_CALLS:
                    return self._learning_from(scan, bucket)
                return self._by_plan(bucket, scan)
            except TooManyVoxels:
                if not self.options.falls_back:
                    raise
                return self._as_it_is(scan)

    def plan(
        self,
        *given: Any,
        batch_size: int | None = None,
        spatial_shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        batch: Tensor | None = None,
        **named: Any,
    ) -> int:
        """Learns and records what calls with such scans need, and returns how many bytes that holds, before it runs;
        the first call runs the graph then. Takes what a call does.

        Returns:
            The bytes of the bucket's inputs, and what its graph added to the memory that all graphs share; 0 on the
            CPU and for scans that run eagerly.
        Waits:
            For the GPU.
        """
        scan = self._scan(given, batch_size, spatial_shape, stride, batch, named)
        with self._lock:
            bucket = self._bucket_of(scan)
            if bucket is None:
                return 0
            while bucket.calls < EAGER_CALLS:
                self._learning_from(scan, bucket)
            self._renew(bucket, scan)
            return bucket.bytes

    def _check(self) -> None:
        if self.model.training:
            check_runnable(self.model)

    def _bucket_of(self, scan: Scan) -> Bucket | None:
        return self._bucket_for(scan, (), self._new_bucket)

    def _new_bucket(self, recorder: Recorder, capacity: int, scan: Any) -> Bucket:
        if isinstance(scan, GraphCall):
            return GraphBucket(recorder, capacity, scan)
        if self.options.voxelizer is None:
            return Bucket(recorder, capacity, scan)
        bucket = PointBucket(recorder, capacity, scan)
        bucket.max_voxels = self.options.max_voxels
        return bucket

    def _eager(self, scan: Any, x: Any) -> tuple[Any, Output]:
        if isinstance(scan, GraphCall):
            output = take_apart(self._call(x), rows_of_pass(scan, None))
            self._seen.keep(scan.sightings)
            return None, output
        coords = scan.coords_of(x)
        sites = rows_of_pass(scan, coords)
        with standing_on(coords):
            output = take_apart(self._call(x), sites)
        if self._is_at_points:  # what is left with as many rows as there are voxels has them by chance
            of_voxels = sites.rows_of(coords)
            output = whole_at(
                output, [at for at, leaf in enumerate(output.leaves) if leaf.kind is None and leaf.rows is of_voxels]
            )
        if scan.point_rows != coords.rows or not any(leaf.rows is INPUT for leaf in output.leaves):
            return coords, output
        # Each point has a voxel of its own, and rows do not tell which are meant; those of other points do.
        other = scan.with_a_shared_voxel()
        _, told = self._eager(other, other.fresh())
        on_voxels = sites.rows_of(coords)
        leaves = [
            leaf._replace(rows=known.rows if known.rows is INPUT or known.rows is WHOLE else on_voxels)
            if leaf.rows is INPUT
            else leaf
            for leaf, known in zip(output.leaves, told.leaves)
        ]
        return coords, Output(leaves, output.rebuild)

    def _as_it_is(self, scan: Scan) -> Any:
        with torch.no_grad():
            return _as_made(self._eager(scan, scan.input())[1], scan)

    def _learned(self, scan: Scan, bucket: Bucket) -> Output:
        """An eager pass, from which the bucket learns."""
        with torch.no_grad():
            # Of a sparse tensor that was given, other maps may be known than this model's.
            coords, output = self._eager(scan, scan.fresh())
            bucket.learn(coords, scan)
        return output

    def _learning_from(self, scan: Scan, bucket: Bucket) -> Any:
        made = _as_made(self._learned(scan, bucket), scan)
        bucket.calls += 1
        return made

    def _by_plan(self, bucket: Bucket, scan: Scan) -> Any:
        if not bucket.is_prepared:
            self._renew(bucket, scan)
        result = bucket.run(scan)
        # The device is busy by now, so that looking takes no time of it.
        if self._state is None or not self._state.holds():
            self._renew(bucket, scan)
            result = bucket.run(scan)
        if self.options.falls_back:
            try:
                self.wait()
            except _C.UserError:
                output = self._learned(scan, bucket)
                bucket.drop()
                return _as_made(output, scan)
        return result

    def _renew(self, bucket: Bucket, scan: Scan) -> None:
        """Records the bucket where it is not, and gives up all graphs of a model that was another."""
        if self._state is not None and not self._state.holds():
            self._forget_graphs()
        if bucket.is_prepared:
            return
        check_runnable(self.model)
        expected = self._learned(scan, bucket)  # this very scan has room in any case
        if isinstance(scan, Scan) and scan.rows == bucket.capacity:
            expected = self._told_by_fewer(scan, expected)
        bucket.prepare(scan, expected, waits=self.options.eager, few=self._of_few(scan))
        if self._state is None:
            self._state = ModelState(self.model)
        if not self.options.eager:
            try:
                bucket.record()
            except torch.cuda.OutOfMemoryError:
                raise
            except (_C.Error, ValueError, RuntimeError) as error:
                raise cannot_be_recorded(self.model, None, first_line(error)) from error
        for dropped in self._buckets.shrink():
            dropped.drop()

    def _of_few(self, scan: Any) -> tuple[Any, Output] | None:
        """The first voxels or points of a scan, and what the model makes of them eagerly; None where there are no more, of
        nodes, which edges join to all others, and of a model that takes no so few."""
        if isinstance(scan, GraphCall) or scan.rows <= _FEW:
            return None
        few = scan.first(_FEW)
        with torch.no_grad():
            try:
                return few, self._eager(few, few.fresh())[1]
            except torch.cuda.OutOfMemoryError:
                raise
            except (_C.UserError, ValueError, RuntimeError):
                return None

    def _told_by_fewer(self, scan: Scan, output: Output) -> Output:
        """With as many voxels as there is room for, only another scan tells which tensors have as many rows by chance."""
        fewer = scan.first(scan.rows - 1)
        with torch.no_grad():
            told = self._eager(fewer, fewer.fresh())[1]
        pairs = enumerate(zip(output.leaves, told.leaves))
        return whole_at(
            output,
            [at for at, (leaf, other) in pairs if leaf.kind is None and leaf.rows is INPUT and other.rows is not INPUT],
        )

    def _forget_graphs(self) -> None:
        self._state = None
        super()._forget_graphs()


def _as_made(output: Output, scan: Scan) -> Any:
    def of(tensor: Tensor, rows: int | None) -> Tensor:
        return tensor if rows is None or rows == tensor.shape[0] else tensor[:rows]

    return hand_out(output, scan, of, None)
