"""Reads folders of typed edges, and the classes of nodes in them."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import torch
from torch import Tensor

from .. import _C
from .._checks import check_file, check_path, shown, true_or_false
from ..typed_graph import TypedGraph
from .folders import Folder


@dataclasses.dataclass(frozen=True)
class TypedEdges:
    """The edges of a folder.

    Args:
        edge_index: int64 [2, edges], sources and targets.
        edge_type: int64 [edges].
        nodes: how many there are.
        relations: how many there are.
        node_names: as the file writes them; empty where it has numbers alone.
        relation_names: likewise; those of inverses are in no file.
    Example:
        >>> pumice.data.TypedEdges.__dataclass_fields__["nodes"].type
        'int'
    """

    edge_index: Tensor
    edge_type: Tensor
    nodes: int
    relations: int
    node_names: list[str]
    relation_names: list[str]

    def graph(self, device: torch.device | str = "cpu") -> TypedGraph:
        """What layers take instead of edges.

        Args:
            device: where it is to lie.
        Returns:
            The graph.
        Raises:
            Nothing.
        Waits:
            On a GPU, for the number of segments.
        """
        return TypedGraph(self.edge_index.to(device), self.edge_type.to(device), self.nodes, self.relations)


@dataclasses.dataclass(frozen=True)
class EntityClasses:
    """Nodes of a folder's edges that have classes.

    Args:
        edges: with inverses.
        train: int64, the nodes to learn from.
        train_classes: int64, one for each of these.
        test: int64, those to measure on.
        test_classes: int64, one for each of these.
        names: of the classes.
    Example:
        >>> pumice.data.EntityClasses.__dataclass_fields__["train"].type
        'Tensor'
    """

    edges: TypedEdges
    train: Tensor
    train_classes: Tensor
    test: Tensor
    test_classes: Tensor
    names: list[str]


def typed_edges(folder: Folder, inverses: bool = False, part: str = "train") -> TypedEdges:
    """The edges of a folder, numbered as `pumice rgcn` numbers them.

    Args:
        folder: has train2id.txt as OpenKE writes it, with valid2id.txt and test2id.txt, whose nodes count and whose
            edges do not; or one file of N-Triples (.nt) or of `source, relation, target` in numbers (.csv), which gzip
            may have compressed (.gz). Nodes and relations of N-Triples are numbered as they first appear.
        inverses: whether each edge is taken backwards too: those of relation r become 2r, and backwards 2r + 1.
        part: "train", or "valid" or "test" for the edges of OpenKE's other files, of as many nodes and relations.
    Returns:
        The edges in the order of the file, inverses behind them.
    Raises:
        UserError: naming file and line, where it holds something else.
    Waits:
        Never.
    Example:
        >>> try:
        ...     pumice.data.typed_edges("/nowhere")
        ... except pumice.UserError as error:
        ...     print("no such folder" in str(error))
        True
    """
    check_path("folder", folder)
    true_or_false("inverses", inverses)
    if not isinstance(part, str) or part not in ("train", "valid", "test"):
        raise _C.UserError(f"part {shown(part)}: give train, valid or test")
    read = _C.read_typed_edges(folder, inverses, part)
    return TypedEdges(**{**read, **{key: torch.from_numpy(read[key]) for key in ("edge_index", "edge_type")}})


def entities(folder: Folder) -> EntityClasses:
    """Edges of a folder, both ways, and the classes of its trainingSet.tsv and testSet.tsv, as the datasets of R-GCN
    have them: a column of nodes' names and one whose name begins with label.

    Args:
        folder: has those files, and edges with names (`typed_edges`).
    Returns:
        The edges, and nodes with their classes, which are numbered in the order of their names.
    Raises:
        UserError: naming the file, where one is missing, or names a node that no edge has.
    Waits:
        Never.
    Example:
        >>> try:
        ...     pumice.data.entities("/nowhere")
        ... except pumice.UserError as error:
        ...     print("no such folder" in str(error))
        True
    """
    edges = typed_edges(folder, inverses=True)
    number = {name: node for node, name in enumerate(edges.node_names)}
    parts = [_labelled(Path(folder) / f"{part}Set.tsv", number) for part in ("training", "test")]
    names = sorted({label for part in parts for _, label in part})
    place = {name: at for at, name in enumerate(names)}
    lists = []
    for part in parts:
        lists.append(torch.tensor([node for node, _ in part], dtype=torch.int64))
        lists.append(torch.tensor([place[label] for _, label in part], dtype=torch.int64))
    return EntityClasses(edges, *lists, names)


def _labelled(path: Path, number: dict[str, int]) -> list[tuple[int, str]]:
    """(node, label) of each line."""
    check_file(path)
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _C.UserError(f"{path}: {error}") from None
    columns = [name or "" for name in rows[0]] if rows else []
    labels = [name for name in columns if name.startswith("label")]
    nodes = [name for name in columns if name != "id" and not name.startswith("label")]
    if len(labels) != 1 or len(nodes) != 1:
        raise _C.UserError(f"{path}: has columns {', '.join(columns)}: one of nodes and one that begins with label are needed")
    result = []
    for line, row in enumerate(rows, 2):
        node = number.get(f"<{row[nodes[0]]}>")
        if node is None or not row[labels[0]]:
            raise _C.UserError(f"{path}, line {line}: {_C.printable(str(row[nodes[0]]))} is no node of the edges, or has no label")
        result.append((node, row[labels[0]]))
    return result
