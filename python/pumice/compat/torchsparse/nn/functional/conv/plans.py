"""Turns the settings of TorchSparse's kernels, where a configuration has some, into plans."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...... import _C, ops
from ......_checks import warn_once
from ......ops import modes
from ......ops.plans import DIRECTIONS, as_plans
from . import conv_config

_MOST_SPLITS = 4
_MOST_KEPT = 512
_NAMES = {
    conv_config.Dataflow.ImplicitGEMM: "implicit_gemm",
    conv_config.Dataflow.GatherScatter: "gather_gemm_scatter",
    conv_config.Dataflow.FetchOnDemand: "fetch_on_demand",
}
_UNKNOWN: Any = object()
_found: dict[Any, _C.Plans | None] = {}


class Wish(NamedTuple):
    """What a plan has to have; None: as the planner likes."""

    dataflow: str
    sorts: bool | None = None
    splits: int | None = None


def plans_for(config: Any, held: Any, weight: Tensor, map: Any) -> _C.Plans | None:
    """The plans of a layer for features that a sparse tensor holds, as its configuration, or the global one, wishes.
    None where they wish nothing, and in a graph, whose maps are not known."""
    said = conv_config.said(config)
    if not said or type(map) is not _C.Map:
        return None
    forward, backward = wishes(said)
    if forward is None or backward is None:
        return None
    dtype = modes.autocast_dtype(held) or held.dtype
    key = (
        forward, backward, held.device, dtype, tuple(weight.shape), modes.of(held),
        map.in_rows == map.out_rows, map.in_rows.bit_length(), map.out_rows.bit_length(),
    )  # fmt: skip
    if (known := _found.get(key, _UNKNOWN)) is not _UNKNOWN:
        return known
    like = torch.empty((0, weight.shape[-2]), dtype=dtype, device=held.device)
    matrices = weight.detach().reshape(-1, *weight.shape[-2:])
    granted = [
        _granted(wish, ops.candidates(like, matrices, map, direction))
        for wish, direction in ((forward, "forward"), (backward, "input_gradient"))
    ]
    made = as_plans(dict(zip(DIRECTIONS, granted)))
    if len(_found) >= _MOST_KEPT:
        _found.clear()
    _found[key] = made
    return made


def wishes(said: dict[str, Any]) -> tuple[Wish | None, Wish | None]:
    """What settings say of the forward pass and of the gradient of the features; None: nothing that can be had. Warns
    once of what cannot."""
    kinds = ("dataflow", "ifsort", "split_mask_num", "split_mask_num_bwd")
    if not any(name in said for name in kinds):
        return None, None
    conv_config.check("config", said)  # again: who holds a layer's configuration may have written into it
    dataflow = conv_config.checked_dataflow(said.get("dataflow", conv_config.Dataflow.ImplicitGEMM))
    _warn_of_what_is_missing(dataflow, said)
    if dataflow not in _NAMES:
        return None, None
    name = _NAMES[dataflow]
    if dataflow is not conv_config.Dataflow.ImplicitGEMM:
        return Wish(name), Wish(name)
    sorts = bool(said["ifsort"]) if "ifsort" in said else None
    if sorts is False:  # TorchSparse splits sorted maps only
        return Wish(name, False), Wish(name, False)
    return tuple(  # type: ignore[return-value]
        Wish(name, True, said.get(splits)) for splits in ("split_mask_num", "split_mask_num_bwd")
    )


def _warn_of_what_is_missing(dataflow: conv_config.Dataflow, said: dict[str, Any]) -> None:
    kinds = conv_config.Dataflow
    if dataflow is kinds.CodedCSR:
        warn_once(
            "torchsparse CodedCSR",
            "dataflow = CodedCSR has no counterpart here: Pumice chooses how such layers run",
        )
    if dataflow is kinds.FetchOnDemand and not said.get("FOD_fusion", True):
        warn_once(
            "torchsparse FOD_fusion",
            "FOD_fusion = False has no counterpart here: all offsets are fetched on demand in one kernel",
        )
    if dataflow is kinds.GatherScatter and (said.get("epsilon") or said.get("mm_thresh")):
        warn_once(
            "torchsparse epsilon",
            "epsilon and mm_thresh have no counterpart here: gathered rows are multiplied offset by offset",
        )
    most = max(said.get("split_mask_num", 1), said.get("split_mask_num_bwd", 1))
    if most > _MOST_SPLITS:
        warn_once(
            "torchsparse split_mask_num",
            f"split_mask_num = {most}: offsets are cut into at most {_MOST_SPLITS} parts here, which is taken",
        )


def _granted(wish: Wish, candidates: list[tuple[_C.Plan, float]]) -> _C.Plan | None:
    """The candidate that is predicted to be the fastest of those that have what is wished."""
    fitting = [
        plan
        for plan, _ in candidates
        if plan.dataflow == wish.dataflow and wish.sorts in (None, plan.sort_by_mask)
    ]
    if not fitting:
        warn_once(
            f"torchsparse {wish}",
            f"no kernel of some layers runs by {wish.dataflow} as the configuration asks: Pumice chooses how they run",
        )
        return None
    splits = None if wish.splits is None else min(wish.splits, _MOST_SPLITS)
    if splits is None or splits <= 1:
        whole = [plan for plan in fitting if plan.splits == 1]
        return (whole if splits == 1 and whole else fitting)[0]
    cut = [plan for plan in fitting if plan.splits > 1]
    if not cut:  # one offset
        return fitting[0]
    nearest = min(cut, key=lambda plan: abs(plan.splits - splits))
    if nearest.splits == splits:
        return nearest
    return _C.Plan(json.dumps({**json.loads(nearest.text), "splits": splits}))
