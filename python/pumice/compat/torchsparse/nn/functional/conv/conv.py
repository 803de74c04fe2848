"""Convolution with a kernel in TorchSparse's layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ...... import ops
from ......_checks import full_kind_of, warn_once
from ......nn import deferred
from ......window import Window
from .....foreign import ForeignWeight
from .....mistakes import PeerTypeError
from .... import conventions
from ....axis_numbers import make_ntuple
from ....tensor import SparseTensor
from . import conv_config, maps, plans

_BEFORE = (
    "input", "weight", "kernel_size", "bias", "stride", "dilation", "transposed", "epsilon",
    "mm_thresh", "kmap_mode",
)  # fmt: skip


def _meaning(given: Mapping[str, Any], before: bool) -> object:
    """What tells convolutions apart; `dilation` has no effect in any release."""
    return reading(given, before, centred_by_itself=False)


def reading(given: Mapping[str, Any], before: bool, centred_by_itself: bool) -> object:
    """(padding, transposed, generative) of arguments by name, as far as they have an effect."""
    size, stride = (make_ntuple(given.get(name, 1), 3) for name in ("kernel_size", "stride"))
    transposed = bool(given.get("transposed", False))
    padding: tuple[Any, ...] = ()
    if not transposed and stride != (1, 1, 1):
        padding = tuple((k - 1) // 2 for k in size)
        if not before:
            padding = make_ntuple(given.get("padding", 0), 3)
            padding = centred(padding, size, stride) if centred_by_itself else padding
    return padding, transposed, bool(given.get("generative", False))


def centred(padding: Any, size: Any, stride: Any) -> tuple[int, ...]:
    """The padding of a layer: an axis of an odd kernel and stride 1 stays as long as it is."""
    axes = zip(make_ntuple(padding, 3), size, stride)
    return tuple((k - 1) // 2 if k % 2 == 1 and s == 1 else p for p, k, s in axes)


@conventions.by_release(_BEFORE, _meaning)
def conv3d(
    input: SparseTensor,
    weight: Tensor,
    kernel_size: Any,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    config: Any = None,
    transposed: bool = False,
    generative: bool = False,
    training: bool = False,
    epsilon: float = 0.0,
    mm_thresh: int = 0,
    kmap_mode: str = "hashmap",
) -> SparseTensor:
    """Stride 1 keeps the sites; a larger one makes coarser ones; `transposed` goes back to the sites that
    a convolution of the same kernel and stride came from; `generative` makes every finer site.

    `dilation` has no effect, as in TorchSparse. Of `config` its "kmap_mode" and "downsample_mode" say which
    sites there are, its settings of kernels how the convolution runs; `epsilon`, `mm_thresh` and `kmap_mode`, of 2.0, have no effect.

    Raises UserError for a transposed convolution without a convolution to undo, and for a `config` with values that
    there are not.
    """
    if not isinstance(input, SparseTensor):
        raise PeerTypeError(
            f"conv3d: input is {full_kind_of(input)}: give a SparseTensor, as torchsparse.SparseTensor(feats, coords) makes one"
        )
    warn_of_dilation(dilation)
    if config is not None:
        conv_config.check("config", config)
    return convolve(
        input, weight, kernel_size, bias, stride, padding, 1, transposed, generative, training, config
    )


def warn_of_dilation(dilation: Any) -> None:
    if max(make_ntuple(dilation, 3, "dilation")) > 1:
        warn_once(
            f"torchsparse dilation {dilation}",
            f"dilation = {dilation} has no effect, as in TorchSparse, which ignores it: set "
            "Conv3d.obeys_dilation = True for layers of a model not trained there",
        )


def convolve(
    input: SparseTensor,
    weight: Tensor,
    kernel_size: Any,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    generative: bool,
    training: bool,
    config: Any = None,
    kept: ForeignWeight | None = None,
) -> SparseTensor:
    """What layers call, in one order for all releases; it obeys `dilation`."""
    size, strides, paddings, dilations = (
        make_ntuple(value, 3, name)
        for name, value in (
            ("kernel_size", kernel_size), ("stride", stride), ("padding", padding), ("dilation", dilation)
        )
    )
    if size == (1, 1, 1) and strides == (1, 1, 1):
        # As a matrix product it takes rows that are no sites, too: it joins a chain on sites that are known.
        sites = input.known_sites() if bias is None and kept is not None else None
        if sites is not None and deferred.can_wait(input._held):
            map = ops.submanifold_map(sites, Window.centred(size, size))
            later = deferred.convolved(input._held, weight, kept, training, map, None)
            if later is not None:
                return input._with(later)
        matrix = weight.reshape(weight.shape[-2:])
        feats = torch.nn.functional.linear(input.feats, matrix.T, bias)
        return input._with(feats)
    kept = kept or ForeignWeight("torchsparse", size, weight.dim() == 3 and strides != (1, 1, 1))
    floor = conventions.batch_first and conv_config.floors(config, size, strides)
    held = input._held
    if strides != (1, 1, 1) or transposed:  # a chain begins here: a device computes while sites are counted
        held = input.feats
    map, sites = maps.find(input, size, strides, paddings, dilations, transposed, generative, floor)
    how = plans.plans_for(config, held, weight, map)
    feats = kept.convolve(held, weight, map, bias, training, how)
    if sites is None:
        return input._with(feats)
    return SparseTensor._at(sites, feats, input._caches, input.spatial_range is not None)


__all__ = ["conv3d"]
