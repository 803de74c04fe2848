"""Defines convolutions with a stride and a padding: their base class, and those that make coarser sites."""

from __future__ import annotations

from typing import Any

import torch

from .. import _C, ops
from ..coords import Coordinates
from ..ops.plans import Plan
from ..tensor import SparseTensor
from ..window import Numbers
from .convolution import Convolution, make_window, no_indice_key, sites_in


class Windowed(Convolution):
    """The base of the layers with a stride and a padding."""

    _dimension: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        indice_key: None = None,
        dataflow: str | None = None,
        plan: Plan | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """The arguments are those of the class."""
        no_indice_key(type(self).__name__, indice_key)
        window = make_window(self._dimension, kernel_size, stride, padding, dilation)
        super().__init__(
            self._dimension, in_channels, out_channels, window, groups, bias, dataflow, device, dtype, plan
        )


class Conv(Windowed):
    """Convolution that makes its own output sites, for 1 to 4 axes by the class's name: every one that an
    offset reaches (outputs="dilating", as spconv), or every occupied coarse cell (outputs="cell", as
    MinkowskiEngine and TorchSparse).

    Args:
        in_channels: channels of the features that go in.
        out_channels: channels of those that come out.
        kernel_size: cells an axis, one number or one for each.
        stride: cells from one output to the next.
        padding: cells around the grid, at least 0.
        dilation: distance of the cells that are looked at.
        groups: a divisor of both numbers of channels.
        bias: whether a number is added to each channel.
        outputs: "dilating" or "cell".
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
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.randn(2, 4))
        >>> nn.Conv3d(4, 8, 2, stride=2)(x).indices
        tensor([[0, 0, 1, 1],
                [0, 0, 1, 2]], dtype=torch.int32)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        outputs: str = "dilating",
        indice_key: None = None,
        dataflow: str | None = None,
        plan: Plan | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            indice_key=indice_key, dataflow=dataflow, plan=plan, device=device, dtype=dtype,
        )  # fmt: skip
        if outputs not in ("dilating", "cell"):
            raise _C.UserError(f"outputs = {outputs!r}: there are 'dilating' and 'cell'")
        self.outputs = outputs

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        """The map to the sites that it makes, and these."""
        return ops.strided_map(sites_in(self, x, like), self.window, self.outputs == "cell")


class Conv1d(Conv):
    __doc__ = Conv.__doc__
    _dimension = 1


class Conv2d(Conv):
    __doc__ = Conv.__doc__
    _dimension = 2


class Conv3d(Conv):
    __doc__ = Conv.__doc__
    _dimension = 3


class Conv4d(Conv):
    __doc__ = Conv.__doc__
    _dimension = 4
