"""Which map a layer works through: a new one, or that of its `indice_key`."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from .... import _C, ops
from ....coords import Coordinates
from ....ops.modes import version_of
from ...foreign import PeerAssertionError
from .. import constants
from .core import SparseConvTensor
from .indice_data import IndiceData
from .windowed import WindowedModule


class Found(NamedTuple):
    """A map, and what the output stands on."""

    map: ops.Map
    indices: Tensor
    coords: Coordinates
    spatial_shape: list[int]
    indice_dict: dict[str, IndiceData]

    def output(self, x: SparseConvTensor, features: Tensor) -> SparseConvTensor:
        """`features` [M, C] on the sites that the map leads to, all else as in `x`."""
        if self.indices is x.indices and x._known is not None and x._known[-1] is self.coords:
            result = x._holding(features)  # the same sites
        else:
            result = x._on(features, self.indices, self.coords, self.spatial_shape)
        result.indice_dict = self.indice_dict
        return result


def find(layer: WindowedModule, x: SparseConvTensor) -> Found:
    """Raises UserError where the `indice_key` of the layer belongs to another window or other sites."""
    if layer.inverse:
        return _inverse(layer, x)
    kept = x.find_indice_pair(layer.indice_key)
    if kept is not None:
        return _reused(layer, x, kept)
    data = _build(layer, x)
    indice_dict = x.indice_dict
    if layer.indice_key is not None:
        indice_dict = {**indice_dict, layer.indice_key: data}
    return Found(data.map, data.out_indices, data.out_coords, data.out_spatial_shape, indice_dict)


def shared(layer: WindowedModule, x: SparseConvTensor) -> IndiceData | None:
    """What another submanifold layer left under the same key on these very sites; None where `find` has to look
    closer. In a tenth of the time, which a network of 50 layers spends 30 times."""
    kept = x.indice_dict.get(layer.indice_key)  # type: ignore[arg-type]  (nothing is kept under None)
    if kept is None or not (layer.subm and kept.is_subm):
        return None
    known = x._known
    if (
        known is None
        or known[4] is not kept.coords
        or known[0] is not x.indices
        or known[1] != version_of(x.indices)
        or known[2] != x.spatial_shape
        or known[3] != x.batch_size
        or kept.spatial_shape != x.spatial_shape
        or kept.window.numbers != layer.window.numbers
    ):
        return None
    return kept


def _build(layer: WindowedModule, x: SparseConvTensor) -> IndiceData:
    window, coords = layer.window, x.coords
    if not (layer.subm or layer.transposed):
        _check_reach(layer, x)
    if layer.subm:
        map = ops.submanifold_map(coords, window)
        out_coords, out_indices, out_shape = coords, x.indices, list(x.spatial_shape)
    else:
        if layer.transposed:
            map, out_coords = ops.generative_map(coords, window)
        else:
            map, out_coords = ops.strided_map(coords, window, False)
        out_indices = out_coords.copied_indices(x.indices)  # whose owner may change it in place
        out_shape = list(out_coords.spatial_shape or ())
        if constants.REFUSE_AS_SPCONV and len(out_indices) == 0:
            raise _C.UserError(
                f"{layer.describe()}: all of {x.indices.shape[0]} sites vanish in a grid of "
                f"{x.spatial_shape}: enlarge spatial_shape or padding"
            )
    return IndiceData(
        map, coords, out_coords, x.indices, out_indices, x.spatial_shape, out_shape, window,
        layer.subm, layer.algo, layer.transposed,
    )  # fmt: skip


def _reused(layer: WindowedModule, x: SparseConvTensor, kept: IndiceData) -> Found:
    """What another submanifold layer left under the same key, if it is what this one needs."""
    if not layer.subm:
        raise PeerAssertionError(
            f"{_about(layer)} is taken by an earlier layer; only submanifold layers share one: name "
            "another"
        )
    if not kept.is_subm:
        raise PeerAssertionError(
            f"{_about(layer)} was given to a layer that changes sites, so a submanifold layer cannot "
            "share it: name another"
        )
    if layer.window is not kept.window and layer.window != kept.window:
        raise _C.UserError(
            f"{_about(layer)} belongs to a layer of kernel_size {kept.ksize}, dilation {kept.dilation}, "
            f"and this one has {layer.kernel_size}, {layer.dilation}: name another"
        )
    if not (
        (x.spatial_shape == kept.spatial_shape or list(x.spatial_shape) == kept.spatial_shape)
        and x.stands_on(kept.coords)
    ):
        raise _C.UserError(
            f"{_about(layer)} belongs to {len(kept.coords)} sites in a grid of {kept.spatial_shape}, and "
            f"this input has {x.indices.shape[0]} others in {list(x.spatial_shape)}: name another"
        )
    return Found(kept.map, x.indices, kept.coords, list(x.spatial_shape), x.indice_dict)


def _inverse(layer: WindowedModule, x: SparseConvTensor) -> Found:
    """Back through the layer of the same key."""
    kept = x.find_indice_pair(layer.indice_key)
    if kept is None:
        raise PeerAssertionError(
            f"{_about(layer)} was not left by any layer before; known are {sorted(x.indice_dict)}: give the "
            "key of the convolution or pooling to undo"
        )
    if kept.is_subm:
        raise PeerAssertionError(f"{_about(layer)} belongs to a submanifold layer, which left nothing to undo")
    if layer.kernel_size != kept.ksize:
        raise _C.UserError(
            f"{_about(layer)} belongs to a layer of kernel_size {kept.ksize}, and this one has "
            f"{layer.kernel_size}: make them equal"
        )
    if list(x.spatial_shape) != kept.out_spatial_shape or not x.stands_on(kept.out_coords):
        raise _C.UserError(
            f"{_about(layer)} led to {len(kept.out_coords)} sites in a grid of {kept.out_spatial_shape}, and "
            f"this input has {x.indices.shape[0]} others in {list(x.spatial_shape)}: undo it on the "
            "sites that it made"
        )
    indices = kept.in_indices()
    return Found(kept.backwards(), indices, kept.coords, kept.spatial_shape, x.indice_dict)


def _about(layer: WindowedModule) -> str:
    return f"{layer.describe()}: indice_key {layer.indice_key!r}"


def _check_reach(layer: WindowedModule, x: SparseConvTensor) -> None:
    """A window wider than the padded grid has no output."""
    for axis, extent in enumerate(x.spatial_shape):
        span = layer.dilation[axis] * (layer.kernel_size[axis] - 1) + 1
        if extent + 2 * layer.padding[axis] < span:
            raise _C.UserError(
                f"{layer.describe()}: axis {axis} has {extent} cells and padding {layer.padding[axis]}, and the "
                f"window spans {span}: enlarge spatial_shape or padding"
            )


def is_pointwise(layer: WindowedModule) -> bool:
    """A layer of one offset that stays where it is, which spconv computes as a matrix product."""
    one = math.prod(layer.kernel_size) == 1
    return one and (layer.subm or math.prod(layer.stride) == 1)
