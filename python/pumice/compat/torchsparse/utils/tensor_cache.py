"""The cache that tensors of one network share, where TorchSparse has it."""

from ..tensor_cache import (
    TensorCache,
    TensorCacheMode,
    clear_global_tensor_cache,
    get_global_tensor_cache,
    get_tensor_cache_mode,
    set_global_tensor_cache,
    set_tensor_cache_mode,
)

__all__ = [
    "TensorCache",
    "TensorCacheMode",
    "clear_global_tensor_cache",
    "get_global_tensor_cache",
    "get_tensor_cache_mode",
    "set_global_tensor_cache",
    "set_tensor_cache_mode",
]
