"""Defines submanifold convolution, whose outputs are on the sites of its inputs, and checks its arguments."""

from __future__ import annotations

from typing import Any

import torch

from .. import _C, ops
from .._checks import warn_once
from ..coords import Coordinates
from ..ops.plans import Plan
from ..tensor import SparseTensor
from ..window import Numbers, Window, per_axis
from .convolution import Convolution, no_indice_key, sites_in


class SubMConv(Convolution):
    """Submanifold convolution, for 1 to 4 axes by the class's name: outputs are the inputs, a window of
    stride 1 centred on its output. An even axis has no centre and begins at its output.

    Args:
        in_channels: channels of the features that go in.
        out_channels: channels of those that come out.
        kernel_size: cells an axis, one number or one for each.
        dilation: distance of the cells that are looked at.
        groups: a divisor of both numbers of channels.
        bias: whether a number is added to each channel.
        stride: 1, which other layers take; any other is refused.
        padding: kernel_size // 2 (times dilation), which other layers take; any other is refused.
        indice_key: refused: maps are found by the sites.
        dataflow: forces "implicit_gemm", "fetch_on_demand" or "gather_gemm_scatter".
        plan: how it runs, instead of a dataflow: a `Plan` of the forward pass, or a mapping of "forward",
            "input_gradient" and "weight_gradient" to plans. The attribute `plan` may be changed later.
        device: where the parameters are made.
        dtype: their type.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [N, out_channels] on the same sites.
    Raises:
        UserError: a stride, a padding or a key; channels, axes or types that do not fit, with the layer's
            path in the network.
    Waits:
        For a GPU where it is the first layer of a network that ran before and makes sites: once, for all of them.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.randn(2, 4))
        >>> nn.SubMConv3d(4, 8, 3, padding=1)(x).shape
        torch.Size([2, 8])
    """

    _dimension: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        stride: Numbers = 1,
        padding: Numbers | None = None,
        indice_key: None = None,
        dataflow: str | None = None,
        plan: Plan | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """The arguments are those of the class."""
        name = type(self).__name__
        no_indice_key(name, indice_key)
        window = submanifold_window(name, self._dimension, kernel_size, dilation, stride, padding)
        super().__init__(
            self._dimension, in_channels, out_channels, window, groups, bias, dataflow, device, dtype, plan
        )

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        """The map from the sites of `x` to themselves."""
        coords = x.coords if like is None and type(x) is SparseTensor else sites_in(self, x, like)
        return ops.submanifold_map(coords, self.window), coords


def keeps_sites(layer: Convolution) -> bool:
    """Whether its outputs are on the sites of its inputs, so that its map depends on sites and window alone."""
    return type(layer).find is SubMConv.find and "find" not in layer.__dict__


class SubMConv1d(SubMConv):
    __doc__ = SubMConv.__doc__
    _dimension = 1


class SubMConv2d(SubMConv):
    __doc__ = SubMConv.__doc__
    _dimension = 2


class SubMConv3d(SubMConv):
    __doc__ = SubMConv.__doc__
    _dimension = 3


class SubMConv4d(SubMConv):
    __doc__ = SubMConv.__doc__
    _dimension = 4


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
