"""Functions of PyTorch on features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ...tensor import SparseTensor


def fapply(input: SparseTensor, fn: Callable[..., Tensor], *args: Any, **kwargs: Any) -> SparseTensor:
    """Applies `fn` to the features."""
    return input._with(fn(input.feats, *args, **kwargs))
