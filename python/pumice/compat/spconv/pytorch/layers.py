"""The convolution layers, for one to four dimensions, with spconv's arguments."""

from __future__ import annotations

from ....nn.dimensions import for_dimensions
from ..core import ConvAlgo
from .convolution import SparseConvolution
from .windowed import Numbers

__all__ = [
    "SparseConv1d",
    "SparseConv2d",
    "SparseConv3d",
    "SparseConv4d",
    "SparseConvTranspose1d",
    "SparseConvTranspose2d",
    "SparseConvTranspose3d",
    "SparseConvTranspose4d",
    "SparseInverseConv1d",
    "SparseInverseConv2d",
    "SparseInverseConv3d",
    "SparseInverseConv4d",
    "SubMConv1d",
    "SubMConv2d",
    "SubMConv3d",
    "SubMConv4d",
]


class _Conv(SparseConvolution):
    """Makes its own output sites: every one that an offset reaches."""

    _dimension: int
    _transposed = False

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
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        record_voxel_count: bool = False,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            self._dimension, in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
            bias, transposed=self._transposed, indice_key=indice_key, algo=algo,
            fp32_accum=fp32_accum, record_voxel_count=record_voxel_count,
            large_kernel_fast_algo=large_kernel_fast_algo, name=name,
        )  # fmt: skip


class _ConvTranspose(_Conv):
    """Onto every finer site that it reaches, cut to PyTorch's size of a transposed convolution."""

    _transposed = True


class _SubMConv(SparseConvolution):
    """Outputs are the inputs; stride and padding are ignored. Layers of one `indice_key` have to
    stand on the same sites and have the same window."""

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
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            self._dimension, in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
            bias, True, indice_key=indice_key, algo=algo, fp32_accum=fp32_accum,
            large_kernel_fast_algo=large_kernel_fast_algo, name=name,
        )  # fmt: skip


class _InverseConv(SparseConvolution):
    """Back to the sites that the layer of the same `indice_key` came from, through its map."""

    _dimension: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        indice_key: str | None,
        bias: bool = True,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            self._dimension, in_channels, out_channels, kernel_size, bias=bias, inverse=True,
            indice_key=indice_key, algo=algo, fp32_accum=fp32_accum,
            large_kernel_fast_algo=large_kernel_fast_algo, name=name,
        )  # fmt: skip


SparseConv1d, SparseConv2d, SparseConv3d, SparseConv4d = for_dimensions(_Conv, "SparseConv")
SparseConvTranspose1d, SparseConvTranspose2d, SparseConvTranspose3d, SparseConvTranspose4d = (
    for_dimensions(_ConvTranspose, "SparseConvTranspose")
)
SparseInverseConv1d, SparseInverseConv2d, SparseInverseConv3d, SparseInverseConv4d = (
    for_dimensions(_InverseConv, "SparseInverseConv")
)
SubMConv1d, SubMConv2d, SubMConv3d, SubMConv4d = for_dimensions(_SubMConv, "SubMConv")
