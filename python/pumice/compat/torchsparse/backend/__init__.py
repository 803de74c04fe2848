"""What code takes from TorchSparse's C++ extension: hashes and tables, voxels, dense grids.

The functions that end in _cpu and _cuda are the same: tensors are where they are.
"""

from __future__ import annotations

from .functions import (
    convert_transposed_out_in_map,
    count_cpu,
    count_cuda,
    devoxelize_backward_cpu,
    devoxelize_backward_cuda,
    devoxelize_forward_cpu,
    devoxelize_forward_cuda,
    hash_cpu,
    hash_cuda,
    hash_query_cpu,
    hash_query_cuda,
    kernel_hash_cpu,
    kernel_hash_cuda,
    to_dense_backward_cuda,
    to_dense_forward_cuda,
    voxelize_backward_cpu,
    voxelize_backward_cuda,
    voxelize_forward_cpu,
    voxelize_forward_cuda,
)
from .table import GPUHashTable, GPUHashTable32
