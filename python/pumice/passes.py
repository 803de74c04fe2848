"""Passes of a network that leave nothing behind, for those who measure them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from . import _C
from ._checks import kind_of, sparse_from
from .coords import Coordinates
from .graph import Graph
from .tensor import SparseTensor
from .typed_graph import TypedGraph


def is_input(x: Any) -> bool:
    """Whether `x` is a sparse tensor, or has tensors of positions and features, as a `models.PointTensor`."""
    return isinstance(x, SparseTensor) or (
        hasattr(x, "positions") and isinstance(getattr(x, "features", None), torch.Tensor)
    )


def is_graph_input(x: Any) -> bool:
    """Whether `x` is what a network of graph layers is called with: a tuple of features, or of those of both sides,
    and a graph or edges that they belong to; anything may follow."""
    return (
        isinstance(x, (tuple, list))
        and len(x) > 1
        and _first_tensor(x[0]) is not None
        and (isinstance(x[1], (Graph, TypedGraph)) or _are_edges(x[1]))
    )


def _are_edges(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.dim() == 2
        and value.shape[0] == 2
        and value.dtype in (torch.int32, torch.int64)
    )


def _first_tensor(value: Any) -> torch.Tensor | None:
    """The features, or those of the first side; of the other side there may be none."""
    if isinstance(value, (tuple, list)) and value:
        if any(side is not None and _first_tensor(side) is None for side in value[1:]):
            return None
        value = value[0]
    is_rows = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() >= 2
    return value if is_rows else None


def features_of(x: Any) -> torch.Tensor:
    """The features of an input of either kind."""
    return _first_tensor(x[0]) if is_graph_input(x) else x.features


def called(model: torch.nn.Module, x: Any) -> Any:
    """What the model makes of a fresh input."""
    x = fresh(x)
    return model(*x) if is_graph_input(x) else model(x)


def _input_in_place_of(x: Any) -> str:
    if isinstance(x, torch.nn.Module):
        return "give the network first, then its input"
    return "give one of its items" if isinstance(x, (list, tuple)) else sparse_from(x)


def check_model(model: Any) -> None:
    """Raises UserError for what is no network."""
    if not isinstance(model, torch.nn.Module):
        raise _C.UserError(f"model is {kind_of(model)}: give a torch.nn.Module")


def check_input(name: str, x: Any) -> None:
    """Raises UserError for what is no input of a sparse network."""
    if not is_input(x) and not is_graph_input(x):
        raise _C.UserError(
            f"{name} takes a sparse tensor or a PointTensor, and got {kind_of(x)}: "
            + _input_in_place_of(x)
        )


def fresh(x: Any) -> Any:
    """`x` without the maps that earlier calls have made. Graphs stay as they are, with what they keep."""
    if is_graph_input(x):
        return tuple(_detached(value) for value in x)
    if not isinstance(x, SparseTensor):
        return type(x)(x.positions, x.features.detach())
    coords = Coordinates(
        x.indices, spatial_shape=x.spatial_shape, batch_size=x.batch_size, stride=x.stride
    )
    return SparseTensor(coords, x.features.detach())


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach()
    return tuple(_detached(one) for one in value) if isinstance(value, (tuple, list)) else value


@contextmanager
def as_it_was(model: torch.nn.Module) -> Iterator[None]:
    """Puts back, at the end, which modules of `model` are in training, its buffers (statistics of norms), the
    gradients of its parameters, and the state of random numbers."""
    modes = [(module, module.training) for module in model.modules()]
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    devices = [value.device for value in model.parameters() if value.is_cuda][:1]
    with torch.random.fork_rng(devices=devices):
        for parameter, _ in gradients:
            parameter.grad = None
        try:
            yield
        finally:
            with torch.no_grad():
                for name, value in model.named_buffers():
                    value.copy_(buffers[name])
            for parameter, gradient in gradients:
                parameter.grad = gradient
            for module, training in modes:
                module.training = training
