"""Where gradients of parameters are added up, so that a recording does not wait for another stream."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

_SEEN = "pumice"


def let_go_of_earlier_passes(parameters: Iterable[Tensor]) -> list[Tensor]:
    """PyTorch adds the gradient of a parameter up on the stream of the first pass of those that are still referred to: by
    an output or a loss, by weights that autocast has converted, by DistributedDataParallel. A recording may not wait for
    PyTorch's default stream. From here on passes of these parameters have a stream of their own again; earlier ones still
    lead to the same parameters. Returns those of which this cannot be had. Does not wait."""
    held = [parameter for parameter in parameters if _is_held(parameter)]
    for parameter in held:
        data = parameter.data
        # Given values of another type, a parameter forgets where gradients are added up.
        parameter.data = data.new_empty(0, dtype=torch.float64 if data.dtype != torch.float64 else torch.float32)
        parameter.data = data
    return [parameter for parameter in held if _is_held(parameter)]


def _is_held(parameter: Tensor) -> bool:
    """Whether a graph of gradients that leads to the parameter is referred to: what is noted of it is still there when it
    is asked for again."""
    if not parameter.requires_grad:
        return False
    get_gradient_edge(parameter).node.metadata[_SEEN] = True
    is_held = _SEEN in get_gradient_edge(parameter).node.metadata
    if is_held:
        del get_gradient_edge(parameter).node.metadata[_SEEN]
    return is_held
