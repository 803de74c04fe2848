"""Registers the sum over the processes of a group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..._registry import define, differentiate

_ops = torch.ops.pumice


def _sum_over_processes(values: Tensor, group: str) -> Tensor:
    from torch.distributed import distributed_c10d  # PyTorch may be built without it

    total = values.clone()
    # Graphs know a group by its name, as torch's own collectives do.
    of = distributed_c10d._resolve_process_group(group) if group else None
    torch.distributed.all_reduce(total, group=of)
    return total


def _keep_group(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.group = inputs[1]


def _of_sum(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    # The sum is the same everywhere, so the gradient is the sum of all gradients as well.
    return _ops.sum_over_processes(grad, ctx.group), None


define(
    "sum_over_processes(Tensor values, str group) -> Tensor",
    _sum_over_processes,
    lambda values, group: torch.empty_like(values),
)
differentiate("sum_over_processes", _keep_group, _of_sum)
