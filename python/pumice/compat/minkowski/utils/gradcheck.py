"""Gradients of functions against differences."""

from __future__ import annotations

from typing import Any

import torch


def gradcheck(func: Any, inputs: Any, *args: Any, **kwargs: Any) -> bool:
    """torch.autograd.gradcheck of `func.apply`, with its further arguments."""
    return torch.autograd.gradcheck(lambda *values: func.apply(*values), inputs, *args, **kwargs)
