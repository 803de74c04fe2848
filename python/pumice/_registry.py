"""Registers operators with torch.library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

library = torch.library.Library("pumice", "DEF")

# Operators wait for the numbers of sites and keep memory between calls, so that no graph of CUDA may
# be recorded around them unasked (torch.compile's "reduce-overhead"). PyTorch 2.4 has no such tag.
_TAGS = tuple(filter(None, [getattr(torch.Tag, "cudagraph_unsafe", None)]))


def define(schema: str, function: Callable[..., Any], fake: Callable[..., Any]) -> None:
    """Registers an operator for the CPU and for GPUs. `fake` makes its outputs, in their shapes, from the tensors
    without values that PyTorch traces graphs with."""
    name = schema.split("(")[0]
    library.define(schema, tags=_TAGS)
    # Dynamo must not trace into it when it is called eagerly between two graphs.
    function = torch._disable_dynamo(function)
    # Tokens are on the host wherever the sites are, so each of the two keys may be called for either device.
    for key in ("CPU", "CUDA"):
        library.impl(name, function, key)
    torch.library.register_fake(f"pumice::{name}", fake, lib=library)


def differentiate(
    name: str, keep: Callable[..., None], gradient: Callable[..., tuple[Any, ...]]
) -> None:
    """Registers the gradient of an operator: `keep(ctx, inputs, output)` saves what `gradient(ctx, *grads)` needs."""
    torch.library.register_autograd(
        f"pumice::{name}", gradient, setup_context=keep, lib=library
    )


def fake_token(like: Tensor) -> Tensor:
    """A token without a value."""
    return like.new_empty((1,), dtype=torch.int64, device="cpu")


def unknown_size() -> Any:
    """An extent that is not known before the graph runs."""
    return torch.library.get_ctx().new_dynamic_size()
