"""Reads the plans that somebody gives for a convolution and its gradients."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Union

from .. import _C
from .._checks import kind_of, shown

# What an argument `plan` may be: one plan, or those of several directions; a text stands for a plan.
Plan = Union[_C.Plan, str, Mapping[str, Union[_C.Plan, str, None]], _C.Plans]
DATAFLOWS = ("implicit_gemm", "fetch_on_demand", "gather_gemm_scatter")
DIRECTIONS = ("forward", "input_gradient", "weight_gradient")


def as_plans(plan: Plan | None, direction: str = "forward") -> _C.Plans | None:
    """`plan` as the extension takes it; one alone is that of `direction`. None where none is given. Raises UserError
    where it is no plan."""
    if plan is None or type(plan) is _C.Plans:
        return plan
    if isinstance(plan, str):
        return of_text(plan, direction)
    if isinstance(plan, _C.Plan):
        return _C.Plans(*(plan if one == direction else None for one in DIRECTIONS))
    if not isinstance(plan, Mapping):
        raise _C.UserError(
            f"plan is {kind_of(plan)}: give a pumice.Plan, its text, or a mapping of "
            f"{', '.join(DIRECTIONS)} to plans"
        )
    for name in plan:
        if name not in DIRECTIONS:
            raise _C.UserError(f"plan names the direction {name!r}: there are {', '.join(DIRECTIONS)}")
    given = [_one(name, plan.get(name)) for name in DIRECTIONS]
    return None if given == [None, None, None] else _C.Plans(*given)


def _one(direction: str, plan: Any) -> _C.Plan | None:
    if isinstance(plan, str):
        return _C.Plan(plan)
    if plan is None or isinstance(plan, _C.Plan):
        return plan
    raise _C.UserError(
        f"plan of the {direction} is {kind_of(plan)}: give a pumice.Plan, or its text"
    )


@functools.lru_cache(256)
def of_text(text: str, direction: str = "forward") -> _C.Plans:
    """The plans of a text, parsed once: operators in a graph carry texts."""
    return _C.Plans.of(text, direction)


def text_of(plan: Plan | None, direction: str = "forward") -> str | None:
    """What an operator in a graph carries. A text stays as it is, since a graph that is being compiled cannot parse."""
    if plan is None or isinstance(plan, str):
        return plan
    plans = as_plans(plan, direction)
    return None if plans is None else plans.text


def check_dataflow(dataflow: Any) -> None:
    """Raises UserError unless `dataflow` is the name of one that a convolution can run in, or None."""
    if dataflow is not None and not (isinstance(dataflow, str) and dataflow in DATAFLOWS):
        raise _C.UserError(f"dataflow {shown(dataflow)}: choose {', '.join(DATAFLOWS[:-1])} or {DATAFLOWS[-1]}, or None")


def refuse_both(plan: Any, dataflow: Any) -> None:
    """Raises UserError where a plan is given, and a dataflow beside it."""
    if plan is not None and dataflow is not None:
        raise _C.UserError(
            f"a plan and dataflow = {dataflow!r} are given: a plan names its own, so leave the dataflow out"
        )
