"""Reads the entries of sparse matrices and graphs that other libraries hold, without importing those libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import _C
from ._checks import kind_of

Entries = tuple[Tensor, Tensor, tuple[int, int], "Tensor | None"]


def entries_of(matrix: Any) -> Entries:
    """(row [E], column [E], (rows, columns), values [E] or None). Raises UserError for what holds none."""
    if isinstance(matrix, Tensor):
        return _of_torch(matrix)
    if callable(getattr(matrix, "tocoo", None)):
        return _of_scipy(matrix)
    if callable(getattr(matrix, "coo", None)) and callable(getattr(matrix, "sparse_sizes", None)):
        row, column, values = matrix.coo()
        return row, column, tuple(matrix.sparse_sizes()), values
    if callable(getattr(matrix, "adj_tensors", None)):  # DGL
        source, target = matrix.adj_tensors("coo")[:2]
        return target, source, (matrix.num_dst_nodes(), matrix.num_src_nodes()), None
    if callable(getattr(matrix, "to_directed", None)) and callable(getattr(matrix, "edges", None)):
        return _of_networkx(matrix)
    raise _C.UserError(
        f"matrix is {kind_of(matrix)}: give a sparse tensor of PyTorch, a sparse matrix of SciPy, a graph of NetworkX "
        "or DGL, or a SparseTensor; of edges pumice.Graph(edge_index) makes a graph"
    )


def _of_torch(matrix: Tensor) -> Entries:
    if matrix.layout is torch.strided:
        raise _C.UserError(
            f"matrix is dense, {tuple(matrix.shape)}: give matrix.to_sparse(), or edges to pumice.Graph(edge_index)"
        )
    if matrix.dim() != 2 or matrix.dense_dim() != 0:
        raise _C.UserError(f"matrix has shape {tuple(matrix.shape)}: give two axes, both sparse")
    shape = (matrix.shape[0], matrix.shape[1])
    if matrix.layout is torch.sparse_coo:
        if not matrix.requires_grad:
            row, column = matrix._indices()
            return row, column, shape, matrix._values()
        # Autograd knows the values of coalesced tensors alone: a gradient is that of an element, not of its parts.
        whole = matrix.coalesce()
        row, column = whole.indices()
        return row, column, shape, whole.values().clone()
    if matrix.layout is torch.sparse_csr:
        # Values of these are views of the sparse tensor, which torch.compile does not take.
        return _listed(matrix.crow_indices()), matrix.col_indices(), shape, matrix.values().clone()
    if matrix.layout is torch.sparse_csc:
        return matrix.row_indices(), _listed(matrix.ccol_indices()), shape, matrix.values().clone()
    # Of blocks every element is an entry.
    values = matrix.values()
    high, wide = values.shape[1:]
    if matrix.layout is torch.sparse_bsr:
        block_row, block_column = _listed(matrix.crow_indices()), matrix.col_indices()
    else:
        block_row, block_column = matrix.row_indices(), _listed(matrix.ccol_indices())
    row = (block_row[:, None, None] * high + torch.arange(high, device=values.device)[:, None]).expand(values.shape)
    column = (block_column[:, None, None] * wide + torch.arange(wide, device=values.device)).expand(values.shape)
    return row.reshape(-1), column.reshape(-1), shape, values.reshape(-1).clone()


def _listed(bounds: Tensor) -> Tensor:
    """The row of each entry, of where rows begin."""
    return torch.repeat_interleave(torch.arange(bounds.shape[0] - 1, device=bounds.device), bounds.diff())


def _of_scipy(matrix: Any) -> Entries:
    if len(matrix.shape) != 2:
        raise _C.UserError(f"matrix has shape {tuple(matrix.shape)}: give two axes")
    entries = matrix.tocoo()
    row, column = (torch.from_numpy(np.ascontiguousarray(of)).long() for of in (entries.row, entries.col))
    return row, column, tuple(matrix.shape), torch.from_numpy(np.ascontiguousarray(entries.data))


def _of_networkx(graph: Any) -> Entries:
    """Nodes are counted in the order in which NetworkX lists them."""
    number = {node: at for at, node in enumerate(graph.nodes)}
    edges = list(graph.to_directed().edges(data="weight"))
    column = torch.tensor([number[u] for u, _, _ in edges], dtype=torch.int64)
    row = torch.tensor([number[v] for _, v, _ in edges], dtype=torch.int64)
    values = None
    if any(weight is not None for _, _, weight in edges):
        values = torch.tensor([_weight(*edge) for edge in edges], dtype=torch.get_default_dtype())
    return row, column, (len(number), len(number)), values


def _weight(source: Any, target: Any, weight: Any) -> float:
    """1 where an edge has none, as NetworkX counts it."""
    if weight is None:
        return 1.0
    try:
        if not isinstance(weight, str):
            return float(weight)
    except (TypeError, ValueError):
        pass
    raise _C.UserError(f"the edge from {source!r} to {target!r} has weight = {weight!r}: give a number, or no weight")
