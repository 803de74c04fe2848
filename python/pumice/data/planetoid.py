"""Reads the citation graphs of Planetoid (arXiv:1603.08861), which are pickles: by an unpickler that makes arrays,
sparse matrices and lists, and nothing else."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _C
from .._checks import check_file, check_path
from .folders import Folder


@dataclasses.dataclass(frozen=True)
class NodeClasses:
    """A graph whose nodes have features and classes.

    Args:
        features: float32 [nodes, channels].
        classes: int64 [nodes].
        edge_index: int64 [2, edges], both directions of each edge, once.
        train: int64, the nodes to learn from.
        validation: int64, those to choose by.
        test: int64, those to measure on.
    Example:
        >>> pumice.data.NodeClasses.__dataclass_fields__["train"].type
        'Tensor'
    """

    features: Tensor
    classes: Tensor
    edge_index: Tensor
    train: Tensor
    validation: Tensor
    test: Tensor


def planetoid(folder: Folder, name: str = "cora") -> NodeClasses:
    """A citation graph with its public split: 20 nodes of each class to learn from, 500 to choose by, 1,000 to measure on.

    Args:
        folder: has ind.NAME.x, .y, .tx, .ty, .allx, .ally, .graph and .test.index.
        name: "cora", "citeseer" or "pubmed".
    Returns:
        The graph; rows of features add up to 1.
    Raises:
        UserError: naming the file, where one is missing, is no such pickle, or does not fit the others.
    Example:
        >>> try:
        ...     pumice.data.planetoid("/nowhere")
        ... except pumice.UserError as error:
        ...     print("ind.cora.x" in str(error))
        True
    """
    check_path("folder", folder)
    root = Path(folder)
    read = {part: _unpickled(root / f"ind.{name}.{part}") for part in ("x", "y", "tx", "ty", "allx", "ally", "graph")}
    order = _numbers(root / f"ind.{name}.test.index")
    places = np.sort(order)
    first, last = len(read["ally"]), int(places[-1]) + 1
    if places[0] != first or len(places) != len(read["ty"]) or read["allx"].shape[0] != first:
        raise _C.UserError(f"{root}: the parts of {name} do not fit each other")
    # Of the numbers between, those that are in no list have no features: isolated nodes of CiteSeer.
    features = np.zeros((last, read["allx"].shape[1]), np.float32)
    features[:first] = read["allx"]
    features[order] = read["tx"]
    classes = np.zeros((last, read["ally"].shape[1]), np.int64)
    classes[:first] = read["ally"]
    classes[order] = read["ty"]
    pairs = [(node, other) for node, others in read["graph"].items() for other in others if node != other]
    edges = np.unique(np.array(pairs + [(b, a) for a, b in pairs], np.int64), axis=0)
    if edges.size and not 0 <= edges.min() <= edges.max() < last:
        raise _C.UserError(f"{root / f'ind.{name}.graph'}: an edge leads to node {edges.max()} of {last}")
    sums = features.sum(1, keepdims=True)
    features /= np.where(sums == 0, 1, sums)
    train = len(read["y"])
    return NodeClasses(
        torch.from_numpy(features),
        torch.from_numpy(classes.argmax(1)),
        torch.from_numpy(np.ascontiguousarray(edges.T)),
        torch.arange(train),
        torch.arange(train, min(train + 500, first)),
        torch.from_numpy(places),
    )


class _Matrix:
    """What a sparse matrix of SciPy is made of."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        shape = tuple(int(extent) for extent in state.get("_shape", state.get("shape")))
        dense = np.zeros(shape, np.float32)
        row = np.repeat(np.arange(shape[0]), np.diff(state["indptr"]))
        np.add.at(dense, (row, state["indices"]), state["data"])
        self.dense = dense


def _array(kind: Any, shape: Any, code: Any) -> np.ndarray:
    """What pickles of arrays begin with; their contents come as a state."""
    return np.ndarray((0,), np.int8) if kind is np.ndarray else _refused("numpy", str(kind))


def _refused(module: str, name: str) -> Any:
    raise pickle.UnpicklingError(f"it wants {module}.{name}, and holds more than arrays")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return _array
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if name == "csr_matrix" and module in ("scipy.sparse.csr", "scipy.sparse._csr"):
            return _Matrix
        if (module, name) == ("collections", "defaultdict"):
            return lambda kind=None: {}
        if (module, name) == ("_codecs", "encode"):  # how protocol 2 of Python 3 writes bytes
            return lambda text, coding: text.encode("latin1")
        if name == "list" and module in ("__builtin__", "builtins"):
            return list
        return _refused(module, name)


def _unpickled(path: Path) -> Any:
    """An array, or a dict of lists of whole numbers."""
    check_file(path)
    try:
        with open(path, "rb") as file:
            value = _Unpickler(file, encoding="latin1").load()
    except OSError as error:
        raise _C.UserError(f"{path}: {error.strerror}") from None
    except Exception as error:  # of bytes that are no pickle nearly every error comes
        raise _C.UserError(f"{path} is no pickle of arrays: {error}") from None
    if isinstance(value, _Matrix):
        return value.dense
    is_graph = isinstance(value, dict) and all(
        isinstance(node, int) and isinstance(others, list) and all(isinstance(other, int) for other in others)
        for node, others in value.items()
    )
    if is_graph or (isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "iuf"):
        return value
    raise _C.UserError(f"{path} is no pickle of arrays: it holds a {type(value).__name__}")


def _numbers(path: Path) -> np.ndarray:
    check_file(path)
    try:
        numbers = np.array([int(line) for line in path.read_text(encoding="ascii").split()], np.int64)
    except ValueError as error:
        raise _C.UserError(f"{path}: {error}; whole numbers are needed, one a line") from None
    if numbers.size == 0 or numbers.min() < 0 or len(np.unique(numbers)) != numbers.size:
        raise _C.UserError(f"{path}: its numbers are not distinct nodes from 0 on")
    return numbers
