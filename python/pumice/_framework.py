"""Hands PyTorch's types, memory and streams to the extension, which never links to it."""

from __future__ import annotations

import atexit
import importlib.util
import pathlib

import torch

from . import _C
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


def _suggest_compiler() -> None:
    """The NVRTC of PyTorch's wheels, which fits the driver PyTorch works with."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    for folder in folders:
        for library in ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"):
            path = pathlib.Path(folder) / library
            if path.exists():
                _C.suggest_kernel_compiler(str(path))


def _connect() -> None:
    _C.use_framework(DTYPES)
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
