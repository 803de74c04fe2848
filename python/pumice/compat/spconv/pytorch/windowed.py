"""The base classes of spconv's modules: of all, and of those with a kernel that work through a map."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Union

import torch

from .... import _C
from ...._checks import full_kind_of
from ...._where import place_of
from ....window import Window
from ...foreign import PeerAssertionError
from ..core import ConvAlgo
from .core import SparseConvTensor, expand_nd

Numbers = Union[int, Sequence[int]]


class SparseModule(torch.nn.Module):
    """The base of all modules that SparseSequential gives the sparse tensor itself."""

    # What torch writes beside the weights: 2 says that they are laid out as spconv 2.2 has them.
    _version = 2

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self.name = name
        self._sparse_unique_name = ""

    def describe(self) -> str:
        """For errors: its name where it has one, else its path in the network that runs."""
        name = self._sparse_unique_name or self.name
        if name:
            return f"{type(self).__name__} {name!r}"
        return place_of(self, sys._getframe(1))

    def _check_sparse(self, x: Any) -> None:
        """Raises PeerAssertionError for what is no sparse tensor."""
        if not isinstance(x, SparseConvTensor):
            raise self._not_sparse(x)

    def _not_sparse(self, x: Any) -> PeerAssertionError:
        return PeerAssertionError(
            f"{self.describe()} takes a SparseConvTensor, and got {full_kind_of(x)}: make one with "
            "spconv.SparseConvTensor(features, indices, spatial_shape, batch_size)"
        )


class WindowedModule(SparseModule):
    """A layer that works through a map: it has a kernel_size, stride, padding and dilation, and may
    name the map by an `indice_key`.

    `record_voxel_count`: keeps the largest number of rows that came out, in the buffer
    `max_num_voxels_during_training`, int32 [1].
    """

    inverse = False
    transposed = False
    output_padding: Sequence[int] = ()
    # The largest kernel, in offsets, that spconv computes through masks.
    _offsets_of_mask = 128
    _benchmark_type = "SparseMaxPool"  # of all pooling

    def __init__(
        self,
        ndim: int,
        kernel_size: Numbers,
        stride: Numbers,
        padding: Numbers,
        dilation: Numbers,
        indice_key: str | None,
        subm: bool,
        algo: ConvAlgo | None,
        record_voxel_count: bool,
        name: str | None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.ndim = ndim
        self.kernel_size = expand_nd(ndim, kernel_size, "kernel_size")
        self.stride = expand_nd(ndim, stride, "stride")
        self.padding = expand_nd(ndim, padding, "padding")
        self.dilation = expand_nd(ndim, dilation, "dilation")
        self.indice_key = indice_key
        self.subm = subm
        self.algo = self._default_algo() if algo is None else algo
        self.record_voxel_count = record_voxel_count
        self.window = window_of(self)
        if self._counts_voxels():
            count = torch.zeros(1, dtype=torch.int32, device=device)
            self.register_buffer("max_num_voxels_during_training", count)

    def _counts_voxels(self) -> bool:
        return self.record_voxel_count and not self.subm and not self.inverse

    def get_max_num_voxels(self) -> torch.Tensor | None:
        return getattr(self, "max_num_voxels_during_training", None)

    def _count_voxels(self, rows: int) -> None:
        if self._counts_voxels():
            self.max_num_voxels_during_training.clamp_min_(rows)

    def _check_dimension(self, x: SparseConvTensor) -> None:
        self._check_sparse(x)
        if len(x.spatial_shape) != self.ndim:
            raise PeerAssertionError(
                f"{self.describe()}: takes {self.ndim} axes, and the input has {len(x.spatial_shape)}"
            )

    def _check_rows(self, x: SparseConvTensor) -> None:
        if x.indices.shape[0] == 0:
            raise _C.UserError(f"{self.describe()}: the input has no rows: leave the layer out")

    def _default_algo(self) -> ConvAlgo:
        """What spconv takes, which changes nothing here; `repr` says it."""
        small = math.prod(self.kernel_size) <= self._offsets_of_mask
        return ConvAlgo.MaskImplicitGemm if small else ConvAlgo.Native

    def _benchmark_params(self, x: SparseConvTensor) -> dict[str, Any]:
        names = ("kernel_size", "stride", "padding", "dilation")
        return {name: getattr(self, name) for name in names}

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}"
        )


def window_of(layer: WindowedModule) -> Window:
    """The window of a layer; that of a submanifold layer is around its output, whatever its padding and stride."""
    if not layer.subm:
        behind = layer.output_padding if layer.transposed else ()
        return Window(
            layer.kernel_size, layer.stride, layer.padding, layer.dilation, output_padding=behind
        )
    if any(size % 2 == 0 for size in layer.kernel_size):
        raise _C.UserError(
            f"{type(layer).__name__}: kernel_size = {layer.kernel_size}: a submanifold layer takes "
            "odd sizes"
        )
    return Window.centred(layer.kernel_size, layer.dilation)
