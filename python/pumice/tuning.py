"""Measures what could run in place of each layer of a network, and keeps the winners."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from . import _C
from ._checks import check_path, kind_of, whole_number
from .passes import (
    as_it_was, called, check_alone, check_input, check_loss, check_model, device_of, is_graph_input, is_input, learn,
    step,
)  # fmt: skip


@dataclasses.dataclass
class TunedGroup:
    """Layers that were tuned together: on a GPU those on one kernel map, which share what is cut of it."""

    name: str
    share: float  # of the time of all groups, untuned
    untuned_ms: float | None  # None where it was not measured
    tuned_ms: float | None  # None where it stays as it was
    verdict: str
    reason: str


@dataclasses.dataclass
class TunedLayer:
    """Calls of one problem, of a convolution or a product of a sparse matrix, which share a plan."""

    problem: str
    rows: int
    calls: int
    untuned: str  # names of plans
    plan: str
    reason: str
    candidates: list[dict[str, Any]]  # name, predicted, ratio, verdict, reason


class Tuning:
    """What `tune` measured; prints as a table.

    Args:
        report: the report of the extension, as JSON.
        table: the same in words.
        plans: what was measured, as a file has it.
    Returns:
        `summary`, `groups`, `layers`, `untuned_ms` and `tuned_ms` of the network where it was compared, `used_s`, and
        how many plans were `stored`.
    Raises:
        Nothing.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> tuning = pumice.tune(nn.SubMConv3d(4, 8, 3).eval(), [x], budget_s=1, store=False)
        >>> tuning.stored, len(tuning.layers)
        (0, 1)
    """

    def __init__(self, report: str, table: str, plans: Any) -> None:
        """The arguments are those of the class."""
        found = json.loads(report)
        self._table = table
        self._plans = plans
        self.summary: str = found["summary"]
        self.used_s: float = found["used_s"]
        self.stored: int = found["stored"]
        self.not_stored: str = found["not_stored"]
        self.untuned_ms = _milliseconds(found["untuned_s"])
        self.tuned_ms = _milliseconds(found["tuned_s"])
        self.groups = [
            TunedGroup(
                group["name"], group["share"], _milliseconds(group["untuned_s"]),
                _milliseconds(group["tuned_s"]), group["verdict"], group["reason"],
            )
            for group in found["groups"]
        ]  # fmt: skip
        self.layers = [
            TunedLayer(
                layer["problem"], layer["rows"], layer["calls"], layer["untuned_name"], layer["name"],
                layer["reason"], layer["candidates"],
            )
            for layer in found["layers"]
        ]  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what was measured as a table, for `load_plans`, `pumice run --plans` and bundles of kernels.

        Args:
            path: a .json file.
        Returns:
            Nothing.
        Raises:
            UserError: where nothing was measured to the end, and where the file cannot be written.
        Waits:
            Never.
        Example:
            >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
            >>> tuning = pumice.tune(nn.SubMConv3d(4, 8, 3).eval(), [x], budget_s=10, store=False)
            >>> tuning.save("plans.json")
        """
        check_path("path", path)
        if len(self._plans) == 0:
            raise _C.UserError(
                f"{os.fspath(path)}: nothing was measured to the end, so there are no plans to save; give tune a larger "
                "budget_s"
            )
        self._plans.save(os.fspath(path))

    def __str__(self) -> str:
        return self._table

    def __repr__(self) -> str:
        return f"Tuning({self.summary!r})"


def tune(
    model: torch.nn.Module,
    loader: Iterable[Any],
    *,
    loss: Callable[[Any, Any], torch.Tensor] | None = None,
    budget_s: float | None = None,
    scans: int = 4,
    store: bool = True,
    progress: bool = True,
) -> Tuning:
    """Measures the plans that could run in place of each convolution of `model` and of each product of a sparse
    matrix that its graph layers make, and stores those that are faster for certain; every later run of such layers on
    such a machine uses them, in every process. Nothing is tuned unless this is called, and `PUMICE_PLANS=off` leaves
    stored plans out.

    Without `loss` the forward pass of a model in evaluation is tuned; with it the training step: forward pass,
    `loss(output, item)` and its gradients. No optimizer steps, and statistics, gradients and random numbers are as
    before in the end. Call it as the network runs later: under the same autocast, and with nothing else on the
    GPU. With several processes tune in one of them, before the model is wrapped.

    Args:
        model: a network of sparse tensors, or of graph layers.
        loader: sparse tensors, those of pumice.compat too, `models.PointTensor`, or tuples that begin with one; of
            graph layers tuples (features, graph or edge_index, …), which are all that `model` is called with, or
            ((features, graph), …) where an item has more than that; in place of features whatever its layers take.
            The first `scans` are used.
        loss: a scalar from the output and the item of the loader.
        budget_s: seconds that measuring may take; what was found until then counts. None: 60 on a GPU, 300 on a
            CPU.
        scans: items that the time is measured over.
        store: whether plans are kept; False: they are only reported.
        progress: whether a line on the terminal grows.
    Returns:
        What was measured, which prints as a table.
    Raises:
        UserError: for a model in training without a loss, for one whose passes wait for other processes, for items
            that it cannot run, where items run different layers, and where `PUMICE_PLANS` names a file that is no
            store.
    Waits:
        For a GPU, all the time.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> net = nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.ReLU()).eval()
        >>> tuning = pumice.tune(net, [x], budget_s=1, store=False)
        >>> [(layer.problem, layer.calls) for layer in tuning.layers]
        [('forward f32 4>8 offsets 27', 1)]
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> tuning = pumice.tune(nn.graph.SAGEConv(4, 8).eval(), [(torch.ones(3, 4), edges)], budget_s=1, store=False)
        >>> [layer.problem for layer in tuning.layers]
        ['spmm forward mean f32 channels 4']
    """
    _check(model, loader, loss, scans, budget_s)
    items = list(itertools.islice(loader, scans))
    if not items:
        raise _C.UserError("loader has no items: give at least one scan")
    inputs = [_input_of(item) for item in items]

    def run(scan: int) -> None:
        if loss is None:
            with torch.no_grad():
                called(model, inputs[scan])
            return
        step(model, inputs[scan], items[scan], loss)

    with as_it_was(model):
        with torch.set_grad_enabled(loss is not None):
            learn(model, inputs[0])
        return tune_passes(run, len(items), device_of(inputs[0]), budget_s, store, progress)


def tune_passes(
    run: Callable[[int], None],
    scans: int,
    device: torch.device,
    budget_s: float | None,
    store: bool,
    progress: bool,
) -> Tuning:
    """`tune` of passes `run(scan)`, which make coordinates and maps anew and leave nothing behind."""
    line = _line if progress and sys.stderr.isatty() else None
    try:
        return Tuning(*_C.tune_network(run, scans, str(device), budget_s, store, line))
    finally:
        if line is not None:
            sys.stderr.write("\r\x1b[K")


def load_plans(path: str | os.PathLike[str]) -> int:
    """Takes the plans of a table into this machine's store, where every later run finds them. Of two plans for one
    layer that stays which was measured later.

    Args:
        path: what `Tuning.save`, `pumice tune --out` or `pumice plans export` has written.
    Returns:
        How many of them were new.
    Raises:
        UserError: for a file that is no such table or has a plan of this version that is none, and where the store
            cannot be written.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> pumice.tune(nn.SubMConv3d(4, 8, 3).eval(), [x], budget_s=10, store=False).save("plans.json")
        >>> pumice.load_plans("plans.json")  # doctest: +SKIP
        2
    """
    check_path("path", path)
    return _C.load_plans(os.fspath(path))


def _check(model: torch.nn.Module, loader: Any, loss: Any, scans: int, budget_s: float | None) -> None:
    check_model(model)
    if is_input(loader) or not hasattr(loader, "__iter__"):
        raise _C.UserError(f"loader is {kind_of(loader)}: give a list of inputs, [x], or a DataLoader")
    check_loss(loss)
    check_alone(model)
    if loss is None and model.training:
        raise _C.UserError(
            "model is in training, and there is no loss: call model.eval() to tune inference, or give "
            "loss=lambda output, item: … to tune the training step"
        )
    whole_number("scans", scans, 1)
    is_number = isinstance(budget_s, (int, float)) and not isinstance(budget_s, bool)
    if budget_s is not None and not (is_number and budget_s >= 0):
        raise _C.UserError(f"budget_s = {budget_s!r}: give seconds, 0 or more")


def _input_of(item: Any) -> Any:
    if not is_input(item) and isinstance(item, (tuple, list)) and item and not is_graph_input(item):
        item = item[0]
    check_input("tune", item)
    return item


def _milliseconds(estimate: dict[str, float] | None) -> float | None:
    return None if estimate is None else 1e3 * estimate["median"]


def _line(fraction: float, text: str) -> None:
    sys.stderr.write(f"\r\x1b[Ktuning {100 * fraction:3.0f} %  {text[:60]}")
    sys.stderr.flush()
