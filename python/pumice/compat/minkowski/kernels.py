"""Kernels: which offsets there are, in MinkowskiEngine's order, and the maps they make."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C, ops
from ..._checks import full_kind_of, shown
from ...coords import Coordinates
from ...window import Window
from ..foreign import ForeignWeight, PeerAssertionError
from .coordinates import int_list
from .enums import RegionType
from .regions import convert_region_type, get_kernel_volume
from .row_maps import kernel_offsets
from .tensor import SparseTensor, sites_given
from .traced import map_onto


def needed_dimension(dimension: Any) -> int:
    """`dimension` of a layer, which has no default that would do."""
    if dimension not in (1, 2, 3, 4):
        raise PeerAssertionError(
            f"dimension = {dimension!r}: give 1 to 4, the number of axes of the coordinates"
        )
    return int(dimension)


def check_dimension(dimension: int, input: Any) -> None:
    """Raises PeerAssertionError for an input of another dimension than the layer's."""
    if not hasattr(input, "D"):
        raise PeerAssertionError(
            f"a layer takes a SparseTensor, and got {full_kind_of(input)}: make one with "
            "ME.SparseTensor(features, coordinates)"
        )
    if not hasattr(type(input), "sites"):
        raise PeerAssertionError(
            f"the layer takes a SparseTensor, and got {full_kind_of(input)}: call .sparse() on it first, which gives one"
        )
    if input.D != dimension:
        raise PeerAssertionError(
            f"the layer has dimension {dimension}, and its input {input.D}: give dimension={input.D}, or coordinates "
            "with the batch index as a first column (torch.nn.functional.pad(coordinates, (1, 0)) adds one of zeros)"
        )


class KernelGenerator:
    """Size, stride, dilation and region of a kernel; RegionType.CUSTOM is as absent as there."""

    def __init__(
        self, kernel_size: Any = -1, stride: Any = 1, dilation: Any = 1, is_transpose: bool = False,
        region_type: RegionType = RegionType.HYPER_CUBE, region_offsets: Any = None,
        expand_coordinates: bool = False, axis_types: Any = None, dimension: int | None = -1,
    ) -> None:
        dimension = needed_dimension(dimension)
        if region_type is RegionType.CUSTOM or region_offsets is not None or axis_types is not None:
            raise _C.UserError("region_type: there are HYPER_CUBE and HYPER_CROSS")
        self.kernel_size = int_list("kernel_size", kernel_size, dimension)
        self.kernel_stride = int_list("stride", stride, dimension)
        self.kernel_dilation = int_list("dilation", dilation, dimension)
        if min(self.kernel_size) < 1:
            raise _C.UserError(f"kernel_size = {self.kernel_size}: give at least 1")
        cross = region_type is RegionType.HYPER_CROSS
        self.region_type = region_type
        self.region_offsets = torch.IntTensor()
        self.axis_types = None
        self.dimension = dimension
        self.expand_coordinates = expand_coordinates
        self.kernel_volume = get_kernel_volume(region_type, self.kernel_size, None, None, dimension)
        self.requires_strided_coordinates = all(s == 1 for s in self.kernel_stride)
        # Odd axes are centred, even ones begin at their output.
        padding = [
            (k - 1) // 2 * d if k % 2 == 1 else 0
            for k, d in zip(self.kernel_size, self.kernel_dilation)
        ]
        self.window = Window(
            self.kernel_size, self.kernel_stride, padding, self.kernel_dilation, cross
        )
        # Of a pool: one as large as its stride goes over the cells of each coarser one, whatever its dilation and region.
        self.pool_window = self.window
        if self.kernel_size == self.kernel_stride:
            self.pool_window = Window(self.kernel_size, self.kernel_stride, [0] * dimension, [1] * dimension)

    def get_kernel(
        self, tensor_stride: Any, is_transpose: bool
    ) -> tuple[RegionType, Tensor, int]:
        """(region type, no offsets int32 [0], how many offsets the kernel has), at every stride."""
        int_list("tensor_stride", tensor_stride, self.dimension)
        return convert_region_type(
            self.region_type, tensor_stride, self.kernel_size, self.kernel_stride, self.kernel_dilation,
            self.region_offsets, self.axis_types, self.dimension,
        )

    def offsets(self) -> list[tuple[int, ...]]:
        """In cells of the finer side, in the order of the kernel's first axis."""
        cross = self.region_type is RegionType.HYPER_CROSS
        return kernel_offsets(self.kernel_size, self.kernel_dilation, cross)


def check_generator(kernel: Any) -> None:
    """Raises PeerAssertionError for what is no KernelGenerator."""
    if not isinstance(kernel, KernelGenerator):
        raise PeerAssertionError(
            f"kernel_generator {shown(kernel)}: give a KernelGenerator, as ME.KernelGenerator(3, dimension=3), or "
            "kernel_size, stride and dilation in its place"
        )


def kernel_of(given: KernelGenerator | None, *args: Any, **kwargs: Any) -> KernelGenerator:
    """The `kernel_generator` given to a layer, or the one that its other arguments make."""
    if given is None:
        return KernelGenerator(*args, **kwargs)
    check_generator(given)
    return given


class CrossWeight(ForeignWeight):
    """Of a HYPER_CROSS: the centre first, then +1 ... +r and -r ... -1 of every axis."""

    def __init__(self, size: Any, window: Window) -> None:
        super().__init__("minkowski", size)
        self.window = window
        steps = kernel_offsets(size, [1] * len(size), True)
        places = [tuple(k // 2 + step for k, step in zip(size, offset)) for offset in steps]
        self.order = [places.index(tuple(offset)) for offset in window.c.offsets()]

    def as_lies(self, parameter: Tensor) -> None:
        """Its offsets are numbered by no axes."""
        return None

    def turn(self, parameter: Tensor) -> Tensor:
        return parameter.reshape(-1, *parameter.shape[-2:])[self.order]

    def _arguments(self) -> tuple[Any, ...]:
        return self.size, self.window


def weight_of(kernel: KernelGenerator, strided: bool) -> ForeignWeight:
    """What turns the parameter of a layer; `strided`: it has an axis for the offsets."""
    if kernel.region_type is RegionType.HYPER_CROSS:
        return CrossWeight(kernel.kernel_size, kernel.window)
    return ForeignWeight("minkowski", kernel.kernel_size, strided)


def find_map(
    x: SparseTensor, kernel: KernelGenerator, coordinates: Any, transposed: bool,
    generative: bool = False, pools: bool = False,
) -> tuple[ops.Map, Coordinates]:
    """The map of a layer and the sites it leads to: those of `coordinates` (a tensor, key or matrix), those that the manager
    has at the stride that comes out, or new ones. Finer ones are those that the tensor came from (the keys have one name);
    where there are none, as of a tensor that was pruned, those of the manager's first tensor."""
    window, manager, name = kernel.pool_window if pools else kernel.window, x._manager, x._key.get_key()[1]
    sites, given = x.sites, _sites_wanted(x, kernel, coordinates, transposed)
    steps = kernel.kernel_stride
    if transposed:
        if given is None and not generative:
            finer = [max(1, s // step) if s % step == 0 else 1 for s, step in zip(sites.stride, steps)]
            own = manager.find(finer, name)
            given = manager.find(finer, "") if own is None else own
        if given is None:
            given = manager.reached(x._key, kernel.offsets(), steps, finer=True)
        return ops.transposed_map(sites, given, window), given
    if given is None and generative:
        given = manager.reached(x._key, kernel.offsets(), steps, finer=False)
    elif given is None:
        if kernel.requires_strided_coordinates:
            return ops.submanifold_map(sites, window), sites
        given = manager.sites(manager.stride(x._key, steps))
    return map_onto(sites, given, window), given


def _sites_wanted(
    x: SparseTensor, kernel: KernelGenerator, coordinates: Any, transposed: bool
) -> Coordinates | None:
    if coordinates is None:
        return None
    steps = zip(x.tensor_stride, kernel.kernel_stride)
    stride = [max(1, s // step) if transposed else s * step for s, step in steps]
    return sites_given(coordinates, x._manager, stride)
