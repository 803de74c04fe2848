"""Samples neighbours, for networks that are trained on batches of a graph's nodes."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._checks import kind_of, true_or_false, whole_number
from .._keywords import Keywords, understands
from ..graph import Graph
from ..typed_graph import TypedGraph
from .ahead import made_ahead
from .shares import Shares, check_seeds, place_of


@dataclasses.dataclass
class NeighbourBatch:
    """The part of a graph that some of its nodes, the seeds, take to train on. What else is put on it moves with it.

    Args:
        n_id: int64 [N], the numbers of its nodes in the graph, those of the seeds first.
        e_id: int64 [E], the numbers of its edges in the graph: weight[batch.e_id] are their weights.
        batch_size: how many seeds there are.
        blocks: a graph for each layer, in the order in which layers run, a `TypedGraph` where edges have types. The
            targets of a block are the first of its sources, and the sources of the next block; its edges are the first
            of `e_id`.
        counted: how many seeds, from the first on, no other process has in this epoch before.
        edge_type: int64 [E], or None.
    Example:
        >>> batch = next(iter(data.NeighbourLoader(data.grid_edges([30, 30]), [3, 3], batch_size=8)))
        >>> x = torch.randn(900, 4)[batch.n_id]
        >>> for block in batch.blocks:
        ...     x = nn.graph.SAGEConv(4, 4)((x, x[: block.rows]), block)
        >>> x.shape
        torch.Size([8, 4])
    """

    n_id: Tensor
    e_id: Tensor
    batch_size: int
    blocks: list[Any]
    counted: int
    edge_type: Tensor | None = None
    _edges: Tensor | None = dataclasses.field(default=None, repr=False)

    @property
    def seeds(self) -> Tensor:
        """int64 [batch_size], their numbers in the graph."""
        return self.n_id[: self.batch_size]

    @property
    def edge_index(self) -> Tensor:
        """int64 [2, E], sources and targets as places in `n_id`: all edges as one graph of N nodes, which every layer
        may go over, as PyG's loaders have it. Of what comes out the first `batch_size` rows are those of the seeds."""
        if self._edges is None:
            self._edges = self.blocks[0].edge_index
        return self._edges

    def to(self, device: torch.device | str) -> NeighbourBatch:
        """The same on another device."""
        moved = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(moved, name, value.to(device))
        moved.blocks = [
            block.to(device) if isinstance(block, Graph) else _typed(moved.edge_index, moved.edge_type, block)
            for block in self.blocks
        ]
        return moved


def _typed(edges: Tensor, types: Tensor | None, like: Any, relations: int | None = None) -> TypedGraph:
    """A graph of the size of `like`, whose edges are the first of these."""
    if types is None:
        raise _C.UserError("edge_type is None: a batch of typed edges needs their types")
    count = like.entries
    relations = like.relations if relations is None else relations
    return TypedGraph(edges[:, :count], types[:count], (like.columns, like.rows), relations)


# What PyG's NeighborLoader takes, and the DataLoader that it is.
_OF_PYG: Keywords = {
    "data": ((), "give edge_index, as data.edge_index, and pick features by batch.n_id"),
    "num_workers": ((0,), "give workers, which are threads"),
    "prefetch_factor": ((None,), "give prefetch"),
    "persistent_workers": ((False,), "leave it out: workers are threads, which start at once"),
    "pin_memory": ((False,), "leave it out: batch.to(device) moves a batch"),
    "filter_per_worker": ((None, False), "give transform, which workers call: it picks features"),
    "subgraph_type": (("directional",), "edges lead to the nodes that they were sampled for"),
    "directed": ((True,), "edges lead to the nodes that they were sampled for"),
    "disjoint": ((False,), "a node is sampled for once in a batch"),
    "input_time": ((None,), "edges have no times"),
    "time_attr": ((None,), "edges have no times"),
    "temporal_strategy": (("uniform",), "edges have no times"),
    "weight_attr": ((None,), "each edge of a node is as likely"),
    "is_sorted": ((False, True), "leave it out: edges may come in any order"),
    "neighbor_sampler": ((None,), "leave it out: the loader samples"),
    "transform_sampler_output": ((None,), "give transform, which is called with each batch"),
    "collate_fn": ((None,), "give transform, which is called with each batch"),
    "generator": ((None,), "give seed"),
    "worker_init_fn": ((None,), "leave it out: what is drawn depends on seed, the epoch, the batch and the node"),
}


class NeighbourLoader:
    """Batches of a graph's nodes, each with edges that lead to it, sampled on the CPU: for each seed some of the edges
    that lead there, for the nodes where these come from some of theirs, and so on. Each node is sampled for once in a
    batch. Iterating over it makes an epoch; the next epoch has another order and other edges.

    Args:
        graph: a `pumice.Graph` on the CPU, or edge_index [2, E].
        num_neighbors: for each layer, from the seeds on, how many edges of a node are taken; -1: all.
        input_nodes: which nodes are seeds: numbers, each once, or a mask, bool [nodes]; default: all.
        batch_size: seeds a batch.
        shuffle: whether each epoch has an order of its own.
        drop_last: whether seeds are left out that fill no batch.
        replace: whether an edge may be drawn several times.
        seed: of orders and edges. A batch is the same for any number of workers and threads.
        edge_type: int64 [E], the relation of each edge; blocks are `TypedGraph`s then.
        num_nodes: where edge_index is given; default: the largest number in it, and one.
        num_relations: default: the largest number in `edge_type`, and one.
        workers: threads that make batches ahead; 0: a batch is made when it is asked for.
        prefetch: batches that each worker is ahead.
        transform: what is called with each batch, by a worker, and returns it: picks features and labels, say.
        rank: which of the processes this is; default: what torch.distributed says where it has begun, else 0.
        world_size: how many processes there are, which share the seeds. All have equally many batches: where seeds do
            not divide, some are had twice (see `NeighbourBatch.counted`), or with `drop_last` left out.
    Raises:
        UserError: for edges and seeds that are none of the nodes, and numbers out of range. What a worker raises is
            raised where its batch would have come.
    Example:
        >>> edge_index = data.grid_edges([30, 30])
        >>> loader = data.NeighbourLoader(edge_index, [4, 2], batch_size=100, shuffle=True)
        >>> len(loader), [batch.batch_size for batch in loader][-1]
        (9, 100)
    """

    @understands(_OF_PYG)
    def __init__(
        self,
        graph: Graph | Tensor,
        num_neighbors: Sequence[int],
        input_nodes: Tensor | Sequence[int] | None = None,
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        replace: bool = False,
        seed: int = 0,
        edge_type: Tensor | None = None,
        num_nodes: int | None = None,
        num_relations: int | None = None,
        workers: int = 0,
        prefetch: int = 2,
        transform: Callable[[NeighbourBatch], NeighbourBatch] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        """The arguments are those of the class."""
        self.graph = _graph_of(graph, num_nodes)
        if isinstance(num_neighbors, str) or not hasattr(num_neighbors, "__iter__"):
            raise _C.UserError(f"num_neighbors is {kind_of(num_neighbors)}: give a number for each layer, as [15, 10]")
        self.num_neighbors = [whole_number("num_neighbors", count, -1, 2**31 - 1) for count in num_neighbors]
        if not self.num_neighbors:
            raise _C.UserError("num_neighbors is empty: give a number for each layer, as [15, 10]")
        for name, value in (("shuffle", shuffle), ("drop_last", drop_last), ("replace", replace)):
            true_or_false(name, value)
        if transform is not None and not callable(transform):
            raise _C.UserError(f"transform is {kind_of(transform)}: give a function that takes and returns a batch")
        self.replace, self.transform = bool(replace), transform
        self.seed = whole_number("seed", seed, 0, 2**64 - 1)
        self.workers = whole_number("workers", workers, 0, 1024)
        self.prefetch = whole_number("prefetch", prefetch, 1, 1024)
        self.edge_type, self.relations = _types_of(self.graph, edge_type, num_relations)
        self._shares = Shares(
            check_seeds(self.graph.rows, input_nodes),
            whole_number("batch_size", batch_size, 1, 2**31 - 1),
            *place_of(rank, world_size),
            shuffle=bool(shuffle),
            drop_last=bool(drop_last),
            seed=self.seed,
        )
        self._epoch = 0

    def __len__(self) -> int:
        """Batches of this process in an epoch."""
        return self._shares.batches

    def set_epoch(self, epoch: int) -> None:
        """The epoch that is iterated over next; the one after the last otherwise. Processes have to agree."""
        self._epoch = whole_number("epoch", epoch, 0, 2**31 - 1)

    def __iter__(self) -> Iterator[NeighbourBatch]:
        epoch = self._epoch
        self._epoch += 1
        seeds, counted = self._shares.of_epoch(epoch)
        size = self._shares.batch_size

        def make(index: int) -> NeighbourBatch:
            begin = index * size
            part = seeds[begin : begin + size].contiguous()
            # No two batches of all epochs and processes have the same number.
            number = epoch << 32 | (index * self._shares.world_size + self._shares.rank) & 0xFFFFFFFF
            return self._batch(part, number, min(max(counted - begin, 0), len(part)))

        return made_ahead(make, len(self), self.workers, self.prefetch)

    def sample(self, seeds: Tensor, number: int = 0) -> NeighbourBatch:
        """The batch of these seeds, whatever the order and the processes; other numbers give other edges."""
        seeds = check_seeds(self.graph.rows, seeds)
        return self._batch(seeds, whole_number("number", number, 0, 2**64 - 1), len(seeds))

    def _batch(self, seeds: Tensor, number: int, counted: int) -> NeighbourBatch:
        nodes, edges, types, made = _C.sample_neighbours(
            self.graph.graph, seeds, self.num_neighbors, self.replace, self.seed, number, self.edge_type
        )
        blocks: list[Any] = [Graph._of(block) for block in made]
        batch = NeighbourBatch(nodes, edges, len(seeds), blocks, counted, types)
        if types is not None:
            edge_index = batch.edge_index
            batch.blocks = [_typed(edge_index, types, block, self.relations) for block in blocks]
        if self.transform is None:
            return batch
        batch = self.transform(batch)
        if not isinstance(batch, NeighbourBatch):
            raise _C.UserError(f"transform returned {kind_of(batch)}: return the batch")
        return batch


def _graph_of(graph: Any, num_nodes: int | None) -> Graph:
    """One whose sources and targets are the same nodes, on the CPU."""
    if isinstance(graph, Tensor):
        graph = Graph(graph.cpu(), num_nodes)
    elif num_nodes is not None:
        raise _C.UserError(f"num_nodes = {num_nodes}: give it with edge_index; a graph has its own")
    if not isinstance(graph, Graph):
        of_data = ", as data.edge_index" if isinstance(getattr(graph, "edge_index", None), Tensor) else ""
        raise _C.UserError(f"graph is {kind_of(graph)}: give a pumice.Graph, or edge_index, int64 [2, E]{of_data}")
    if graph.rows != graph.columns:
        raise _C.UserError(
            f"graph has {graph.columns} sources and {graph.rows} targets: give one whose sources and targets are the "
            "same nodes"
        )
    if graph.device.type != "cpu":
        raise _C.UserError(
            f"graph is on {graph.device}: neighbours are sampled on the CPU: give graph.to('cpu'), and move batches with "
            "batch.to"
        )
    return graph


def _types_of(graph: Graph, edge_type: Any, num_relations: Any) -> tuple[Tensor | None, int]:
    """(int64 [E] on the CPU, how many relations there are), or (None, 0)."""
    if edge_type is None:
        return None, 0
    wanted = f"give the relation of each edge, int64 [{graph.entries}]"
    if not isinstance(edge_type, Tensor):
        raise _C.UserError(f"edge_type is {kind_of(edge_type)}: {wanted}")
    if edge_type.dtype not in (torch.int32, torch.int64) or edge_type.shape != (graph.entries,):
        raise _C.UserError(f"edge_type is {edge_type.dtype}, {tuple(edge_type.shape)}: {wanted}")
    types = edge_type.detach().cpu().long().contiguous()
    least, most = (int(end) for end in torch.aminmax(types)) if graph.entries > 0 else (0, -1)
    relations = most + 1 if num_relations is None else whole_number("num_relations", num_relations, 0, 65_535)
    if least < 0 or most >= relations:
        at = int(((types < 0) | (types >= relations)).nonzero()[0])
        raise _C.UserError(f"edge_type[{at}] = {int(types[at])} where there are {relations}: give numbers from 0 on")
    return types, relations
