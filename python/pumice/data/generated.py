"""Generates graphs from a seed, for benchmarks, examples and tests."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from .. import _C
from .._checks import floats, number_from, true_or_false, whole_number

_MOST_NODES = 2**31 - 1
_MOST_EDGES = 2**40


def power_law_edges(
    nodes: int, edges: int, seed: int = 0, target_exponent: float = 1.5, source_exponent: float = 1.2
) -> Tensor:
    """Edges of a graph in which a few nodes have much of them, on both sides: those of the tables of measurements, but
    for the numbers that are drawn.

    Args:
        nodes: how many.
        edges: how many; some repeat.
        seed: of the numbers.
        target_exponent: of the Pareto numbers, at most nodes / 50, that the edges which lead to nodes are proportional
            to. The smaller, the longer the longest row.
        source_exponent: of the Lomax numbers, times nodes / 50 and at most the last node, whose place in a random order
            of the nodes an edge comes from.
    Returns:
        int64 [2, edges], sources and targets, in ascending order of targets; the same for any number of threads.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> edge_index = data.power_law_edges(1000, 20_000)
        >>> edge_index.shape, int(edge_index[1].bincount().max()) > 100
        (torch.Size([2, 20000]), True)
    """
    nodes = whole_number("nodes", nodes, 0, _MOST_NODES)
    edges = whole_number("edges", edges, 0, _MOST_EDGES)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    for name, exponent in (("target_exponent", target_exponent), ("source_exponent", source_exponent)):
        number_from(name, exponent, 1e-3, 1e3)
    return _C.power_law_edges(nodes, edges, seed, target_exponent, source_exponent)


def rmat_edges(scale: int, edges: int, seed: int = 0, shares: Sequence[float] = (0.57, 0.19, 0.19)) -> Tensor:
    """Edges of R-MAT (Chakrabarti, Zhan, Faloutsos 2004), which halves the rows and columns of the adjacency matrix
    `scale` times and draws a quarter each time.

    Args:
        scale: there are 2**scale nodes; 0 to 30.
        edges: how many; some repeat.
        seed: of the numbers.
        shares: of the quarters (first half of sources, first half of targets), (first, second), (second, first); the
            last one gets what is left. Those of Graph500 by default.
    Returns:
        int64 [2, edges], sources and targets, in no order; the same for any number of threads.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> data.rmat_edges(10, 5000).shape
        torch.Size([2, 5000])
    """
    scale = whole_number("scale", scale, 0, 30)
    edges = whole_number("edges", edges, 0, _MOST_EDGES)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    given = floats("shares", shares, "give three numbers that add up to 1 at most")
    if len(given) != 3:
        raise _C.UserError(f"shares has {len(given)} numbers: give three, which add up to 1 at most")
    return _C.rmat_edges(scale, edges, seed, *given)


def grid_edges(extents: Sequence[int], wraps: bool = False) -> Tensor:
    """Edges of a grid, in both directions between neighbours along an axis.

    Args:
        extents: nodes along each axis, of which there are 1 to 8; numbers of nodes go along the last one first.
        wraps: whether the ends of an axis of 3 nodes and more are neighbours too.
    Returns:
        int64 [2, edges], sources and targets, in ascending order of targets, then of sources.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> data.grid_edges([2, 2])
        tensor([[1, 2, 0, 3, 0, 3, 1, 2],
                [0, 0, 1, 1, 2, 2, 3, 3]])
    """
    if isinstance(extents, str) or not hasattr(extents, "__iter__"):
        raise _C.UserError(f"extents = {extents!r}: give nodes along each axis, as [100, 100]")
    true_or_false("wraps", wraps)
    return _C.grid_edges([whole_number("extents", extent, 0, _MOST_NODES) for extent in extents], bool(wraps))
