"""The base of MinkowskiEngine's functions: what its layers call with features and keys, and layers of your own
can too.

There each is a torch.autograd.Function with a gradient of its own. Here `forward` consists of operators that
have theirs, and `apply` calls it: gradients, and those of gradients, are the operators'.
"""

from __future__ import annotations

from typing import Any

import torch


class MinkowskiFunction(torch.autograd.Function):
    """`apply(...)` takes what `forward(ctx, ...)` does after `ctx`, which nothing reads."""

    def __init__(self) -> None:
        """As code written for MinkowskiEngine makes them; PyTorch's own would warn of that."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.forward(None, *args, **kwargs)
