"""Makes the sites of strided layers before these are called, as they followed each other in the last pass.

A strided layer waits for a GPU to say how many sites it makes, and thereby for all that was enqueued before: the
layers of the finer levels. From the second pass on the first layer on new sites makes those of all levels, while the device has
nothing else to do yet; the strided layers find them. A network that takes another path finds fewer, or makes some in
vain once.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from .... import ops
from ....coords import Coordinates
from .core import SparseConvTensor
from .windowed import WindowedModule


class Ahead:
    """The strided layers that were called on the sites that a layer made, or was the first to be called on, in the last
    pass. A copy of the layer starts without them."""

    __slots__ = ("followers",)

    def __init__(self) -> None:
        self.followers: list[weakref.ref[WindowedModule]] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Ahead:
        return Ahead()

    def __reduce__(self) -> tuple[Any, ...]:
        return Ahead, ()


def ahead_of(layer: WindowedModule) -> Ahead:
    """That of a layer, made at its first call."""
    ahead = layer.__dict__.get("_ahead")
    if ahead is None:
        ahead = layer.__dict__["_ahead"] = Ahead()
    return ahead


def begin(layer: WindowedModule, x: SparseConvTensor, coords: Coordinates) -> None:
    """Before a layer makes a map of `coords`, the sites of `x`: makes those that followed, if it is the first one; else
    remembers a strided one."""
    if torch.compiler.is_compiling():
        return
    if x._ahead is None:
        x._ahead = ahead_of(layer)
        _make(x._ahead, coords)
    if not (layer.subm or layer.transposed):
        followers = x._ahead.followers
        if all(known() is not layer for known in followers):
            followers.append(weakref.ref(layer))


def _make(ahead: Ahead, coords: Coordinates) -> None:
    followers, ahead.followers = ahead.followers, []  # learnt again in this pass
    for reference in followers:
        layer = reference()
        shape = coords.spatial_shape
        if layer is None or shape is None or len(shape) != layer.ndim or axis_out_of_reach(layer, shape) is not None:
            continue
        _, made = ops.strided_map(coords, layer.window, False)
        _make(ahead_of(layer), made)


def axis_out_of_reach(layer: WindowedModule, shape: Any) -> int | None:
    """The first axis on which the window is wider than the padded grid, which has no output then."""
    for axis, extent in enumerate(shape):
        if extent + 2 * layer.padding[axis] < span(layer, axis):
            return axis
    return None


def span(layer: WindowedModule, axis: int) -> int:
    """How many cells the window spans."""
    return layer.dilation[axis] * (layer.kernel_size[axis] - 1) + 1
