"""Defines convolutions from coarse sites to finer ones."""

from __future__ import annotations

from typing import Any

from .. import _C, ops
from ..coords import Coordinates
from ..tensor import SparseTensor
from .convolution import sites_in, sites_of
from .strided import Windowed


class InverseConv(Windowed):
    """Convolution back to the sites that a strided one of the same window came from, through its map, for 1
    to 4 axes by the class's name: layer(x), or layer(x, like) where several lead to the sites of x.

    Args:
        in_channels: channels of the features that go in.
        out_channels: channels of those that come out.
        kernel_size: cells an axis, one number or one for each.
        stride: cells from one output to the next.
        padding: cells around the grid, at least 0.
        dilation: distance of the cells that are looked at.
        groups: a divisor of both numbers of channels.
        bias: whether a number is added to each channel.
        indice_key: refused: maps are found by the sites.
        dataflow: forces "implicit_gemm", "fetch_on_demand" or "gather_gemm_scatter".
        plan: how it runs, instead of a dataflow: a `Plan` of the forward pass, or a mapping of "forward",
            "input_gradient" and "weight_gradient" to plans. The attribute `plan` may be changed later.
        device: where the parameters are made.
        dtype: their type.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [M, out_channels] on the sites that the strided
        layer took.
    Raises:
        UserError: channels, axes or types that do not fit, with the layer's path in the network;
            no strided layer, or several, that led to the sites.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.randn(2, 4))
        >>> down, up = nn.Conv3d(4, 8, 2, stride=2), nn.InverseConv3d(8, 4, 2, stride=2)
        >>> up(down(x)).coords.is_same(x.coords)
        True
    """

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        """The map of the strided layer from the other side, and the sites that it took."""
        return ops.inverse_map(sites_in(self, x), self.window, sites_of(like))


class ConvTranspose(Windowed):
    """Transposed convolution onto finer sites that are there, for 1 to 4 axes by the class's name: layer(x,
    like), with `like` a sparse tensor or Coordinates. Without `like` it goes back to the sites from which a strided
    layer of the same stride, with any kernel, made those of x.

    Args:
        in_channels: channels of the features that go in.
        out_channels: channels of those that come out.
        kernel_size: cells an axis, one number or one for each.
        stride: cells from one output to the next.
        padding: cells around the grid, at least 0.
        dilation: distance of the cells that are looked at.
        groups: a divisor of both numbers of channels.
        bias: whether a number is added to each channel.
        indice_key: refused: maps are found by the sites.
        dataflow: forces "implicit_gemm", "fetch_on_demand" or "gather_gemm_scatter".
        plan: how it runs, instead of a dataflow: a `Plan` of the forward pass, or a mapping of "forward",
            "input_gradient" and "weight_gradient" to plans. The attribute `plan` may be changed later.
        device: where the parameters are made.
        dtype: their type.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [M, out_channels] on the finer sites.
    Raises:
        UserError: channels, axes or types that do not fit, with the layer's path in the network;
            no strided layer, or several, that led to the sites, and no `like`.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.randn(2, 4))
        >>> down, up = nn.Conv3d(4, 8, 2, stride=2), nn.ConvTranspose3d(8, 4, 3, stride=2, padding=1)
        >>> up(down(x), x).shape
        torch.Size([2, 4])
    """

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        """The map to the sites of `like`, and these."""
        coords = sites_in(self, x)
        fine = ops.finer_sites(coords, self.window) if like is None else sites_of(like)
        if fine is None:
            raise _C.UserError(
                f"{type(self).__name__}: no layer of stride {self.window.stride} led to the sites of "
                "its input: pass the tensor that has the sites to go to, or use "
                "GenerativeConvTranspose for every site it reaches"
            )
        return ops.transposed_map(coords, fine, self.window), fine


class GenerativeConvTranspose(Windowed):
    """Transposed convolution onto every finer site that it reaches, for 1 to 4 axes by the class's name.

    Args:
        in_channels: channels of the features that go in.
        out_channels: channels of those that come out.
        kernel_size: cells an axis, one number or one for each.
        stride: cells from one output to the next.
        padding: cells around the grid, at least 0.
        dilation: distance of the cells that are looked at.
        groups: a divisor of both numbers of channels.
        bias: whether a number is added to each channel.
        indice_key: refused: maps are found by the sites.
        dataflow: forces "implicit_gemm", "fetch_on_demand" or "gather_gemm_scatter".
        plan: how it runs, instead of a dataflow: a `Plan` of the forward pass, or a mapping of "forward",
            "input_gradient" and "weight_gradient" to plans. The attribute `plan` may be changed later.
        device: where the parameters are made.
        dtype: their type.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [M, out_channels] on the new sites.
    Raises:
        UserError: channels, axes or types that do not fit, with the layer's path in the network.
    Waits:
        For a GPU, for how many sites there are; once, as later calls on the same sites know them. Where a network ran
        before, its first layer waits for all.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3]]), torch.randn(1, 4), stride=[2, 2, 2])
        >>> len(nn.GenerativeConvTranspose3d(4, 8, 2, stride=2)(x))
        8
    """

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        """The map to the sites that it makes, and these."""
        return ops.generative_map(sites_in(self, x, like), self.window)


class InverseConv1d(InverseConv):
    __doc__ = InverseConv.__doc__
    _dimension = 1


class InverseConv2d(InverseConv):
    __doc__ = InverseConv.__doc__
    _dimension = 2


class InverseConv3d(InverseConv):
    __doc__ = InverseConv.__doc__
    _dimension = 3


class InverseConv4d(InverseConv):
    __doc__ = InverseConv.__doc__
    _dimension = 4


class ConvTranspose1d(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    _dimension = 1


class ConvTranspose2d(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    _dimension = 2


class ConvTranspose3d(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    _dimension = 3


class ConvTranspose4d(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    _dimension = 4


class GenerativeConvTranspose1d(GenerativeConvTranspose):
    __doc__ = GenerativeConvTranspose.__doc__
    _dimension = 1


class GenerativeConvTranspose2d(GenerativeConvTranspose):
    __doc__ = GenerativeConvTranspose.__doc__
    _dimension = 2


class GenerativeConvTranspose3d(GenerativeConvTranspose):
    __doc__ = GenerativeConvTranspose.__doc__
    _dimension = 3


class GenerativeConvTranspose4d(GenerativeConvTranspose):
    __doc__ = GenerativeConvTranspose.__doc__
    _dimension = 4
