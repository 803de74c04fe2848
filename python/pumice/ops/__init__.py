"""Provides operators on features, maps and sites. A map says which input rows each output row is computed from."""

from .. import _needs_torch  # noqa: F401  (first, since it says what is missing)
from .candidates import candidates, plan_of
from .convolution import convolution, convolution_input_gradient, convolution_weight_gradient
from .counted import clear_tail
from .dense import from_dense, to_bev, to_dense
from .fused import fold_batch_norm, fused_convolution
from .graphs import edge_softmax, sddmm, spmm
from .interpolation import InterpolationMap, interpolate, interpolation_map
from .maps import (
    Map,
    finer_sites,
    generative_map,
    inverse_map,
    strided_map,
    submanifold_map,
    transposed_map,
)
from .normalization import batch_norm
from .pooling import global_pool, pool
from .relational import rgms
from .rows import reduce_rows, take_rows
from .scores import edge_scores
from .sets import prune, union_add
from .typed_linear import typed_linear

__all__ = [
    "InterpolationMap",
    "Map",
    "batch_norm",
    "candidates",
    "clear_tail",
    "convolution",
    "convolution_input_gradient",
    "convolution_weight_gradient",
    "edge_scores",
    "edge_softmax",
    "finer_sites",
    "fold_batch_norm",
    "from_dense",
    "fused_convolution",
    "generative_map",
    "global_pool",
    "interpolate",
    "interpolation_map",
    "inverse_map",
    "plan_of",
    "pool",
    "prune",
    "reduce_rows",
    "rgms",
    "sddmm",
    "spmm",
    "strided_map",
    "submanifold_map",
    "take_rows",
    "to_bev",
    "to_dense",
    "transposed_map",
    "typed_linear",
    "union_add",
]
