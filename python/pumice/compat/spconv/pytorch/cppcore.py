"""What code asks of spconv's bridge between PyTorch and its C++."""

from __future__ import annotations

import torch

from .... import _C
from ....ops import modes
from ..cumm import tensorview as tv


def get_current_stream() -> int:
    """The current stream of the current GPU, as a number; 0 without one."""
    if not torch.cuda.is_available():
        return 0
    return torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())


def get_arch() -> tuple[int, int]:
    """The compute capability of the current GPU; (0, 0) without one."""
    return torch.cuda.get_device_capability() if torch.cuda.is_available() else (0, 0)


def torch_tensor_to_tv(
    ten: torch.Tensor, dtype: object = None, shape: list[int] | None = None, stride: object = None
) -> tv.Tensor:
    """An array on the same memory. Only of tensors on the CPU, since cumm's arrays lie there here."""
    if ten.device.type != "cpu":
        raise _C.UserError(
            f"ten is on {ten.device}: arrays of cumm lie on the CPU here; call .cpu() first"
        )
    modes.look("ten", ten)
    if dtype is not None or stride is not None:
        raise _C.UserError("dtype and stride reinterpret memory, which is not there: leave them out")
    array = ten.detach().numpy()
    return tv.from_numpy(array if shape is None else array.reshape(shape))


def torch_tensors_to_tv(*tens: torch.Tensor) -> tuple[tv.Tensor, ...]:
    """torch_tensor_to_tv of each."""
    return tuple(torch_tensor_to_tv(ten) for ten in tens)
