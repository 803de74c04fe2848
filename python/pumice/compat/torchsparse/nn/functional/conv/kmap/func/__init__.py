"""Kernel maps as tensors, by mode."""

from . import hashmap, hashmap_on_the_fly
from .hashmap import (
    build_kmap_Fetch_on_Demand_hashmap,
    build_kmap_Gather_Scatter_hashmap,
    build_kmap_implicit_GEMM_hashmap,
)
from .hashmap_on_the_fly import (
    build_kmap_Fetch_on_Demand_hashmap_on_the_fly,
    build_kmap_Gather_Scatter_hashmap_on_the_fly,
    build_kmap_implicit_GEMM_hashmap_on_the_fly,
)
