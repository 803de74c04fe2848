"""Finds models that mix rows: what sums, sorts or normalises over all rows of a tensor reads those that a bucket has
room for and a scan does not fill. A run by the plan, with NaN there, is compared with what the model gave eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import _C
from ..ops import modes
from .graph_call import OfGraph
from .outputs import INPUT, WHOLE, Leaf, Output, SitesOfRun, places_of_whole, take_apart, whole_at
from .tails import with_tails, without_numbers

# In proportion to the largest value: plans of other sizes sum in another order, and a network of many layers adds
# up what that changes. Rows that are mixed show as NaN, or by the share of rows that are not in use.
_BOUNDS = {torch.float64: 1e-6, torch.float32: 1e-2, torch.float16: 1e-1, torch.bfloat16: 1e-1}
_BOUND_IN_FULL = 1e-3  # of float32 that nothing of fewer bits comes into
_MOST_APART = 0.1  # gradients of half precision, of which those of many rows are sums
_MOST_OTHER = 0.1  # of the values of whole numbers, such as classes, which rounding can move


def is_in_full(model: torch.nn.Module, features: Tensor) -> bool:
    """Whether a model computes with all bits of float32, or more: without autocast, TF32, and values in half precision."""
    values = (features, *model.parameters(), *model.buffers())
    halves = any(one.is_floating_point() and one.dtype.itemsize < 4 for one in values)
    return not halves and modes.autocast_dtype(features) is None and not modes.of(features)[1]


def disagreement(expected: Output, made: Output, rows: int, in_full: bool = False) -> str | None:
    """How what a plan `made` of `rows` voxels differs from what was `expected`, as a part of a sentence; None where
    it does not. `in_full`: as `is_in_full` says. Waits."""
    if len(expected.leaves) != len(made.leaves):
        return f"it returned {len(expected.leaves)} values for {rows} rows and {len(made.leaves)} where there was room for more"
    made = whole_at(made, places_of_whole(expected))  # what has as many rows as there is room for by chance
    for wanted, given in zip(expected.leaves, made.leaves):
        different = _difference(wanted.values, given, rows, in_full)
        if different is not None:
            return (
                f"with room for more rows than are in use, {different}: something computes with all rows at once, as a mean "
                "over features or a softmax over their first axis does (pumice.nn has count-aware ones: GlobalPool, "
                "InstanceNorm), or with their number, or draws random numbers"
            )
    return None


def _difference(wanted: Any, given: Leaf, rows: int, in_full: bool) -> str | None:
    values = given.values
    if not isinstance(wanted, Tensor) or not isinstance(values, Tensor):
        return None if type(wanted) is type(values) and wanted == values else f"it returns {values!r} in place of {wanted!r}"
    in_order = given.rows is WHOLE or given.rows is INPUT or isinstance(given.rows, OfGraph)
    values = _in_use(given, rows)
    if values.shape != wanted.shape or values.dtype != wanted.dtype:
        return (
            f"it returns {tuple(values.shape)} {values.dtype} in place of {tuple(wanted.shape)} {wanted.dtype}"
        )
    if values.numel() == 0:
        return None
    if not values.is_floating_point():
        if in_order and float((values != wanted).float().mean()) > _MOST_OTHER:
            return "it returns other whole numbers"
        return None
    if not in_order:  # rows of sites that a plan makes may come in another order
        values, wanted = values.sort(0).values, wanted.sort(0).values
    if bool((values.isnan() & ~wanted.isnan()).any()):
        return "rows in use are no numbers"
    both = values.isfinite() & wanted.isfinite()
    left, right = values[both].double(), wanted[both].double()
    if left.numel() == 0:
        return None
    apart = float((left - right).abs().max() / right.abs().max().clamp(min=1e-4))
    bound = _BOUND_IN_FULL if in_full and values.dtype == torch.float32 else _BOUNDS.get(values.dtype, 1e-1)
    if apart > bound:
        return f"values differ by {apart:.1e} of the largest"
    return None


def _in_use(leaf: Leaf, rows: int) -> Tensor:
    if leaf.rows is WHOLE:
        return leaf.values
    return leaf.values[: rows if leaf.rows is INPUT else max(0, int(leaf.rows.count.item()))]


def disagreement_of_gradients(expected: list[Tensor | None], made: list[Tensor | None]) -> tuple[int, str | None]:
    """Which gradient differs from what was `expected`, and how, as the end of a sentence; (0, None) where none does.
    In proportion to the largest of all, since some follow from rounding alone, as that of a bias before a norm. Waits."""
    largest = max((float(one.abs().max()) for one in expected if one is not None and one.numel() > 0), default=0.0)
    for at, (wanted, given) in enumerate(zip(expected, made)):
        if (wanted is None) != (given is None):
            return at, "is there only where all rows are in use, or only where they are not"
        if wanted is None or given is None or wanted.numel() == 0:
            continue
        if not bool(given.isfinite().all()) and bool(wanted.isfinite().all()):
            return at, (
                "is no number where there is room for more rows than are in use: it goes over all of them, as that of a "
                "number which features are multiplied by does (layers of Pumice, and torch.nn's linear layers, norms and "
                "PReLU, are told how many are in use)"
            )
        apart = float((wanted.double() - given.double()).abs().nan_to_num(0.0).max())
        if largest > 0 and apart > _MOST_APART * largest:
            return at, f"differs by {apart / largest:.1e} of the largest where there is room for more rows than are in use"
    return 0, None


def spoiling(model: torch.nn.Module, rows: int) -> Callable[[Tensor, Any], Tensor]:
    """As `without_numbers`, but for parameters and buffers of `model`, which may have as many rows as there is room for."""
    own = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers()) if tensor.numel() > 0}
    change = without_numbers(rows)
    return lambda features, count: features if features.data_ptr() in own else change(features, count)


def has_strange_rows(leaves: list[Leaf], rows: int) -> bool:
    """Whether a row in use is no number. Waits."""
    return any(
        isinstance(leaf.values, Tensor)
        and leaf.values.is_floating_point()
        and leaf.rows is not WHOLE
        and bool(_in_use(leaf, rows).isnan().any())
        for leaf in leaves
    )


def first_with_strange_rows(
    model: torch.nn.Module, begin: Callable[[], tuple[SitesOfRun, Callable[[], Any]]], expected: Output, rows: int
) -> tuple[torch.nn.Module | None, str | None]:
    """The first module of `model` whose rows in use are no numbers, in a run by the plan in which all others are NaN
    whatever module made them, and how the result differs from what was `expected`; None where it does not. Waits."""
    members = {id(module) for module in model.modules()}
    found: list[torch.nn.Module] = []
    sites, run = begin()
    spoil = spoiling(model, rows)

    def look(module: torch.nn.Module, _: Any, output: Any) -> Any:
        if id(module) not in members:
            return None
        try:
            leaves = take_apart(output, sites).leaves
        except _C.UserError:  # something of the model's own, which is no output
            return None
        if not found and has_strange_rows(leaves, rows):
            found.append(module)
        # Nothing is computed from what the model itself returns.
        return None if module is model else with_tails(output, sites, spoil)

    handle = torch.nn.modules.module.register_module_forward_hook(look)
    try:
        made = take_apart(run(), sites)
    finally:
        handle.remove()
    different = disagreement(expected, made, rows)
    return (found[0] if found and different is not None else None), different
