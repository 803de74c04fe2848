"""Finds kernel maps. A map is known by its sites and its window, never by a name.

In a graph a map is a `TracedMap`, elsewhere a `_C.Map`; operators take both.
"""

from __future__ import annotations

from typing import Union

import torch

from .. import _C
from .._checks import kind_of
from .._objects import check_sites, check_window
from ..coords import Coordinates
from ..window import Window
from . import traced
from .traced import TracedMap

Map = Union[_C.Map, TracedMap]
_compiles = torch.compiler.is_compiling


def as_traced(map: Map) -> TracedMap:
    if isinstance(map, TracedMap):
        return map
    if not isinstance(map, _C.Map):
        raise _C.UserError(f"map is {kind_of(map)}: give a map, as ops.submanifold_map and its like make")
    return TracedMap(_C.map_token(map), map.in_rows, map.out_rows, map.offsets)


def submanifold_map(coords: Coordinates, window: Window) -> Map:
    """The map whose outputs are the inputs.

    Args:
        coords: the sites of the input.
        window: size, stride, padding and dilation of the kernel, as `layer.window`.
    Returns:
        A map, found again for the same sites and window.
    Raises:
        UserError: where sites and window have different axes.
    Waits:
        For a GPU where it is the first map of new sites, and maps of other sites followed when `window` was last used
        so: once, for how many sites there are of all of them.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> ops.submanifold_map(x.coords, nn.SubMConv3d(4, 8, 3).window).pairs
        4
    """
    if type(coords) is not Coordinates:
        check_sites("coords", coords)
    if type(window) is not Window:
        check_window("window", window)
    if _compiles():
        return traced.submanifold_map(coords, window)
    return _C.submanifold_map(coords.sites, window.c)


def strided_map(coords: Coordinates, window: Window, cell: bool) -> tuple[Map, Coordinates]:
    """The map onto coarser sites.

    Args:
        coords: the sites of the input.
        window: size, stride, padding and dilation of the kernel, as `layer.window`.
        cell: onto every occupied coarse cell; else onto every output cell that an offset reaches.
    Returns:
        (map, the sites it leads to).
    Raises:
        UserError: where sites and window have different axes.
    Waits:
        For a GPU, for how many sites there are; once, as the map is found again.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> window = nn.Conv3d(4, 8, 2, stride=2).window
        >>> map, coarse = ops.strided_map(x.coords, window, cell=True)
        >>> map.pairs, coarse.stride
        (2, (2, 2, 2))
    """
    check_sites("coords", coords)
    check_window("window", window)
    if torch.compiler.is_compiling():
        return traced.strided_map(coords, window, cell)
    map = _C.strided_map(coords.sites, window.c, cell)
    return map, Coordinates._of(map.out_sites)


def transposed_map(coords: Coordinates, fine: Coordinates, window: Window) -> Map:
    """The map from coarse sites onto given finer ones.

    Args:
        coords: the sites of the input.
        fine: the sites to go to.
        window: size, stride, padding and dilation of the kernel, as `layer.window`.
    Returns:
        A map.
    Raises:
        UserError: where sites and window have different axes, or strides that do not fit.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> window = nn.Conv3d(4, 8, 2, stride=2).window
        >>> _, coarse = ops.strided_map(x.coords, window, cell=True)
        >>> ops.transposed_map(coarse, x.coords, window).out_rows
        2
    """
    check_sites("coords", coords)
    check_sites("fine", fine)
    check_window("window", window)
    if torch.compiler.is_compiling():
        return traced.transposed_map(coords, fine, window)
    return _C.transposed_map(coords.sites, fine.sites, window.c)


def generative_map(coords: Coordinates, window: Window) -> tuple[Map, Coordinates]:
    """The map onto every finer site it reaches.

    Args:
        coords: the sites of the input.
        window: size, stride, padding and dilation of the kernel, as `layer.window`.
    Returns:
        (map, the sites it leads to).
    Raises:
        UserError: where sites and window have different axes.
    Waits:
        For a GPU, for how many sites there are; once, as the map is found again.
    Example:
        >>> coarse = pumice.Coordinates(torch.tensor([[0, 1, 1, 1]]), stride=[2, 2, 2])
        >>> len(ops.generative_map(coarse, nn.Conv3d(4, 8, 2, stride=2).window)[1])
        8
    """
    check_sites("coords", coords)
    check_window("window", window)
    if torch.compiler.is_compiling():
        return traced.generative_map(coords, window)
    map = _C.generative_map(coords.sites, window.c)
    return map, Coordinates._of(map.out_sites)


def inverse_map(
    coords: Coordinates, window: Window, fine: Coordinates | None = None
) -> tuple[Map, Coordinates]:
    """The strided map of `window` that led to these sites, from the other side.

    Args:
        coords: the sites of the input.
        window: size, stride, padding and dilation of the kernel, as `layer.window`.
        fine: the sites to go back to, which has to be where that map came from.
    Returns:
        (map, the sites it leads back to).
    Raises:
        UserError: where no such map led here.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> window = nn.Conv3d(4, 8, 2, stride=2).window
        >>> map, coarse = ops.strided_map(x.coords, window, cell=True)
        >>> ops.inverse_map(coarse, window)[1].is_same(x.coords)
        True
    """
    check_sites("coords", coords)
    if fine is not None:
        check_sites("fine", fine)
    check_window("window", window)
    if torch.compiler.is_compiling():
        return traced.inverse_map(coords, window, fine)
    map = _C.inverse_map(coords.sites, window.c, None if fine is None else fine.sites)
    return map, Coordinates._of(map.out_sites) if fine is None else fine


def finer_sites(coords: Coordinates, window: Window) -> Coordinates | None:
    """The sites from which a strided map of the stride of `window`, whatever its size, led to `coords`.

    Args:
        coords: the sites of the input.
        window: size, stride, padding and dilation of the kernel, as `layer.window`.
    Returns:
        The sites; None where no map led here.
    Raises:
        UserError: for arguments of other kinds.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> window = nn.Conv3d(4, 8, 2, stride=2).window
        >>> _, coarse = ops.strided_map(x.coords, window, cell=True)
        >>> ops.finer_sites(coarse, window).is_same(x.coords)
        True
    """
    check_sites("coords", coords)
    check_window("window", window)
    if torch.compiler.is_compiling():
        return traced.finer_sites(coords, window)
    found = _C.finer_sites(coords.sites, window.stride)
    return None if found is None else Coordinates._of(found)
