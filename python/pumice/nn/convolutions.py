"""Defines submanifold convolution, and collects the names of all convolution layers."""

from __future__ import annotations

from typing import Any

import torch

from .. import ops
from ..coords import Coordinates
from ..tensor import SparseTensor
from ..window import Numbers
from .convolution import Convolution
from .strided import Conv, Conv1d, Conv2d, Conv3d, Conv4d
from .submanifold import no_indice_key, submanifold_window
from .transposed import (
    ConvTranspose,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    ConvTranspose4d,
    GenerativeConvTranspose,
    GenerativeConvTranspose1d,
    GenerativeConvTranspose2d,
    GenerativeConvTranspose3d,
    GenerativeConvTranspose4d,
    InverseConv,
    InverseConv1d,
    InverseConv2d,
    InverseConv3d,
    InverseConv4d,
)

__all__ = [
    "Conv",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "Conv4d",
    "ConvTranspose",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "ConvTranspose4d",
    "GenerativeConvTranspose",
    "GenerativeConvTranspose1d",
    "GenerativeConvTranspose2d",
    "GenerativeConvTranspose3d",
    "GenerativeConvTranspose4d",
    "InverseConv",
    "InverseConv1d",
    "InverseConv2d",
    "InverseConv3d",
    "InverseConv4d",
    "SubMConv",
    "SubMConv1d",
    "SubMConv2d",
    "SubMConv3d",
    "SubMConv4d",
    "keeps_sites",
]


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
        device: where the parameters are made.
        dtype: their type.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [N, out_channels] on the same sites.
    Raises:
        UserError: a stride, a padding or a key; channels, axes or types that do not fit, with the layer's
            path in the network.
    Waits:
        Never.
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """The arguments are those of the class."""
        name = type(self).__name__
        no_indice_key(name, indice_key)
        window = submanifold_window(name, self._dimension, kernel_size, dilation, stride, padding)
        super().__init__(
            self._dimension, in_channels, out_channels, window, groups, bias, dataflow, device, dtype
        )

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        """The map from the sites of `x` to themselves."""
        return ops.submanifold_map(x.coords, self.window), x.coords


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
