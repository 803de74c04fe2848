"""Hands PyTorch's types, memory and streams to the extension, which never links to it."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib.util
import os
import pathlib

import torch

from . import _C

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


# Where PyTorch's wheels have NVRTC, by the CUDA they are for.
_COMPILERS = {"13": "cu13/lib/libnvrtc.so.13", "12": "cuda_nvrtc/lib/libnvrtc.so.12"}


def _load_compiler() -> None:
    """Loads the NVRTC of PyTorch's wheels, which fits the driver PyTorch works with: the extension
    asks for it by its bare name, and what a process has loaded goes before what its system has.

    Nothing is written into the environment, which child processes with another PyTorch inherit.
    """
    file = _COMPILERS.get(str(torch.version.cuda).split(".")[0])
    if file is None or os.environ.get("PUMICE_NVRTC"):
        return
    spec = importlib.util.find_spec("nvidia")
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        path = pathlib.Path(folder) / file
        if path.exists():
            # One that cannot be loaded is no error here: kernels compiled ahead need none, and
            # where one is needed the extension looks further, and says what it found.
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(path))
                return


def _connect() -> None:
    _C.use_framework(DTYPES)
    if torch.version.cuda is not None:
        _load_compiler()
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
