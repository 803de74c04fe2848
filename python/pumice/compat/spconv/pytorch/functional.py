"""Functions on sparse tensors."""

from __future__ import annotations

from .... import _C
from ....coords import Coordinates
from ...._checks import at_least_one, kind_of
from ...foreign import PeerAssertionError
from .core import SparseConvTensor
from .pair_functions import (  # noqa: F401  (spconv has them here)
    SparseAvgPoolImplicitGemmFunction,
    SparseConvFunction,
    SparseImplicitGemmFunction,
    SparseInverseConvFunction,
    SparseMaxPoolFunction,
    SparseMaxPoolImplicitGemmFunction,
    SubMConvFunction,
    implicit_gemm,
    indice_avgpool_implicit_gemm,
    indice_conv,
    indice_inverse_conv,
    indice_maxpool,
    indice_maxpool_implicit_gemm,
    indice_subm_conv,
)


def sparse_add(*tens: SparseConvTensor) -> SparseConvTensor:
    """The sum on the sites of any; a row that one lacks counts as 0 there.

    Where one tensor has all the sites, the result stands on its rows and keeps its maps. Elsewhere
    the sites are new, and no inverse convolution leads back from them.
    """
    at_least_one("sparse_add: tens", tens, "SparseConvTensor")
    for number, x in enumerate(tens):
        if not isinstance(x, SparseConvTensor):
            raise _C.UserError(f"sparse_add: tensor {number} is {kind_of(x)}: give SparseConvTensors")
    first = tens[0]
    for other in tens[1:]:
        if (other.spatial_shape, other.batch_size) != (first.spatial_shape, first.batch_size):
            raise PeerAssertionError(
                f"sparse_add: one tensor has spatial_shape {first.spatial_shape} and batch_size "
                f"{first.batch_size}, another {other.spatial_shape} and {other.batch_size}"
            )
        if other.features.shape[1] != first.features.shape[1]:
            raise PeerAssertionError(
                f"sparse_add: tensors have {first.features.shape[1]} and "
                f"{other.features.shape[1]} channels; give as many"
            )
    total, *others = sorted(tens, key=lambda x: -x.indices.shape[0])
    for other in others:
        total = _add(total, other)
    return total


def _add(large: SparseConvTensor, small: SparseConvTensor) -> SparseConvTensor:
    if large.indices is small.indices or small.stands_on(large.coords):
        return large.replace_feature(large.features + small.features)
    sites, large_row, small_row = large.coords.sites.unite(small.coords.sites)
    total = large.features.new_zeros((sites.rows, large.features.shape[1]))
    total = total.index_add(0, large_row, large.features)
    total = total.index_add(0, small_row, small.features.to(total.dtype))
    if sites.rows == large.indices.shape[0]:
        return large.replace_feature(total[large_row.long()])
    coords = Coordinates._of(sites)
    result = large._on(total, coords.indices.clone(), coords, large.spatial_shape)
    result.indice_dict = {}
    return result


# spconv has two ways to the same.
sparse_add_hash_based = sparse_add
