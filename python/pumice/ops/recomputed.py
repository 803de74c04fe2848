"""Computes gradients that can be differentiated again, for a function that ran without a graph: it runs once
more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def gradients_of(
    compute: Callable[..., Tensor], saved: Sequence[Tensor | None], grad_output: Tensor
) -> list[Tensor | None]:
    """The gradients of compute(*saved) with respect to each of `saved`, differentiable; None where none is wanted."""
    gradients: list[Any] = [None] * len(saved)
    with torch.enable_grad():
        # Views, so that each has a gradient of its own where one tensor occurs twice or depends on another.
        inputs = [None if t is None else t.view_as(t) for t in saved]
        wanted = [i for i, t in enumerate(inputs) if t is not None and t.requires_grad]
        found = torch.autograd.grad(
            compute(*inputs), [inputs[i] for i in wanted], grad_output, create_graph=True
        )
    for i, gradient in zip(wanted, found):
        gradients[i] = gradient
    return gradients
