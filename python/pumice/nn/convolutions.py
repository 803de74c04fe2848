"""The convolution layers, for one to four dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from .. import _C, ops
from ..coords import Coordinates
from ..tensor import SparseTensor
from ..window import Window, per_axis
from .convolution import Convolution, make_window, sites_of
from .dimensions import for_dimensions

Numbers = Union[int, Sequence[int]]


class _SubMConv(Convolution):
    """Outputs are the inputs: a window of stride 1, centred on its output."""

    _dimension: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        **options: Any,
    ) -> None:
        window = Window.centred(
            per_axis(kernel_size, self._dimension, "kernel_size"),
            per_axis(dilation, self._dimension, "dilation"),
        )
        super().__init__(
            self._dimension, in_channels, out_channels, window, groups, bias, **options
        )

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        return ops.submanifold_map(x.coords, self.window), x.coords


def keeps_sites(layer: Convolution) -> bool:
    """Whether its outputs are its inputs, so that sites and window alone say which map it takes."""
    return type(layer).find is _SubMConv.find and "find" not in layer.__dict__


class _StridedArguments(Convolution):
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
        **options: Any,
    ) -> None:
        window = make_window(self._dimension, kernel_size, stride, padding, dilation)
        super().__init__(
            self._dimension, in_channels, out_channels, window, groups, bias, **options
        )


class _Conv(_StridedArguments):
    """Makes its own output sites: every one that an offset reaches (outputs="dilating", as spconv),
    or every occupied coarse cell (outputs="cell", as MinkowskiEngine and TorchSparse)."""

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
        **options: Any,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, **options
        )
        if outputs not in ("dilating", "cell"):
            raise _C.UserError(f"outputs = {outputs!r}: there are 'dilating' and 'cell'")
        self.outputs = outputs

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        return ops.strided_map(x.coords, self.window, self.outputs == "cell")


class _InverseConv(_StridedArguments):
    """Back to the sites that a strided convolution of the same window came from, through its map:
    forward(x), or forward(x, like) where several lead to the sites of x."""

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        return ops.inverse_map(x.coords, self.window, sites_of(like))


class _ConvTranspose(_StridedArguments):
    """Onto finer sites that are there: forward(x, like), `like` a sparse tensor or Coordinates. Without
    `like`, back to those from which a strided layer of the same stride led to the sites of x, whatever
    its kernel."""

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        fine = ops.finer_sites(x.coords, self.window) if like is None else sites_of(like)
        if fine is None:
            raise _C.UserError(
                f"{type(self).__name__}: no layer of stride {self.window.stride} led to the sites of "
                "its input: pass the tensor that has the sites to go to, or use "
                "GenerativeConvTranspose for every site it reaches"
            )
        return ops.transposed_map(x.coords, fine, self.window), fine


class _GenerativeConvTranspose(_StridedArguments):
    """Onto every finer site that it reaches."""

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        return ops.generative_map(x.coords, self.window)


SubMConv1d, SubMConv2d, SubMConv3d, SubMConv4d = for_dimensions(_SubMConv, "SubMConv")
Conv1d, Conv2d, Conv3d, Conv4d = for_dimensions(_Conv, "Conv")
InverseConv1d, InverseConv2d, InverseConv3d, InverseConv4d = for_dimensions(
    _InverseConv, "InverseConv"
)
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, ConvTranspose4d = for_dimensions(
    _ConvTranspose, "ConvTranspose"
)
(
    GenerativeConvTranspose1d,
    GenerativeConvTranspose2d,
    GenerativeConvTranspose3d,
    GenerativeConvTranspose4d,
) = for_dimensions(_GenerativeConvTranspose, "GenerativeConvTranspose")
