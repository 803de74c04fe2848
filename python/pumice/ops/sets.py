"""Computes sparse tensors on other sites than those of their inputs: by pruning, and by union."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _C
from .._fields import Sparse
from .._objects import check_sparse
from .._tensors import check_tensor
from ..coords import Coordinates
from . import traced


def prune(x: Sparse, keep: Tensor) -> Sparse:
    """The rows that are kept, in their order, on sites of their own.

    Args:
        x: the sparse tensor.
        keep: bool [N], kept where true; or whole numbers, kept where not 0.
    Returns:
        A sparse tensor [M, C].
    Raises:
        UserError: where there is not one value a row, and for scores, which are no mask.
    Waits:
        For a GPU, for how many rows there are.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> ops.prune(x, torch.tensor([True, False])).indices
        tensor([[0, 1, 2, 3]], dtype=torch.int32)
    """
    check_sparse("prune", x)
    check_tensor("keep", keep)
    if keep.dim() != 1 or keep.shape[0] != len(x):
        raise _C.UserError(f"keep has shape {tuple(keep.shape)}: give one value for each of {len(x)} rows")
    if keep.is_floating_point() or keep.is_complex():
        raise _C.UserError(f"keep is {keep.dtype}, which is no mask: give bool, as scores > 0.5")
    if torch.compiler.is_compiling():
        coords, rows = traced.prune(x.coords, keep)
        return x._of(coords, x.features[rows])
    mask = (keep != 0).byte().contiguous()
    sites, kept = x.coords.sites.prune(mask)
    return x._of(Coordinates._of(sites), x.features[kept.long()])


def union_add(left: Sparse, right: Sparse) -> Sparse:
    """The sum on the sites of either; a row that one side lacks counts as 0 there.

    Args:
        left: a sparse tensor [N, C].
        right: another [M, C].
    Returns:
        A sparse tensor [rows of either, C].
    Raises:
        UserError: for other channels, axes and strides.
    Waits:
        For a GPU, for how many rows there are.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> y = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3]]), torch.ones(1, 4))
        >>> ops.union_add(x, y).features[:, 0]
        tensor([2., 1.])
    """
    check_sparse("union_add", left)
    check_sparse("union_add", right)
    if left.coords.is_same(right.coords):
        return left + right  # type: ignore[operator]
    if left.features.shape[1] != right.features.shape[1]:
        raise _C.UserError(
            f"union_add: the tensors have {left.features.shape[1]} and {right.features.shape[1]} "
            "channels: give as many"
        )
    if torch.compiler.is_compiling():
        coords, left_row, right_row = traced.unite(left.coords, right.coords)
    else:
        sites, left_row, right_row = left.coords.sites.unite(right.coords.sites)
        coords = Coordinates._of(sites)
    total = left.features.new_zeros((coords.rows, left.features.shape[1]))
    total = total.index_add(0, left_row, left.features).index_add(0, right_row, right.features)
    return left._of(coords, total)
