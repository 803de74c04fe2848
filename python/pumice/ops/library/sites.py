"""Registers the operators that make sites from points or from other sites, unite and prune them, and compare
them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._checks import whole_number
from ..._registry import define, differentiate, fake_token, unknown_size
from ..._sites import items_of

_ops = torch.ops.pumice


def _item_indices(indices: Tensor, batch_size: int, item: int) -> Tensor:
    if batch_size > 1:
        raise _C.UserError(
            f"collate: tensors[{item}] has a batch_size of {batch_size}: give tensors of one batch "
            "item each"
        )
    cells = indices.clone()
    cells[:, 0] = item
    return cells


define(
    "item_indices(Tensor indices, SymInt batch_size, SymInt item) -> Tensor",
    _item_indices,
    lambda indices, batch_size, item: torch.empty_like(indices),
)


def find_voxels(
    positions: Tensor,
    batch: Tensor | None,
    size: Sequence[float],
    range: Sequence[float] | None,
    spatial_shape: Sequence[int] | None,
    batch_size: int | None,
) -> tuple[_C.Sites, Tensor]:
    """(sites, int32 [P] row of each point): of float32 positions [P, 3 or more] and int32 items [P]; see
    `pumice.voxelize`."""
    if batch_size is None:
        batch_size = 1 if batch is None or len(batch) == 0 else int(batch.max()) + 1
        if batch_size > 2**31 - 1:
            raise _C.UserError("batch holds items of 2^31 - 1 or more: count them from 0")
        batch_size = max(batch_size, 1)  # so that the engine looks at the items
    else:
        batch_size = whole_number("batch_size", batch_size, 1, 2**31 - 1)
    bounds = None
    if positions.is_cuda and range is None and spatial_shape is None and len(positions) > 0:
        bounds = torch.stack(torch.aminmax(positions[:, :3], dim=0)).flatten().tolist()
    try:
        return _C.voxel_sites(
            positions, batch, size, range, spatial_shape, batch_size, bounds
        )
    except _C.NoCellError:
        too_far = _too_far(positions, size, range)
        if not too_far:
            raise
        raise _C.UserError(too_far) from None


def _too_far(positions: Tensor, size: Sequence[float], range: Sequence[float] | None) -> str:
    """What to say of the first point that has no cell: as of points that are arrays. Empty where it is no number."""
    at = positions[:, :3].cpu()
    bounds = torch.tensor([0.0] * 3 if range is None else range)
    finite = at.isfinite().all(1)
    kept = finite if range is None else finite & ((at >= bounds[:3]) & (at < bounds[3:])).all(1)
    cells = torch.floor((at - bounds[:3]) / torch.tensor(size))
    misfits = kept[:, None] & ~((cells >= -(2.0**31)) & (cells < 2.0**31))
    wrong = (misfits.any(1) | ~finite).nonzero()[:, 0].tolist()
    if not wrong or not finite[wrong[0]]:
        return ""
    point = wrong[0]
    axis = misfits[point].tolist().index(True)
    return (
        f"point {point} has {'xyz'[axis]} = {at[point, axis].item():g} m, which is cell {cells[point, axis].item():g} at "
        f"{size[axis]:g} m a voxel and does not fit 32 bits; use larger voxels or give a range"
    )


def _voxel_sites(
    positions: Tensor,
    batch: Tensor | None,
    size: list[float],
    range: list[float] | None,
    spatial_shape: list[int] | None,
    batch_size: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch = None if batch is None else batch.contiguous()
    made = find_voxels(positions.contiguous(), batch, size, range, spatial_shape, batch_size)
    sites, row_of = made
    cells = sites.coordinates()
    return _C.sites_token(sites), cells, row_of, items_of(cells, sites.batch_size)


def _fake_voxel_sites(
    positions: Tensor, batch: Any, size: Any, range: Any, spatial_shape: Any, batch_size: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    cells = positions.new_empty((unknown_size(), 4), dtype=torch.int32)
    row_of = positions.new_empty((positions.shape[0],), dtype=torch.int32)
    items = items_of(cells, unknown_size() if batch_size is None else torch.sym_max(batch_size, 1))
    return fake_token(positions), cells, row_of, items


define(
    "voxel_sites(Tensor positions, Tensor? batch, float[] size, float[]? range, "
    "SymInt[]? spatial_shape, SymInt? batch_size) -> (Tensor, Tensor, Tensor, Tensor)",
    _voxel_sites,
    _fake_voxel_sites,
)


def _finer_sites(sites: Tensor, indices: Tensor, stride: list[int]) -> tuple[Tensor, Tensor]:
    fine = _C.finer_sites(_C.sites_of(sites), stride)
    if fine is None:
        raise _C.UserError(
            f"no convolution of stride {stride} led to these sites: pass the tensor to go to"
        )
    return _C.sites_token(fine), fine.coordinates()


define(
    "finer_sites(Tensor sites, Tensor indices, int[] stride) -> (Tensor, Tensor)",
    _finer_sites,
    lambda sites, indices, stride: (
        fake_token(sites),
        indices.new_empty((unknown_size(), indices.shape[1])),
    ),
)


def _prune_sites(sites: Tensor, indices: Tensor, keep: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    pruned, kept = _C.sites_of(sites).prune((keep != 0).byte().contiguous())
    return _C.sites_token(pruned), pruned.coordinates(), kept.long()


def _fake_prune_sites(
    sites: Tensor, indices: Tensor, keep: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    rows = unknown_size()
    return (
        fake_token(sites),
        indices.new_empty((rows, indices.shape[1])),
        indices.new_empty((rows,), dtype=torch.int64),
    )


define(
    "prune_sites(Tensor sites, Tensor indices, Tensor keep) -> (Tensor, Tensor, Tensor)",
    _prune_sites,
    _fake_prune_sites,
)

_United = tuple[Tensor, Tensor, Tensor, Tensor]  # sites, indices, rows of the left, of the right


def _unite_sites(left: Tensor, right: Tensor, indices: Tensor, others: Tensor) -> _United:
    mine, theirs = _C.sites_of(left), _C.sites_of(right)
    if mine.is_same(theirs):  # and stay so, as in eager calls
        rows = torch.arange(mine.rows, dtype=torch.int32, device=indices.device)
        return _C.sites_token(mine), indices.clone(), rows, rows.clone()
    united, left_row, right_row = mine.unite(theirs)
    return (
        _C.sites_token(united),
        united.coordinates(),
        left_row.clone(),
        right_row.clone(),
    )


define(
    "unite_sites(Tensor left, Tensor right, Tensor indices, Tensor others) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
    _unite_sites,
    lambda left, right, indices, others: (
        fake_token(left),
        indices.new_empty((unknown_size(), indices.shape[1])),
        indices.new_empty((indices.shape[0],)),
        others.new_empty((others.shape[0],)),
    ),
)


def _on_sites(
    features: Tensor, sites: Tensor, wanted: Tensor, in_rows: int, out_rows: int, what: str
) -> Tensor:
    if not _C.sites_of(sites).is_same(_C.sites_of(wanted)):
        raise _C.UserError(
            f"{what}: the tensors have {out_rows} and {in_rows} rows on different sites; use "
            "pumice.ops.union_add, or give one the Coordinates of the other"
        )
    return features.clone()


def _keep_on_sites(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, sites, wanted, ctx.in_rows, ctx.out_rows, ctx.what = inputs
    ctx.save_for_backward(sites, wanted)


def _of_on_sites(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    sites, wanted = ctx.saved_tensors
    back = _ops.on_sites(grad, wanted, sites, ctx.out_rows, ctx.in_rows, ctx.what)
    return back, None, None, None, None, None


define(
    "on_sites(Tensor features, Tensor sites, Tensor wanted, SymInt in_rows, SymInt out_rows, "
    "str what) -> Tensor",
    _on_sites,
    lambda features, sites, wanted, in_rows, out_rows, what: features.new_empty(
        (out_rows, features.shape[1])
    ),
)
differentiate("on_sites", _keep_on_sites, _of_on_sites)
