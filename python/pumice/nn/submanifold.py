"""Checks the arguments of submanifold layers, whose outputs are on the sites of their inputs."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._checks import warn_once
from ..window import Numbers, Window, per_axis


def submanifold_window(
    name: str, dimension: int, kernel_size: Numbers, dilation: Numbers, stride: Any, padding: Any
) -> Window:
    """The window around a layer's output. Raises UserError, in the name of the layer, for a stride or a padding that
    such a layer does not have; warns once of an even kernel, which has no centre."""
    sizes = per_axis(kernel_size, dimension, "kernel_size")
    dilations = per_axis(dilation, dimension, "dilation")
    window = Window.centred(sizes, dilations)
    if any(step != 1 for step in per_axis(stride, dimension, "stride")):
        raise _C.UserError(
            f"{name}: stride = {stride}, but a submanifold layer keeps its sites: leave it out, or take "
            f"Conv{dimension}d, which makes coarser ones"
        )
    if padding is not None:
        centred = [(size - 1) // 2 * step for size, step in zip(sizes, dilations)]
        half = [size // 2 * step for size, step in zip(sizes, dilations)]
        if per_axis(padding, dimension, "padding") not in (centred, half):
            raise _C.UserError(
                f"{name}: padding = {padding}, but a submanifold layer looks around its own site, as "
                f"padding = {tuple(half)} would: leave it out, or take Conv{dimension}d"
            )
    even = [size for size in sizes if size % 2 == 0]
    if even:
        warn_once(
            "even submanifold kernel",
            f"{name}: kernel_size = {kernel_size} has no centre: on an even axis of size {even[0]} an output sees "
            f"the inputs 0 to {even[0] - 1} cells further along, so itself is the first; odd sizes are centred",
        )
    return window


def no_indice_key(name: str, indice_key: Any) -> None:
    """Raises UserError where a map is given a name, as layers of spconv do."""
    if indice_key is not None:
        raise _C.UserError(
            f"{name}: indice_key = {indice_key!r}: leave it out; layers on the same sites share their map without "
            "a name, and InverseConv goes back by the sites themselves (pumice.compat.spconv takes keys)"
        )
