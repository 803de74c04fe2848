"""What is installed, printed, under the name by which MinkowskiEngine keeps that."""

from __future__ import annotations

import sys

import torch

from ... import doctor


def print_diagnostics() -> None:
    """Prints the versions of Python, PyTorch and CUDA, and what Pumice can do here."""
    print(f"Python    {sys.version}")
    print(f"PyTorch   {torch.__version__}, CUDA {torch.version.cuda}")
    doctor.main()


def is_cuda_available() -> bool:
    return torch.cuda.is_available()


def cuda_version() -> int:
    """Of the CUDA that PyTorch is built for, 12040 for 12.4; -1 without."""
    if torch.version.cuda is None:
        return -1
    major, minor = torch.version.cuda.split(".")[:2]
    return int(major) * 1000 + int(minor) * 10


cudart_version = cuda_version


def get_gpu_memory_info() -> tuple[int, int]:
    """(free, all) bytes of the current GPU; (0, 0) without one."""
    return torch.cuda.mem_get_info() if torch.cuda.is_available() else (0, 0)


__all__ = ["print_diagnostics"]
