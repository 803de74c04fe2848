"""Checks the arguments that layers of graph networks share, and draws their weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _C
from ..._checks import whole_number


def channel_pair(in_channels: Any) -> tuple[int, int]:
    """(of sources, of targets), of one number or two. Raises UserError for others than numbers from 1 on."""
    pair = in_channels if isinstance(in_channels, (tuple, list)) else (in_channels, in_channels)
    if len(pair) != 2:
        raise _C.UserError(f"in_channels has {len(pair)} numbers: give one, or (of sources, of targets)")
    return whole_number("in_channels", pair[0], 1), whole_number("in_channels", pair[1], 1)


def check_aggr(aggr: Any, known: dict[str, str]) -> None:
    """Raises UserError unless `aggr` is one of those that are known."""
    if not isinstance(aggr, str) or aggr not in known:
        raise _C.UserError(f"aggr = {aggr!r}: choose {', '.join(known)}")


def glorot_(weight: Tensor) -> None:
    """Uniform by Glorot, of the last two axes, as PyG draws weights."""
    bound = (6 / (weight.shape[-2] + weight.shape[-1])) ** 0.5
    torch.nn.init.uniform_(weight, -bound, bound)
