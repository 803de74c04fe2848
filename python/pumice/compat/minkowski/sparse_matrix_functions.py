"""Products of sparse matrices, by PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..foreign import PeerAssertionError
from .function import MinkowskiFunction


def spmm(
    rows: Tensor, cols: Tensor, vals: Tensor, size: Sequence[int], mat: Tensor,
    is_sorted: bool = False, cuda_spmm_alg: int = 1,
) -> Tensor:
    """[size[0], C]: the matrix with `vals` at (rows, cols), times `mat` [size[1], C]. Equal places add up;
    PyTorch chooses the algorithm and asks for no order."""
    _check_places(rows, cols, mat)
    if len(rows) != len(vals) or vals.dtype != mat.dtype or vals.device != mat.device:
        raise PeerAssertionError(
            f"spmm: {len(rows)} rows, and vals {tuple(vals.shape)} {vals.dtype} on {vals.device} beside mat of "
            f"{mat.dtype} on {mat.device}: give as many values, of the type and the device of mat"
        )
    places = torch.stack([rows.long(), cols.long()])
    # Places outside raise, here as on a GPU; PyTorch looks only where it is asked to.
    matrix = torch.sparse_coo_tensor(places, vals, tuple(size), check_invariants=True)
    return torch.sparse.mm(matrix, mat)


def spmm_average(
    rows: Tensor, cols: Tensor, size: Sequence[int], mat: Tensor, cuda_spmm_alg: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """(each row's mean of the rows of `mat` at its columns, the places int64 [2, N] in the order of their
    rows, the weight of each)."""
    _check_places(rows, cols, mat)
    order = torch.argsort(rows, stable=True)
    places = torch.stack([rows[order], cols[order]]).long()
    counts = torch.bincount(places[0], minlength=size[0])
    weights = counts.to(mat.dtype).reciprocal()[places[0]]
    return spmm(places[0], places[1], weights, size, mat), places, weights


def _check_places(rows: Tensor, cols: Tensor, mat: Tensor) -> None:
    if len(rows) != len(cols) or not rows.device == cols.device == mat.device:
        raise PeerAssertionError(
            f"spmm: {len(rows)} rows on {rows.device} and {len(cols)} columns on {cols.device} beside mat on "
            f"{mat.device}: give as many, on one device"
        )


class MinkowskiSPMMFunction(MinkowskiFunction):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, cols: Tensor, vals: Tensor, size: Sequence[int], mat: Tensor,
        cuda_spmm_alg: int = 1,
    ) -> Tensor:
        return spmm(rows, cols, vals, size, mat)


class MinkowskiSPMMAverageFunction(MinkowskiFunction):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, cols: Tensor, size: Sequence[int], mat: Tensor, cuda_spmm_alg: int = 1
    ) -> Tensor:
        return spmm_average(rows, cols, size, mat)[0]
