"""What PyTorch's own switches ask for."""

from __future__ import annotations

import torch
from torch import Tensor


def of(features: Tensor) -> tuple[bool, bool]:
    """(deterministic, tf32). On the CPU results always are the same bits, and in full float32."""
    if not features.is_cuda:
        return False, False
    tf32 = features.dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest"
    return torch.are_deterministic_algorithms_enabled(), tf32


def autocast_dtype(features: Tensor) -> torch.dtype | None:
    """What autocast computes `features` in; None where it is off or leaves them alone."""
    kind = "cuda" if features.is_cuda else "cpu"
    if not torch.is_autocast_enabled(kind) or features.dtype == torch.float64:
        return None
    return torch.get_autocast_dtype(kind)


def traced(features: Tensor) -> bool:
    """Whether a call has to be seen as an operator of torch.library."""
    if torch.compiler.is_compiling():
        return True
    kind = type(features)
    return (
        kind is not Tensor and kind is not torch.nn.Parameter
    ) or torch._C._len_torch_dispatch_stack() > 0


def bias_for(bias: Tensor | None, features: Tensor) -> Tensor | None:
    """A bias is added where sums are, in float32 (float64 for float64)."""
    if bias is None:
        return None
    wanted = torch.float64 if features.dtype == torch.float64 else torch.float32
    return bias if bias.dtype == wanted else bias.to(wanted)
