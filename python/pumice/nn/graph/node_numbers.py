"""Checks numbers of nodes that stand for features: rows of a matrix that is learnt."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from ... import _C
from ...graph import graphs_of_run

# On a GPU looking at numbers waits, and training hands the same ones over in every pass.
_looked_at: Any = WeakTensorKeyDictionary()


def is_numbers(x: Any) -> bool:
    """Whether `x` is a tensor of numbers of nodes, and not of features."""
    return isinstance(x, Tensor) and x.dtype in (torch.int32, torch.int64)


def check_numbers(name: str, numbers: Tensor, limit: int, has: str = "rows", of: str = "nodes") -> None:
    """Raises UserError unless `numbers` are [nodes], from 0 on and below `limit`. In a compiled function, and while a
    CUDA graph is recorded, PyTorch raises when it runs. `has`, `of`: what the layer has, and what is numbered."""
    if numbers.dim() != 1:
        raise _C.UserError(f"{name} has shape {tuple(numbers.shape)}: give [nodes] numbers, or floats [nodes, channels]")
    if numbers.shape[0] == 0:
        return
    # What asks about streams comes last: torch.compile stops at it.
    if torch.compiler.is_compiling() or graphs_of_run() is not None or (numbers.is_cuda and torch.cuda.is_current_stream_capturing()):
        are_inside = ((numbers >= 0) & (numbers < limit)).all()
        torch._assert_async(are_inside, f"{name} has numbers of {of} that are not from 0 to below {limit}")
        return
    keeps = numbers.is_cuda and type(numbers) is Tensor and not numbers.is_inference()
    version, most = _looked_at.get(numbers, (None, 0)) if keeps else (None, 0)
    if keeps and version == numbers._version and most < limit:
        return
    least, most = torch.stack(torch.aminmax(numbers)).tolist()
    if least < 0 or most >= limit:
        at = int(((numbers < 0) | (numbers >= limit)).nonzero()[0])
        raise _C.UserError(
            f"{name}[{at}] = {int(numbers[at])} where the layer has {limit} {has}: give numbers of {of} from 0 to {limit - 1}"
        )
    if keeps:
        _looked_at[numbers] = (numbers._version, most)
