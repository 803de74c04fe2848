"""Checks the arguments that layers of graph networks share, and draws their weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.modules import module as every_module

from ... import _C
from ..._checks import kind_of, whole_number
from ..._keywords import Keywords, expect_default
from ..._tensors import check_real
from ...ops import modes


# What PyG's layers take beside the arguments that are here.
PYG: Keywords = {
    "flow": (
        ("source_to_target",),
        "messages go from edge_index[0] to edge_index[1]; give edge_index.flip(0) for the other way",
    ),
    "node_dim": ((-2, 0), "rows of features are nodes; give features [nodes, channels]"),
    "aggr": (("add", "sum"), "it adds up; SAGEConv and ops.spmm(graph, x, reduce='max') take others"),
    "aggr_kwargs": ((None,), "there are mean, max, min and sum, which take no arguments"),
    "decomposed_layers": ((1,), "leave it out: no row of features is made for an edge"),
    "weight_initializer": ((None,), "leave it out, and write into layer.weight with torch.nn.init"),
    "bias_initializer": ((None,), "leave it out, and write into layer.bias with torch.nn.init"),
}
_WEIGHTS = "ops.edge_softmax gives the shares of edges, of scores that ops.edge_scores and ops.sddmm give"


def refuse_attention_weights(layer: str, value: Any) -> None:
    """Raises UserError unless PyG's `return_attention_weights` is None: any other value asks for them there."""
    expect_default(layer, "return_attention_weights", value, (None,), _WEIGHTS)


def channel_pair(in_channels: Any) -> tuple[int, int]:
    """(of sources, of targets), of one number or two. Raises UserError for others than numbers from 1 on."""
    pair = in_channels if isinstance(in_channels, (tuple, list)) else (in_channels, in_channels)
    if len(pair) != 2:
        raise _C.UserError(f"in_channels has {len(pair)} numbers: give one, or (of sources, of targets)")
    return whole_number("in_channels", pair[0], 1), whole_number("in_channels", pair[1], 1)


def check_aggr(aggr: Any, known: dict[str, str]) -> None:
    """Raises UserError unless `aggr` is one of those that are known."""
    if isinstance(aggr, str) and aggr in known:
        return
    said = f"aggr = {aggr!r}" if isinstance(aggr, (str, type(None))) else f"aggr is {kind_of(aggr)}"
    why = ""
    if aggr == "lstm":
        why = "; an LSTM takes the edges of a node one after the other, as a row of features each: PyG's layer does that"
    elif isinstance(aggr, (list, tuple)):
        why = "; a layer for each of them, and torch.cat, give several beside each other"
    elif not isinstance(aggr, str):
        why = "; ops.spmm(graph, x, edge_weight, reduce) and ops.edge_softmax are what other aggregations are made of"
    raise _C.UserError(f"{said}: choose {', '.join(known)}{why}")


FILLS = ("mean", "sum", "add", "max", "min")


def check_fill(fill_value: Any) -> None:
    """Raises UserError unless features of loops can be made of it."""
    if isinstance(fill_value, Tensor) or (isinstance(fill_value, (int, float)) and not isinstance(fill_value, bool)):
        return
    if not isinstance(fill_value, str) or fill_value not in FILLS:
        raise _C.UserError(f"fill_value = {fill_value!r}: give a number, a tensor, or {', '.join(FILLS)}")


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Raises UserError unless `value` is one of those that are known."""
    if not isinstance(value, str) or value not in known:
        raise _C.UserError(f"{name} = {value!r}: choose {', '.join(known)}")


def is_plain(layer: torch.nn.Module) -> bool:
    """Whether a call of the layer is its product with `weight` and nothing else: no class or `forward` of a user's and no hook,
    which a layer that reads the weight would pass by."""
    return type(layer) is torch.nn.Linear and not (
        "forward" in layer.__dict__
        or layer._forward_hooks
        or layer._forward_pre_hooks
        or layer._backward_hooks
        or layer._backward_pre_hooks
        or every_module._global_forward_hooks
        or every_module._global_forward_pre_hooks
        or every_module._global_backward_hooks
        or every_module._global_backward_pre_hooks
    )


def check_blocks(num_bases: Any, num_blocks: Any, in_channels: int, out_channels: int) -> None:
    """Raises UserError unless matrices can be made of so many bases or blocks."""
    if num_bases is not None:
        whole_number("num_bases", num_bases, 1)
    if num_blocks is not None:
        whole_number("num_blocks", num_blocks, 1)
    if num_bases is not None and num_blocks is not None:
        raise _C.UserError(f"num_bases = {num_bases} and num_blocks = {num_blocks}: give one of them")
    if num_blocks is not None and (in_channels % num_blocks or out_channels % num_blocks):
        raise _C.UserError(f"{num_blocks} blocks of {in_channels} and {out_channels} channels: give a divisor of both")


def block_diagonal(weight: Tensor) -> Tensor:
    """[relations, blocks, in, out] to [relations, blocks · in, blocks · out]."""
    blocks = torch.diag_embed(weight.permute(0, 2, 3, 1), dim1=1, dim2=3)
    return blocks.flatten(3).flatten(1, 2)


def check_input(layer: str, name: str, x: Tensor, weight: Tensor, channels: int | None) -> None:
    """Raises UserError, naming the layer and the argument, unless features [nodes, channels] fit a matrix of a layer,
    of which `channels` is how many it takes; None: that is not known."""
    if channels is not None and x.shape[1] != channels:
        raise _C.UserError(f"{layer}: {name} has {x.shape[1]} channels: give {channels}, as the layer was made for")
    if x.dtype != weight.dtype and modes.autocast_dtype(x) is None:
        raise _C.UserError(
            f"{layer}: {name} is {x.dtype} and the layer's weights are {weight.dtype}: give {name}.to({weight.dtype}), or "
            f"make the layer layer.to({x.dtype})"
        )


def check_inputs(layer: str, x: Any, weights: tuple[Tensor, Tensor | None]) -> None:
    """`check_input` of features, or of those of sources and of targets; `weights`, of each, are [out, in], None for
    none. Layers ask where PyTorch has refused a product: before it, asking would take a fifth of a layer's time."""
    is_pair = isinstance(x, (tuple, list))
    for at, weight in enumerate(weights):
        part = x[at] if is_pair else x
        if part is None or weight is None or (part.dtype == weight.dtype and part.size(1) == weight.size(1)):
            continue
        check_input(layer, f"x[{at}]" if is_pair else "x", part, weight, weight.size(1))


def weights_of_edges(edge_weight: Tensor, entries: int) -> Tensor:
    """[entries], of as many or of a column of them. Raises UserError for others."""
    check_real("edge_weight", edge_weight)
    if edge_weight.is_meta:
        raise _C.UserError("edge_weight has no memory: give a tensor on the CPU or on a CUDA device, not on meta")
    shape = edge_weight.shape
    if len(shape) not in (1, 2) or shape[0] != entries or (len(shape) == 2 and shape[1] != 1):
        raise _C.UserError(f"edge_weight has shape {tuple(shape)}: give [{entries}], one for each edge")
    return edge_weight.reshape(-1)


def glorot_(weight: Tensor) -> None:
    """Uniform by Glorot, of the last two axes, as PyG draws weights."""
    bound = (6 / (weight.shape[-2] + weight.shape[-1])) ** 0.5
    torch.nn.init.uniform_(weight, -bound, bound)
