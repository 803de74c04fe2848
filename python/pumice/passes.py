"""Passes of a network that leave nothing behind, for those who measure them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from . import _C
from ._checks import kind_of, sparse_from, takes
from .graph import Graph
from .nn import SyncBatchNorm
from .planned import CompiledModel, scans
from .tensor import SparseTensor
from .typed_graph import TypedGraph


_WHOLE = (torch.int32, torch.int64)


# What waits for other processes in its backward pass, or in both.
_WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule")


def is_input(x: Any) -> bool:
    """Whether `x` is a sparse tensor, of another interface too, or has tensors of positions and features, as a
    `models.PointTensor`."""
    return (
        isinstance(x, SparseTensor)
        or is_of_another_interface(x)
        or (hasattr(x, "positions") and isinstance(getattr(x, "features", None), torch.Tensor))
    )


def is_of_another_interface(x: Any) -> bool:
    """Whether `x` is a sparse tensor of spconv, MinkowskiEngine or TorchSparse, as pumice.compat has them."""
    return scans.kind_for(x) not in (None, scans.OWN)


def is_graph_input(x: Any) -> bool:
    """Whether `x` is what a network of graph layers is called with: a graph, or a tuple of what nodes have and of a graph
    or edges that join them; anything may follow."""
    if isinstance(x, (tuple, list)):
        return len(x) > 1 and _are_nodes(x[0]) and _joins(x[1])
    return isinstance(x, (Graph, TypedGraph))


def _are_nodes(value: Any) -> bool:
    """What one side has, or each of two, or each type of nodes."""
    if isinstance(value, dict):
        return bool(value) and all(_is_side(of_type) for of_type in value.values())
    if isinstance(value, (tuple, list)):
        return bool(value) and all(_is_side(side) for side in value)
    return _is_side(value)


def _is_side(value: Any) -> bool:
    """Features, numbers of nodes, or None for nodes that have neither."""
    if not isinstance(value, torch.Tensor):
        return value is None
    return value.dim() >= 2 if value.is_floating_point() else value.dim() == 1 and value.dtype in _WHOLE


def _joins(value: Any) -> bool:
    """A graph, edges, or those of each type."""
    if isinstance(value, dict):
        return bool(value) and all(not isinstance(edges, dict) and _joins(edges) for edges in value.values())
    if isinstance(value, torch.Tensor):
        return value.dim() == 2 and value.shape[0] == 2 and value.dtype in _WHOLE
    return isinstance(value, (Graph, TypedGraph))


def device_of(x: Any) -> torch.device:
    """Where an input of either kind is."""
    kind = scans.kind_for(x)
    if kind is not None:
        return kind.parts(x)[1].device
    return x.features.device if is_input(x) else next(_devices(x))


def _devices(value: Any) -> Iterator[torch.device]:
    if isinstance(value, (torch.Tensor, Graph, TypedGraph)):
        yield value.device
    elif isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _devices(one)


def called(model: torch.nn.Module, x: Any) -> Any:
    """What the model makes of a fresh input."""
    x = fresh(x)
    return model(*x) if isinstance(x, tuple) and not is_input(x) else model(x)


def check_loss(loss: Any) -> None:
    """Raises UserError for what is no loss of (output, item), unless it is None."""
    if loss is not None and not callable(loss):
        raise _C.UserError(f"loss is {kind_of(loss)}: give a function, as lambda output, item: …")
    if loss is not None and not takes(loss, 2):
        raise _C.UserError("loss cannot be called with two arguments: give a function, as lambda output, item: …")


def step(model: torch.nn.Module, x: Any, item: Any, loss: Callable[[Any, Any], torch.Tensor]) -> None:
    """Forward and backward pass of a training step, whose gradients are thrown away."""
    value = loss(called(model, x), item)
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        given = f"has shape {list(value.shape)}" if isinstance(value, torch.Tensor) else f"is {kind_of(value)}"
        raise _C.UserError(f"what loss returned {given}: give a tensor of one number, as …mean()")
    value.backward()
    for parameter in model.parameters():
        parameter.grad = None


def learn(model: torch.nn.Module, x: Any) -> None:
    """Runs networks of other interfaces until their layers run together, which they learn in the first two passes."""
    for _ in range(2 if is_of_another_interface(x) else 0):
        called(model, x)


def _input_in_place_of(x: Any) -> str:
    if isinstance(x, torch.nn.Module):
        return "give the network first, then its input"
    if isinstance(x, dict) and x:
        return "give edges too, as (x_dict, edge_index_dict)"
    if isinstance(x, (list, tuple)):
        of_nodes = len(x) > 0 and not is_input(x[0]) and _are_nodes(x[0])
        return "give a graph or edge_index, int64 [2, E], after what the nodes have" if of_nodes else "give one of its items"
    made = sparse_from(x)
    return f"{made}, or give (features, edge_index)" if isinstance(x, torch.Tensor) else made


def check_model(model: Any) -> None:
    """Raises UserError for what is no network."""
    if isinstance(model, CompiledModel):
        raise _C.UserError(
            "model is compiled: give what pumice.compile was given; a compiled model takes the plans that are stored, "
            "and is recorded anew where they change"
        )
    if not isinstance(model, torch.nn.Module):
        raise _C.UserError(f"model is {kind_of(model)}: give a torch.nn.Module")


def check_alone(model: torch.nn.Module) -> None:
    """Raises UserError where a pass of `model` waits for other processes, which would not know how often to run."""
    distributed = torch.distributed
    several = distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
    for path, module in model.named_modules():
        name = f"model.{path}" if path else "model"
        if any(kind.__name__ in _WRAPPERS for kind in type(module).__mro__):
            raise _C.UserError(
                f"{name} is wrapped for several processes, whose gradients wait for each other: tune the network in "
                "one of them before it is wrapped" + ("" if path else ", or model.module")
            )
        if several and module.training and isinstance(module, (SyncBatchNorm, torch.nn.SyncBatchNorm)):
            raise _C.UserError(
                f"{name} is a SyncBatchNorm in training, which waits for all processes: tune the network in one "
                "process with BatchNorm in its place, or before torch.distributed.init_process_group"
            )


def check_input(name: str, x: Any) -> None:
    """Raises UserError for what is no input of a network of sparse tensors or of graph layers."""
    if not is_input(x) and not is_graph_input(x):
        raise _C.UserError(
            f"{name} takes a sparse tensor, a PointTensor, or what graph layers take, (features, graph or edge_index, …), "
            f"and got {kind_of(x)}: {_input_in_place_of(x)}"
        )


def fresh(x: Any) -> Any:
    """`x` without the maps that earlier calls have made. Graphs stay as they are, with what they keep."""
    if is_graph_input(x):
        return _detached(x)
    kind = scans.OWN if isinstance(x, SparseTensor) else scans.kind_for(x)
    return type(x)(x.positions, x.features.detach()) if kind is None else kind.fresh(x)


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach()
    if isinstance(value, dict):
        return {name: _detached(one) for name, one in value.items()}
    return tuple(_detached(one) for one in value) if isinstance(value, (tuple, list)) else value


@contextmanager
def as_it_was(model: torch.nn.Module) -> Iterator[None]:
    """Puts back, at the end, which modules of `model` are in training, its buffers (statistics of norms), the
    gradients of its parameters, and the state of random numbers."""
    modes = [(module, module.training) for module in model.modules()]
    buffers = {
        name: value.clone()
        for name, value in model.named_buffers()
        if not torch.nn.parameter.is_lazy(value)
    }
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
                    if name in buffers:  # else made by a pass
                        value.copy_(buffers[name])
            for parameter, gradient in gradients:
                parameter.grad = gradient
            for module, training in modes:
                module.training = training
