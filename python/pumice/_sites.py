"""Checks the coordinates that a user gives and makes sites of them: at once, or by an operator in a graph."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from . import _C, _framework  # noqa: F401  (connects PyTorch)
from ._checks import shown, warn_once, whole_number
from ._registry import define, fake_token, unknown_size
from ._tensors import check_tensor, no_tensor

NO_TRACING = (
    "ONNX and TorchScript have no sparse tensors, so torch.onnx.export, torch.jit.trace and torch.jit.script cannot export them: "
    "use torch.export, or run the network in C++ or with `pumice run`"
)

# Batches of more items are rare enough to look twice.
_MANY_ITEMS = 64


class _Standing(threading.local):
    coords: Any = None  # Coordinates


_standing = _Standing()


@contextmanager
def standing_on(coords: Any) -> Iterator[None]:
    """In it, who makes sites of the very tensor `coords.indices` gets those of these `Coordinates`."""
    before, _standing.coords = _standing.coords, coords
    try:
        yield
    finally:
        _standing.coords = before


def sites_that_stand(
    indices: Tensor, spatial_shape: Sequence[int] | None, batch_size: int | None, stride: Sequence[int] | None
) -> Any:
    """The coordinates of `standing_on` where `indices` are theirs, else None. UserError where the grid is another."""
    coords = _standing.coords
    if coords is None:
        return None
    known = coords.indices
    if indices is not known and (
        indices.shape != known.shape
        or indices.dtype != known.dtype
        or indices.device != known.device
        or indices.data_ptr() != known.data_ptr()
    ):
        return None
    dimension = known.shape[1] - 1
    for name, given, declared in (
        ("spatial_shape", axis_numbers("spatial_shape", spatial_shape, dimension), coords.spatial_shape),
        ("stride", axis_numbers("stride", stride, dimension), coords.stride),
        ("batch_size", batch_size, coords.batch_size),
    ):
        if given is None:
            continue
        wanted = given if name == "batch_size" else tuple(given)  # type: ignore[arg-type]
        if wanted != declared:
            raise _C.UserError(
                f"the model makes sites with {name} = {given} of coords that a compiled model was given with {declared}: "
                f"give {name} to the call"
            )
    _standing.coords = None  # its sites may be made now, of these very indices
    try:
        _ = coords.sites
    finally:
        _standing.coords = coords
    return coords


def make_sites(
    indices: Tensor,
    spatial_shape: Sequence[int] | None,
    batch_size: int | None,
    stride: Sequence[int] | None,
) -> tuple[_C.Sites, Tensor]:
    """(sites, int32 [N, 1 + D] of their own memory); the arguments are those of `Coordinates`."""
    if torch.jit.is_tracing():   # which would write down the sites of one scan as constants
        raise _C.UserError(NO_TRACING)
    known = None if _standing.coords is None else sites_that_stand(indices, spatial_shape, batch_size, stride)
    if known is not None:
        return known.sites, indices
    cells = as_cells(indices)
    sites = _C.create_sites(cells, *site_options(cells, spatial_shape, batch_size, stride))
    if batch_size is None and sites.batch_size > _MANY_ITEMS:
        _warn_of_a_batch_column_at_the_end(cells)
    if cells.is_cuda and (spatial_shape is None or batch_size is None):
        _C.wait(sites.device)
    # The caller may write into a tensor of its own afterwards; the sites stay as they are.
    return sites, cells.clone() if cells is indices else cells


def as_cells(indices: Tensor) -> Tensor:
    """`indices` as contiguous int32 [N, 1 + D]. Raises UserError for other shapes, types and values."""
    if not isinstance(indices, Tensor):
        raise _C.UserError(no_tensor("coords", indices, "are"))
    check_tensor("coords", indices)
    if indices.dim() != 2 or not 2 <= indices.shape[1] <= 5:
        raise _C.UserError(
            f"coords have shape {tuple(indices.shape)}: give [rows, 1 + D], the batch index first, "
            "for D = 1 to 4"
        )
    if indices.dtype == torch.int64:
        cells = indices.to(torch.int32)
        if not bool((cells == indices).all()):
            raise _C.UserError("coords hold values that int32 does not: move them towards 0")
        indices = cells
    if indices.dtype != torch.int32:
        raise _C.UserError(f"coords are {indices.dtype}: give int32 or int64, as coords.int() makes")
    return indices.contiguous()


def site_options(
    cells: Tensor,
    spatial_shape: Sequence[int] | None,
    batch_size: int | None,
    stride: Sequence[int] | None,
) -> tuple[Any, ...]:
    """(stride, spatial shape, batch size, lowest site, highest site) for the extension, which on a
    GPU has to know the last three."""
    dimension = cells.shape[1] - 1
    strides = axis_numbers("stride", stride, dimension)
    shape = axis_numbers("spatial_shape", spatial_shape, dimension)
    if batch_size is not None:
        batch_size = whole_number("batch_size", batch_size, -(2**31), 2**31 - 1)
    if not cells.is_cuda or cells.shape[0] == 0:
        return strides, shape, batch_size, None, None
    if shape is not None and batch_size is not None:
        return strides, shape, batch_size, [0] * dimension, [extent - 1 for extent in shape]
    low, high = torch.stack(torch.aminmax(cells, dim=0)).tolist()
    if low[0] < 0:
        raise _C.UserError(f"coords have batch index {low[0]}: the first column counts from 0")
    if batch_size is not None and high[0] >= batch_size:
        raise _C.UserError(f"coords have batch index {high[0]} in a batch of {batch_size}")
    for axis, extent in enumerate(shape or []):
        if low[axis + 1] < 0 or high[axis + 1] >= extent:
            raise _C.UserError(
                f"coords go from {low[axis + 1]} to {high[axis + 1]} on axis {axis}, where "
                f"spatial_shape is {extent}: give a larger one, or crop"
            )
    return strides, shape, high[0] + 1 if batch_size is None else batch_size, low[1:], high[1:]


def axis_numbers(name: str, values: Sequence[int] | None, dimension: int) -> list[int] | None:
    """`values`, one whole number for each axis. Raises UserError, naming them, for anything else but None."""
    if values is None:
        return None
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or getattr(values, "ndim", 1) == 0:
        example = [values] * dimension if isinstance(values, int) else [64] * dimension
        raise _C.UserError(f"{name} {shown(values)}: give {dimension} numbers, one for each axis, as {example}")
    numbers = [whole_number(name, value, -(2**31), 2**31 - 1) for value in values]
    if len(numbers) != dimension:
        raise _C.UserError(
            f"{name} = {numbers} has {len(numbers)} numbers: give one for each of {dimension} axes"
        )
    return numbers


def _warn_of_a_batch_column_at_the_end(cells: Tensor) -> None:
    """Warns once where the first column is in no order and the last one counts up from 0, as the batch index
    of scans that were joined does."""
    first, last = cells[:, 0], cells[:, -1]
    ordered = (last[1:] >= last[:-1]).all() & (last[:1] == 0).all() & (first[1:] < first[:-1]).any()
    if bool(ordered):
        warn_once(
            "batch column",
            f"coords have batch indices up to {int(first.max())} in no order, and a last column that counts up "
            f"from 0 to {int(last[-1])}: the batch index is the first column, and coords.roll(1, 1) brings the "
            "last one there; give batch_size where this is right as it is",
        )


# In a graph (compiled or exported) an operator makes the sites.


def trace_sites(
    indices: Tensor,
    spatial_shape: Sequence[int] | None,
    batch_size: int | None,
    stride: Sequence[int] | None,
) -> tuple[Tensor, Tensor, tuple[Any, ...]]:
    """`make_sites` in a graph: (token, int32 indices, (batch size, stride, spatial shape))."""
    shape = None if spatial_shape is None else list(spatial_shape)
    steps = None if stride is None else list(stride)
    token, cells, items = torch.ops.pumice.create_sites(indices, shape, batch_size, steps)
    if steps is None:
        steps = [1] * _dimension(indices)
    return token, cells, known_of(items, batch_size, steps, shape)


def known_of(
    items: Tensor, batch_size: int | None, stride: list[int], shape: list[int] | None
) -> tuple[Any, ...]:
    """(batch size, stride, spatial shape) in a graph; `items` is what `items_of` makes."""
    return (
        items.shape[0] if batch_size is None else batch_size,
        tuple(stride),
        None if shape is None else tuple(shape),
    )


def items_of(indices: Tensor, batch_size: Any) -> Tensor:
    """A tensor whose extent is the number of batch items, by which an operator tells it to a graph."""
    return indices.new_empty((batch_size,), dtype=torch.uint8, device="cpu")


def _dimension(indices: Tensor) -> int:
    """Compared rather than taken, so that it is a number where extents have no values."""
    for dimension in range(1, 5):
        if indices.shape[1] == 1 + dimension:
            return dimension
    raise _C.UserError("coords are [rows, 1 + D], the batch index first, for D = 1 to 4")


def _create_sites(
    indices: Tensor,
    spatial_shape: list[int] | None,
    batch_size: int | None,
    stride: list[int] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    sites, cells = make_sites(indices, spatial_shape, batch_size, stride)
    return _C.sites_token(sites), cells, items_of(indices, sites.batch_size)


def _fake_create_sites(
    indices: Tensor, spatial_shape: Any, batch_size: Any, stride: Any
) -> tuple[Tensor, Tensor, Tensor]:
    if torch.onnx.is_in_onnx_export():   # asked at every way it tries
        raise _C.UserError(NO_TRACING)
    cells = indices.new_empty(indices.shape, dtype=torch.int32)
    items = items_of(indices, unknown_size() if batch_size is None else batch_size)
    return fake_token(indices), cells, items


define(
    "create_sites(Tensor indices, SymInt[]? spatial_shape, SymInt? batch_size, SymInt[]? stride) -> "
    "(Tensor, Tensor, Tensor)",
    _create_sites,
    _fake_create_sites,
)
