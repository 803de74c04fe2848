"""Shares the seeds of an epoch among the processes of a training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from .. import _C
from .._checks import kind_of, whole_number


def place_of(rank: Any, world_size: Any) -> tuple[int, int]:
    """(rank, world_size), which torch.distributed says where neither is given and it has begun; else (0, 1)."""
    if (rank is None) != (world_size is None):
        raise _C.UserError(f"rank = {rank} and world_size = {world_size}: give both, or neither")
    if rank is None:
        begun = dist.is_available() and dist.is_initialized()
        return (dist.get_rank(), dist.get_world_size()) if begun else (0, 1)
    world_size = whole_number("world_size", world_size, 1)
    return whole_number("rank", rank, 0, world_size - 1), world_size


def check_seeds(nodes: int, given: Any) -> Tensor:
    """Numbers of nodes, int64 on the CPU, of what was given as `input_nodes`: numbers, a mask, or None for all."""
    if given is None:
        return torch.arange(nodes)
    if isinstance(given, (list, tuple, range)):
        given = torch.tensor([whole_number("input_nodes", node, 0, 2**31 - 1) for node in given], dtype=torch.int64)
    if not isinstance(given, Tensor):
        raise _C.UserError(f"input_nodes is {kind_of(given)}: give numbers of nodes, int64 [S], or a mask, bool [{nodes}]")
    seeds = given.detach().cpu()
    if seeds.dtype == torch.bool and seeds.shape == (nodes,):
        return seeds.nonzero().squeeze(1)
    if seeds.dtype not in (torch.int32, torch.int64) or seeds.dim() != 1:
        raise _C.UserError(
            f"input_nodes is {seeds.dtype}, {tuple(seeds.shape)}: give numbers of nodes, int64 [S], or a mask, bool "
            f"[{nodes}]"
        )
    seeds = seeds.long()
    bad = ((seeds < 0) | (seeds >= nodes)).nonzero()
    if len(bad) > 0:
        at = int(bad[0])
        raise _C.UserError(f"input_nodes[{at}] = {int(seeds[at])} where there are {nodes}: give numbers from 0 on")
    ascending, order = seeds.sort(stable=True)
    repeated = (ascending[1:] == ascending[:-1]).nonzero()
    if len(repeated) > 0:
        at = int(repeated[0]) + 1
        raise _C.UserError(
            f"input_nodes[{int(order[at])}] = {int(ascending[at])} stands there before: give each node once, as "
            "torch.unique makes them"
        )
    return seeds


class Shares:
    """What each process has of an epoch: equally many seeds, so that all have equally many batches.

    Seeds go to the processes by turns. Where their number does not divide by that of the processes, some of the first
    ones are had by another process once more, at the end; with `drop_last` some of the last ones are left out instead,
    and batches that are not full."""

    def __init__(
        self, seeds: Tensor, batch_size: int, rank: int, world_size: int, *, shuffle: bool, drop_last: bool, seed: int
    ) -> None:
        self.seeds, self.batch_size = seeds, batch_size
        self.rank, self.world_size = rank, world_size
        self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed
        if drop_last:
            self.batches = len(seeds) // world_size // batch_size
            self.share = self.batches * batch_size
        else:
            self.share = -(-len(seeds) // world_size)
            self.batches = -(-self.share // batch_size)

    def of_epoch(self, epoch: int) -> tuple[Tensor, int]:
        """The seeds of this process, and how many of them no other process has before: the first ones. The order of
        an epoch is that of all processes."""
        place = torch.arange(self.share) * self.world_size + self.rank
        counted = int((place < len(self.seeds)).sum())
        if len(self.seeds) > 0:
            place %= len(self.seeds)
        if self.shuffle:
            order = np.random.default_rng((self.seed, epoch)).permutation(len(self.seeds))
            place = torch.from_numpy(order)[place]
        return self.seeds[place], counted
