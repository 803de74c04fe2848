"""What can be switched off of Pumice, one thing at a time, and what each brings.

Networks in Python run layer by layer and compiled. Both lack the tuner unless a row says that it has it. What one switch
takes away is seen beside the row that differs in it alone (`BASES`); graphs of C++ without groups are rows of the program
(program.py).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
from adapters import Absent, Library
from torch import nn

import pumice
from pumice import ops

from .ours import Compiled, Pumice
from .records import COMPILED, OURS, Row

FLOWS = ("implicit_gemm", "fetch_on_demand", "gather_gemm_scatter")
GRAPH = "Pumice, C++ graph"
ONE_BY_ONE = f"{OURS}, without fusion"


class OneByOne(Pumice):
    """Every module by itself: hooks that do nothing keep layers from running as one."""

    name = ONE_BY_ONE

    def network(self, work, state):
        net = super().network(work, state)
        for module in net.modules():
            module.register_forward_hook(lambda *_: None)
        return net


class WithoutGraph(Compiled):
    """Sets, maps and cuts are planned together, and kernels launched one by one."""

    name = f"{COMPILED}, without graph"
    options = {"eager": True}


class OneDataflow:
    """One dataflow for all convolutions, which then run one by one: a chain chooses for itself. On a GPU implicit GEMM is what
    is chosen anyway, so that its row shows what running one by one costs. Together with a library."""

    def __init__(self, dataflow: str) -> None:
        super().__init__()
        self.dataflow = dataflow
        self.name = f"{self.name}, {dataflow} alone"

    def network(self, work, state):
        net = super().network(work, state)
        for module in net.modules():
            if isinstance(module, pumice.nn.Convolution):
                module.dataflow = self.dataflow
        return net


class WithDataflow(OneDataflow, Pumice):
    """Layer by layer."""


class CompiledWithDataflow(OneDataflow, Compiled):
    """As a graph."""


class Unsplit:
    """No layer's offsets are cut into parts: a layer whose plan does so on the first input takes the first plan that does
    not. Together with a library."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype  # that layers compute in
        self.name = f"{self.name}, without splits"

    def tune(self, net, inputs, training):
        directions = ("forward", "input_gradient", "weight_gradient") if training else ("forward",)
        voxels, features = inputs[0]
        changed = give_unsplit_plans(net, self.tensor(voxels, features), self.dtype, directions)
        if changed == 0:
            raise Absent("no layer's offsets are cut into parts for such numbers of rows and channels")


class UnsplitLayers(Unsplit, Pumice):
    """Layer by layer."""


class UnsplitCompiled(Unsplit, Compiled):
    """As a graph."""


def splits_of(plan: pumice.Plan) -> int:
    """Into how many parts a plan cuts the offsets."""
    return int(json.loads(plan.text).get("splits", 1))


def give_unsplit_plans(net: nn.Module, x: pumice.SparseTensor, dtype: torch.dtype, directions) -> int:
    """Gives layers that would cut their offsets into parts plans that do not, and returns how many. Absent where one has
    no such plan."""
    plans: dict[nn.Module, dict[str, pumice.Plan]] = {}

    def look(layer: nn.Module, given: tuple) -> None:
        site = given[0]
        map, _ = layer.find(site, given[1] if len(given) > 1 else None)
        weight = layer.weight.detach().to(dtype)
        rows = site.features.detach().to(dtype)
        for direction in directions:
            if splits_of(ops.plan_of(rows, weight, map, direction, layer.groups)) == 1:
                continue
            found = ops.candidates(rows, weight, map, direction, layer.groups)
            other = next((plan for plan, _ in found if splits_of(plan) == 1), None)
            if other is None:
                raise Absent(f"the {direction} of a layer of {layer.in_channels} > {layer.out_channels} channels has no plan without splits")
            plans.setdefault(layer, {})[direction] = other

    layers = [module for module in net.modules() if isinstance(module, pumice.nn.Convolution)]
    hooks = [layer.register_forward_pre_hook(look) for layer in layers]
    was_training = net.training
    try:
        with torch.no_grad():
            net.eval()(x)
    finally:
        net.train(was_training)
        for hook in hooks:
            hook.remove()
    for layer, of_layer in plans.items():
        layer.plan = of_layer
    return len(plans)


class Tuned(Pumice):
    """With plans that were measured on the scans of the benchmark, once for each task. They stay in use in all of a process,
    which therefore is one of its own (remote.py)."""

    name = f"{OURS}, tuned"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.measured: dict[bool, str] = {}  # by whether it is training; why there are no plans, or nothing

    def tune(self, net, inputs, training):
        if training not in self.measured:
            self.measured[training] = self._measure(net, inputs, training)
        if self.measured[training]:
            raise Absent(self.measured[training])

    def _measure(self, net, inputs, training) -> str:
        tensors = [self.tensor(voxels, features) for voxels, features in inputs]
        device = tensors[0].features.device
        half = device.type == "cuda"
        with torch.autocast(device.type, torch.float16, enabled=half), tempfile.TemporaryDirectory() as folder:
            loss = (lambda y, x: y.features.float().square().mean()) if training else None
            tuning = pumice.tune(net, tensors, loss=loss, budget_s=self.seconds, store=False)
            path = Path(folder) / "plans.json"
            try:
                tuning.save(path)
            except pumice.UserError as error:  # nothing was measured to the end
                return f"{self.seconds:g} s are not enough to tune, --tune-seconds gives more: {error}"
            pumice.load_plans(path)
        return ""


class TunedCompiled(Compiled):
    """As a graph, with plans that `tuned` has left in use, where it has."""

    name = f"{COMPILED}, tuned"

    def __init__(self, tuned: Tuned) -> None:
        super().__init__()
        self.tune = tuned.tune


def tuned_libraries(seconds: float) -> list[Library]:
    """In the order to make their cases. `seconds`: of the tuner, for each task."""
    tuned = Tuned(seconds)
    return [tuned, TunedCompiled(tuned)] if hasattr(pumice, "compile") else [tuned]


# What the published ablation switches off, and where its figure is, since it has no switch of its own.
NO_SWITCH = {
    "planner": "a graph needs sets and maps that are planned together; rows of “Pumice” have neither planner nor graph, and those "
    f"of “{WithoutGraph.name}” the planner alone",
    "groups": f"from Python each layer cuts its maps as its own plan says; rows of “{GRAPH}, without groups” are what this costs in C++",
}

# By the end of a row's library, the row without that end which differs in this alone.
BASES = (", without fusion", ", without graph", ", without splits", ", without groups", ", tuned")


def ablation(dtype: torch.dtype) -> list[Library]:
    """All but the tuner. `dtype`: what layers compute in."""
    found: list[Library] = [OneByOne(), *(WithDataflow(flow) for flow in FLOWS), UnsplitLayers(dtype)]
    if hasattr(pumice, "compile"):
        found += [WithoutGraph(), *(CompiledWithDataflow(flow) for flow in FLOWS), UnsplitCompiled(dtype)]
    return found


def base_of(library: str) -> str | None:
    """The library that a row of the ablation is compared with; None where it is none of the ablation."""
    for end in BASES:
        if library.endswith(end):
            return library.removesuffix(end)
    for flow in FLOWS:
        if library.endswith(f", {flow} alone"):
            base = library.removesuffix(f", {flow} alone")
            one_by_one = f"{base}, {FLOWS[0]} alone"  # what a GPU takes where nobody says otherwise
            known = {OURS: ONE_BY_ONE, COMPILED: COMPILED if flow == FLOWS[0] else one_by_one}
            return known.get(base, base)
    return None


def effects(rows: list[Row], task: str) -> dict[str, list[tuple[str, float]]]:
    """By workload: the time of each row of the ablation over that of the row which it differs from in one thing."""
    known = {row.key: row for row in rows}
    found: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        base = base_of(row.library)
        if base is None or row.task != task or row.norms != "folded":
            continue
        other = known.get((row.workload, row.task, base, row.way, row.norms))
        if other is not None:
            found.setdefault(row.workload, []).append((f"{row.library}, {row.way} / {base}", row.ms / other.ms))
    return found
