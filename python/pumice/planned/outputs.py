"""What a model returns, taken apart into leaves and put together again for a caller: exact where the host knows the
number of rows, with room for more and a count on the device where it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _C
from .._checks import kind_of
from ..coords import Coordinates
from ..nn import deferred
from .graph_call import GraphCall, OfGraph, RowsOfGraph
from .scans import Grid, Kind, Scan, kind_for

WHOLE, INPUT = "whole", "input"  # what the rows of a leaf are, beside those of a set


class Leaf(NamedTuple):
    """One value of an output, as a graph fills it."""

    values: Any  # a tensor; of WHOLE anything else that does not change
    rows: Any  # WHOLE; INPUT: those of the input, which the host knows, voxels or points; OfGraph; or a Counted set
    kind: Kind | None = None  # of a sparse tensor; None for a plain one


class Counted(NamedTuple):
    """A set whose rows only the device counts."""

    indices: Tensor  # int32 [capacity, 1 + D]
    count: Tensor  # int64 [1]
    grid: Grid


class CapacityTensor:
    """Features on sites that only the GPU has counted: there is room for `capacity` rows, the first `count` of which
    are in use. What comes after them is undefined.

    Args:
        indices: int32 [capacity, 1 + D], batch first.
        features: [capacity, C].
        count: int64 [1] on the same device, which nobody waited for; more than the capacity, or negative,
            where there were more rows than room.
        exact: (indices, features) -> the sparse tensor of the first rows.
        wait: raises what went wrong on the GPU; default: nothing can have.
    Raises:
        UserError: `rows()` and `exact()`, where there were more rows than room.
    Waits:
        `rows()` and `exact()`, for the GPU; nothing else.
    Example:
        >>> indices, features = torch.tensor([[0, 1], [0, 2], [0, 0]]), torch.ones(3, 4)
        >>> x = pumice.CapacityTensor(indices, features, torch.tensor([2]), lambda i, f: (i, f))
        >>> x.capacity, x.rows(), x.exact()[1].shape
        (3, 2, torch.Size([2, 4]))
    """

    __slots__ = ("_exact", "_wait", "count", "features", "indices")

    indices: Tensor
    features: Tensor
    count: Tensor

    def __init__(
        self,
        indices: Tensor,
        features: Tensor,
        count: Tensor,
        exact: Callable[[Tensor, Tensor], Any],
        wait: Callable[[], None] | None = None,
    ) -> None:
        self.indices = indices
        self.features = features
        self.count = count
        self._exact = exact
        self._wait = wait

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return self.features.shape[0]

    def rows(self) -> int:
        """How many rows are in use.

        Raises:
            UserError: where there were more rows than room, in this call or, named first, in one before it.
        Waits:
            For the GPU.
        """
        if self._wait is not None:
            self._wait()
        count = int(self.count.item())
        if not 0 <= count <= self.capacity:
            raise _C.UserError(
                f"these rows, of which there is room for {self.capacity}, follow from others of which more were "
                "needed than there was room for: compile with a larger ratio of buckets, or fallback='eager'"
            )
        return count

    def exact(self) -> Any:
        """The sparse tensor of the rows in use, of the kind that the model returned.

        Raises:
            UserError: where there were more rows than room, in this call or, named first, in one before it.
        Waits:
            For the GPU.
        """
        rows = self.rows()
        return self._exact(self.indices[:rows], self.features[:rows])

    def __repr__(self) -> str:
        return (
            f"CapacityTensor(features=[{self.capacity}, {self.features.shape[1]}] {self.features.dtype}, "
            f"device={self.features.device})"
        )


class Output(NamedTuple):
    """The leaves of an output, and how to put such together again."""

    leaves: list[Leaf]
    rebuild: Callable[[list[Any]], Any]


def take_apart(value: Any, sites: Any) -> Output:
    """`sites`: a SitesOfRun, or a RowsOfGraph. Leaves hold no graph of gradients. Raises UserError for what a caller could
    not be given anew in each call."""
    leaves: list[Leaf] = []
    rebuild = _walk(value, sites, leaves, "the output")
    return Output(leaves, lambda made: rebuild(iter(made)))


def whole_at(output: Output, places: Sequence[int]) -> Output:
    """The output, whose leaves at these places have rows of their own: as many as there are of something by chance."""
    leaves = [leaf._replace(rows=WHOLE) if at in places else leaf for at, leaf in enumerate(output.leaves)]
    return Output(leaves, output.rebuild)


def places_of_whole(output: Output) -> list[int]:
    """Where plain leaves have rows of their own."""
    return [at for at, leaf in enumerate(output.leaves) if leaf.kind is None and leaf.rows is WHOLE]


def _walk(value: Any, sites: Any, leaves: list[Leaf], name: str) -> Callable[[Any], Any]:
    if isinstance(value, Mapping):
        keys = list(value)
        parts = [_walk(value[key], sites, leaves, f"{name}[{key!r}]") for key in keys]
        return lambda made: {key: part(made) for key, part in zip(keys, parts)}
    if isinstance(value, (tuple, list)):
        parts = [_walk(item, sites, leaves, f"{name}[{at}]") for at, item in enumerate(value)]
        kind = type(value)
        if hasattr(kind, "_fields"):
            return lambda made: kind(*[part(made) for part in parts])
        return lambda made: kind([part(made) for part in parts])
    leaves.append(_leaf(value, sites, name))
    return next


def _leaf(value: Any, sites: Any, name: str) -> Leaf:
    kind = kind_for(value)
    if kind is not None:
        coords, features = kind.parts(value)
        return Leaf(features.detach(), sites.rows_of(coords), kind)
    if isinstance(value, Tensor):
        value = deferred.plain(value).detach()  # computed by now
        rows = sites.rows_like(value)
        return Leaf(value, WHOLE if rows is None else rows)
    if value is None or isinstance(value, (int, float, str, bool)):
        return Leaf(value, WHOLE)
    raise _C.UserError(
        f"{name} is {kind_of(value)}: a compiled model returns tensors, sparse tensors, and tuples, lists and "
        "dictionaries of them"
    )


class SitesOfRun:
    """The sites that a run made, by which rows of its outputs are told apart. `point_rows`: of what it makes for each
    point, where the input are points and `coords` their voxels, whose number only the device knows; `point_count`: int64
    [1], of the points in use, where there is room for more."""

    def __init__(
        self, coords: Coordinates, grid: Grid, point_rows: int | None = None, point_count: Tensor | None = None
    ) -> None:
        self.coords = coords
        self.grid = grid
        self.point_rows = point_rows
        self.point_count = point_count
        self._counted: list[tuple[_C.Sites, Counted]] = []

    def rows_of(self, coords: Coordinates) -> Any:
        """Those of a sparse tensor on `coords`."""
        if coords.is_same(self.coords):
            return self._of_input()
        return self._count(coords)

    def rows_like(self, tensor: Tensor) -> Any:
        """Those of a plain tensor: of the sites that have, or have room for, as many."""
        rows = tensor.shape[0] if tensor.dim() > 0 else -1
        if rows == self.point_rows:
            return INPUT
        if rows == self.coords.rows:
            return self._of_input()
        for map in _C.maps_of(self.coords.sites):
            for sites in (map.out_sites, map.in_sites):
                if sites.rows == rows:
                    return self._count(Coordinates._of(sites))
        return WHOLE

    def _of_input(self) -> Any:
        return INPUT if self.point_rows is None else self._count(self.coords)

    def _count(self, coords: Coordinates) -> Counted:
        sites = coords.sites
        for known, counted in self._counted:
            if known.is_same(sites):
                return counted
        indices = coords.indices
        count = torch.empty(1, dtype=torch.int64, device=indices.device)
        if sites.host_knows:
            count.fill_(sites.rows)
        else:
            _C.copy_row_count(sites, count)
        shape = coords.spatial_shape
        grid = Grid(coords.dimension, coords.batch_size, shape, coords.stride)
        self._counted.append((sites, Counted(indices, count, grid)))
        return self._counted[-1][1]


def rows_of_pass(scan: Any, coords: Coordinates | None) -> Any:
    """What the rows of outputs are in an eager pass of a call on `coords`, of which a graph has none."""
    if isinstance(scan, GraphCall):
        return RowsOfGraph(scan.sizes, None)
    assert coords is not None
    return SitesOfRun(coords, scan.grid, scan.point_rows)


def hand_out(
    output: Output, scan: Any, copy: Callable[[Tensor, int | None], Tensor], wait: Callable[[], None] | None
) -> Any:
    """The output for a caller of `scan`. `copy(tensor, rows)` gives the first rows, or all, in memory of their own."""
    copies: dict[int, Tensor] = {}  # indices and counts that several leaves share

    def once(tensor: Tensor) -> Tensor:
        if id(tensor) not in copies:
            copies[id(tensor)] = copy(tensor, None)
        return copies[id(tensor)]

    made = []
    for values, rows, kind in output.leaves:
        if not isinstance(values, Tensor):
            made.append(values)
        elif rows is WHOLE:
            made.append(copy(values, None))
        elif isinstance(rows, OfGraph):
            made.append(copy(values, scan.sizes[rows.at]))
        elif rows is INPUT:
            features = copy(values, scan.rows)
            made.append(features if kind is None else _on_input(kind, scan, features))
        else:
            made.append(_with_room(kind, rows, once, copy(values, None), wait))
    return output.rebuild(made)


def _on_input(kind: Kind, scan: Scan, features: Tensor) -> Any:
    if kind is scan.kind and scan.given is not None:
        return kind.replaced(scan.given, features)
    return kind.of(scan.indices, features, scan.grid)


def _with_room(
    kind: Kind | None,
    rows: Counted,
    once: Callable[[Tensor], Tensor],
    features: Tensor,
    wait: Callable[[], None] | None,
) -> CapacityTensor:
    if kind is None:
        exact: Callable[[Tensor, Tensor], Any] = lambda indices, features: features  # noqa: E731
    else:
        exact = lambda indices, features: kind.of(indices, features, rows.grid)  # noqa: E731
    return CapacityTensor(once(rows.indices), features, once(rows.count), exact, wait)
