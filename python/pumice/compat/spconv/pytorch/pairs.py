"""Tables of which input row meets which output row, as functions of spconv give them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .... import _C
from ...foreign import PeerAssertionError
from .. import constants
from ..core import ConvAlgo
from ..tools import CUDAKernelTimer
from .sizes import get_conv_output_size, get_deconv_output_size


class Table(NamedTuple):
    """`out_row` int64 [K, N]: the output row that each input row meets at each offset, or -1.
    `out_indices` int32 [M, 1 + D], in order of the cells, batch item first."""

    out_row: Tensor
    out_indices: Tensor

    def in_row(self) -> Tensor:
        """int64 [K, M], the other way round."""
        offsets, inputs = self.out_row.shape
        outputs = len(self.out_indices)
        # One column more takes the pairs that are none, so that nothing waits for their number.
        found = self.out_row.new_full((offsets, outputs + 1), -1)
        rows = torch.arange(inputs, device=found.device).expand(offsets, inputs)
        column = torch.where(self.out_row < 0, outputs, self.out_row)
        return found.scatter_(1, column, rows)[:, :outputs]


def get_indice_pairs(
    indices: Tensor,
    batch_size: int,
    spatial_shape: Sequence[int],
    algo: ConvAlgo,
    ksize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    out_padding: Sequence[int],
    subm: bool = False,
    transpose: bool = False,
    num_out_act_bound: int = -1,
) -> tuple[Tensor, Tensor, Tensor]:
    """(indices of the outputs int32 [M, 1 + D], pairs int32 [2, K, N], pairs per offset int32 [K]).

    For each offset the input rows and the output rows that meet, then -1. Of a submanifold layer the
    numbers of the offsets before the middle one are there alone, as in spconv: the others mirror
    them. `num_out_act_bound` bounds nothing here, as in spconv.
    """
    _check_indices(indices)
    table = _table(
        indices, batch_size, spatial_shape, ksize, stride, padding, dilation, out_padding, subm,
        transpose,
    )  # fmt: skip
    met = table.out_row >= 0
    # Those that meet come first, in order of their rows.
    order = (~met).to(torch.int8).argsort(dim=1, stable=True)
    inputs = torch.where(met.gather(1, order), order, -1)
    pairs = torch.stack([inputs, table.out_row.gather(1, order)]).to(torch.int32)
    numbers = met.sum(1, dtype=torch.int32)
    if subm:
        numbers[len(numbers) // 2 :] = 0
        return indices, pairs, numbers
    return table.out_indices, pairs, numbers


def get_indice_pairs_implicit_gemm(
    indices: Tensor,
    batch_size: int,
    spatial_shape: Sequence[int],
    algo: ConvAlgo,
    ksize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    out_padding: Sequence[int],
    subm: bool = False,
    transpose: bool = False,
    is_train: bool = True,
    alloc: Any = None,
    timer: CUDAKernelTimer = CUDAKernelTimer(False),
    num_out_act_bound: int = -1,
    direct_table: bool = constants.SPCONV_USE_DIRECT_TABLE,
    do_sort: bool = constants.SPCONV_DO_SORT,
) -> tuple[Any, ...]:
    """(indices of the outputs, pairs per offset, pair_fwd int32 [K, M], pair_bwd int32 [K, N], masks of
    pair_fwd, masks of pair_bwd, their orders of rows (2), filters of the masks).

    `pair_fwd` holds the input row of each output at each offset or -1, `pair_bwd` the output row of
    each input. Bit k of a row's mask says that offset k has a pair; masks int32 [rows, ceil(K / 32)]
    are sorted as unsigned numbers, and the order int32 [rows] says which row each is of. One of each,
    or two for MaskSplitImplicitGemm, each with its half of the offsets. What is of `pair_bwd` is empty
    without `is_train`, and its masks of a submanifold layer always. At most `num_out_act_bound` outputs
    are kept, if that is positive; the numbers of pairs are 0, as in spconv. `alloc`, `timer` and
    `direct_table` change nothing.
    """
    _check_indices(indices)
    if algo not in (ConvAlgo.MaskImplicitGemm, ConvAlgo.MaskSplitImplicitGemm):
        raise PeerAssertionError(
            f"algo = {algo}: get_indice_pairs_implicit_gemm takes MaskImplicitGemm or "
            "MaskSplitImplicitGemm; get_indice_pairs makes Native's"
        )
    offsets = math.prod(ksize)
    filters = _filters(offsets, algo)
    table = _table(
        indices, batch_size, spatial_shape, ksize, stride, padding, dilation, out_padding, subm,
        transpose,
    )  # fmt: skip
    if not subm and 0 < num_out_act_bound < len(table.out_indices):
        kept = torch.where(table.out_row < num_out_act_bound, table.out_row, -1)
        table = Table(kept, table.out_indices[:num_out_act_bound])
    forward = table.in_row()
    backward = table.out_row if is_train else torch.Tensor()
    masks, orders = _masks(forward, filters, do_sort)
    masks_back, orders_back = (
        _masks(backward, filters, do_sort) if is_train and not subm else ([], [])
    )
    return (
        indices if subm else table.out_indices,
        torch.zeros(offsets, dtype=torch.int32, device=indices.device),
        forward.to(torch.int32),
        backward.to(torch.int32) if is_train else backward,
        masks,
        masks_back,
        orders,
        orders_back,
        filters,
    )


def _check_indices(indices: Tensor) -> None:
    if indices.dim() != 2 or indices.dtype != torch.int32:
        raise PeerAssertionError(
            f"indices are {indices.dtype} {tuple(indices.shape)}: give int32 [rows, 1 + D], the "
            "batch index first"
        )


def _table(
    indices: Tensor,
    batch_size: int,
    spatial_shape: Sequence[int],
    ksize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    out_padding: Sequence[int],
    subm: bool,
    transpose: bool,
) -> Table:
    axes = indices.shape[1] - 1
    for name, given in (
        ("spatial_shape", spatial_shape), ("ksize", ksize), ("stride", stride), ("padding", padding),
        ("dilation", dilation),
    ):  # fmt: skip
        if len(given) != axes:
            raise PeerAssertionError(f"{name} = {list(given)}: give one number for each of {axes} axes")
    if subm:
        if any(size % 2 == 0 for size in ksize):
            raise PeerAssertionError(f"ksize = {list(ksize)}: a submanifold layer takes odd sizes")
        stride, padding = [1] * axes, [size // 2 * step for size, step in zip(ksize, dilation)]
        shape = [int(extent) for extent in spatial_shape]
    elif transpose:
        shape = get_deconv_output_size(spatial_shape, ksize, stride, padding, dilation, out_padding)
    else:
        shape = get_conv_output_size(spatial_shape, ksize, stride, padding, dilation)
    if any(extent <= 0 for extent in shape):
        raise _C.UserError(
            f"spatial_shape = {list(spatial_shape)} gives an output of {shape}: enlarge it or padding"
        )
    cells = indices.long()
    offsets = list(np.ndindex(*ksize))
    # One copy to the device for all of them.
    numbers = cells.new_tensor([*offsets, list(stride), list(padding), list(dilation), shape])
    window = numbers[len(offsets) :]
    keys = torch.stack([
        _reached(cells, offset, window, shape, transpose and not subm)
        for offset in numbers[: len(offsets)]
    ])  # fmt: skip
    if subm:
        own = _number(cells, shape)
        known, row = own.sort()
        out_indices = indices
    else:
        known = torch.unique(keys)
        if len(known) and int(known[0]) < 0:
            known = known[1:]
        if len(known) == 0 and constants.REFUSE_AS_SPCONV:
            raise _C.UserError(
                f"all of {len(indices)} sites vanish: spatial_shape = {list(spatial_shape)}, ksize = "
                f"{list(ksize)}, stride = {list(stride)}, padding = {list(padding)}: enlarge "
                "spatial_shape or padding"
            )
        row = torch.arange(len(known), device=known.device)
        out_indices = _cells(known, shape)
    if len(known) == 0:
        return Table(torch.full_like(keys, -1), out_indices)
    at = torch.searchsorted(known, keys).clamp_max(len(known) - 1)
    return Table(torch.where((known[at] == keys) & (keys >= 0), row[at], -1), out_indices)


def _reached(
    cells: Tensor, offset: Tensor, window: Tensor, shape: Sequence[int], transpose: bool
) -> Tensor:
    """int64 [N]: the number of the output cell that each input meets at this offset, or -1. `window`
    [4, D]: stride, padding, dilation, `shape`."""
    stride, padding, dilation, extent = window
    if transpose:
        out = cells[:, 1:] * stride - padding + offset * dilation
        inside = torch.ones_like(out, dtype=torch.bool)
    else:
        reach = cells[:, 1:] + padding - offset * dilation
        out = reach.div(stride, rounding_mode="floor")
        inside = out * stride == reach
    inside &= (out >= 0) & (out < extent)
    number = _number(torch.cat([cells[:, :1], out], 1), shape)
    return torch.where(inside.all(1), number, -1)


def _number(cells: Tensor, shape: Sequence[int]) -> Tensor:
    """int64: batch item first, the last axis fastest."""
    number = cells[:, 0]
    for axis, extent in enumerate(shape):
        number = number * extent + cells[:, axis + 1]
    return number


def _cells(numbers: Tensor, shape: Sequence[int]) -> Tensor:
    columns = []
    for extent in reversed(shape):
        columns.append(numbers % extent)
        numbers = numbers.div(extent, rounding_mode="floor")
    return torch.stack([numbers, *reversed(columns)], 1).to(torch.int32)


def _filters(offsets: int, algo: ConvAlgo) -> list[np.ndarray]:
    """Which of 32 bits each half of the masks has: uint32 [1] each."""
    if algo is not ConvAlgo.MaskSplitImplicitGemm:
        return [np.array([0xFFFFFFFF], dtype=np.uint32)]
    if offsets > 32:
        raise PeerAssertionError(
            f"a kernel of {offsets} offsets: MaskSplitImplicitGemm takes 32; MaskImplicitGemm takes more"
        )
    second = offsets // 2
    first = offsets - second
    halves = (1 << first) - 1, ((1 << second) - 1) << first
    return [np.array([half], dtype=np.uint32) for half in halves]


def _masks(
    rows: Tensor, filters: Sequence[np.ndarray], do_sort: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """(masks, their orders) of int64 [K, rows], one of each for each filter."""
    words = words_of(rows >= 0)
    masks, orders = [], []
    for kept in filters:
        part = words if len(filters) == 1 else words & int(kept.item())
        order = torch.arange(part.shape[0], device=part.device)
        if do_sort:
            for word in range(part.shape[1]):  # the last word counts most
                order = order[part[order, word].argsort(stable=True)]
        masks.append(_as_int32(part[order]))
        orders.append(order.to(torch.int32))
    return masks, orders


def words_of(met: Tensor) -> Tensor:
    """bool [K, rows] as int64 [rows, ceil(K / 32)] of 32 bits each."""
    offsets, rows = met.shape
    words = met.new_zeros((rows, -(-offsets // 32)), dtype=torch.int64)
    for k in range(offsets):
        words[:, k // 32] |= met[k].long() << (k % 32)
    return words


def _as_int32(words: Tensor) -> Tensor:
    """The same 32 bits, the highest of which is a sign."""
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)
