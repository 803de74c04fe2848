"""Convolution with a kernel in TorchSparse's layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..... import _C, ops
from .....coords import Coordinates
from .....window import Window
from ....foreign import ForeignWeight
from ... import conventions
from ...tensor import SparseTensor
from ...utils.utils import make_ntuple

Numbers = Any


def conv3d(
    input: SparseTensor,
    weight: Tensor,
    kernel_size: Numbers,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    config: Any = None,
    transposed: bool = False,
    generative: bool = False,
    training: bool = False,
    kept: ForeignWeight | None = None,
    **ignored: Any,
) -> SparseTensor:
    """Stride 1 keeps the sites; a larger one makes coarser ones; `transposed` goes back to the sites that
    a convolution of the same kernel and stride came from; `generative` makes every finer site.

    Raises UserError for a transposed convolution without a convolution to undo.
    """
    size, strides, paddings, dilations = (
        make_ntuple(value, 3) for value in (kernel_size, stride, padding, dilation)
    )
    if size == (1, 1, 1) and strides == (1, 1, 1):
        matrix = weight.reshape(weight.shape[-2:])
        feats = torch.nn.functional.linear(input.feats, matrix.T, bias)
        return input._with(feats)
    kept = kept or ForeignWeight("torchsparse", size, strides != (1, 1, 1))
    map, sites = _map(input, size, strides, paddings, dilations, transposed, generative)
    feats = kept.convolve(input.feats, weight, map, bias, training)
    if sites is None:
        return input._with(feats)
    return SparseTensor._at(sites, feats, input._caches, input.spatial_range is not None)


def _map(
    input: SparseTensor,
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    generative: bool,
) -> tuple[ops.Map, Coordinates | None]:
    """The map and where it leads; None: to the same sites."""
    sites, windows = input.sites, input._caches.kmaps
    volume = size[0] * size[1] * size[2]
    centre = [(k - 1) // 2 * d for k, d in zip(size, dilation)]
    if transposed and generative:
        return ops.generative_map(sites, Window(size, stride, centre, dilation))
    if all(s == 1 for s in stride):
        even = volume % 2 == 0 and conventions.batch_first
        map = ops.submanifold_map(
            sites, Window(size, stride, [0, 0, 0] if even else centre, dilation)
        )
        return (map.transposed() if transposed else map), None
    if not transposed:
        cell = False
        if not conventions.batch_first:  # padding is no argument before 2.1
            padding, cell = centre, all(s in (1, k) for k, s in zip(size, stride))
        window = Window(size, stride, padding, dilation)
        map, coarse = ops.strided_map(sites, window, cell)
        # TorchSparse finds maps by stride and kernel, without padding.
        windows[("window", coarse.stride, tuple(size), tuple(stride))] = (window, sites)
        return map, coarse
    known = windows.get(("window", sites.stride, tuple(size), tuple(stride)))
    if known is None:
        raise _C.UserError(
            f"transposed convolution of kernel {tuple(size)} and stride {tuple(stride)}: no convolution "
            f"of both led to these sites of stride {sites.stride}; generative=True makes sites of its own"
        )
    window, fine = known
    return ops.inverse_map(sites, window, fine)
