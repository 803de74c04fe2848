"""Hands PyTorch's types, memory and streams to the extension, which never links to it."""

from __future__ import annotations

import atexit
import importlib.util
import pathlib

import torch

from . import _C
from ._tensors import describe
from ._progress import CompileProgress

# In the order of Pumice's own element types.
DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.uint8,
]


# Without this dispatch key results are no views: each has a version counter of its own, and autograd does not
# know that they share memory.
_AS_VIEWS = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)


def _cut(flat: torch.Tensor, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors in the memory of a flat one, in the shapes of others."""
    with torch._C._ExcludeDispatchKeyGuard(_AS_VIEWS):
        return torch._C._nn.unflatten_dense_tensors(flat, tensors)


def has_derivative(tensor: torch.Tensor) -> bool:
    """Whether `tensor` has a derivative of forward mode, at the level that is open."""
    level = torch.autograd.forward_ad._current_level
    return torch._VF._unpack_dual(tensor, level=level)[1] is not None


# Where PyTorch's wheels have NVRTC, by the CUDA they are for.
_COMPILERS = {"13": "cu13/lib/libnvrtc.so.13", "12": "cuda_nvrtc/lib/libnvrtc.so.12"}


def _suggest_compiler() -> None:
    """Tells the extension where the NVRTC of PyTorch's wheels is, which fits the driver that PyTorch works with. It
    does not set an environment variable, which child processes with another PyTorch would inherit."""
    file = _COMPILERS.get(str(torch.version.cuda).split(".")[0])
    spec = importlib.util.find_spec("nvidia")
    if file is None or spec is None:
        return
    for folder in spec.submodule_search_locations or []:
        path = pathlib.Path(folder) / file
        if path.exists():
            _C.suggest_kernel_compiler(str(path))


def _connect() -> None:
    _C.use_framework(
        DTYPES, _cut, torch.Tensor.is_neg, describe, vars(torch.autograd.forward_ad), has_derivative,
        torch.is_grad_enabled,
    )
    # Since PyTorch 2.10; without it the extension calls the methods of tensors.
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if exchange is not None:
        _C.use_exchange_table(exchange, [torch.Tensor, torch.nn.Parameter])
    if torch.version.cuda is not None:
        _suggest_compiler()
        _C.on_kernel_compiled(CompileProgress())
        if torch.cuda.is_available():
            _C.use_framework_device(
                torch._C._cuda_cudaCachingAllocator_raw_alloc,
                torch._C._cuda_cudaCachingAllocator_raw_delete,
                torch._C._cuda_getCurrentRawStream,
                torch._C._cuda_getDevice,
                torch._C._cuda_setDevice,
            )
    atexit.register(_C.close_framework)


_connect()
