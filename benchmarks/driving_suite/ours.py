"""Pumice as contestants: its own networks, layer by layer and compiled, and what can be switched off of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from adapters import Absent, Library, Voxels
from torch import Tensor, nn

import pumice

from . import workloads
from .records import COMPILED


class Pumice(Library):
    """Layer by layer, as users call it; in inference with weights frozen."""

    name = "Pumice"
    layout = "pumice"

    def version(self):
        return pumice.__version__

    def network(self, work, state):
        net = workloads.network(work)
        net.load_state_dict(state)
        return net

    def tensor(self, voxels, features):
        return pumice.SparseTensor(
            voxels.cells, features, spatial_shape=voxels.spatial_shape, batch_size=voxels.batch_size
        )

    def convolution(self, inputs, outputs, kernel, stride, padding, key, inverse=False):
        if inverse or max(stride) > 1:
            raise NotImplementedError("its networks are its own; here are single submanifold layers")
        return pumice.nn.SubMConv3d(inputs, outputs, kernel, bias=False)

    def features(self, x):
        return x.features

    def sites(self, x):
        return x.indices

    def without_norms(self, net):
        """Norms that change nothing, and are folded into the convolutions as any others."""
        for module in net.modules():
            if isinstance(module, nn.BatchNorm1d):
                with torch.no_grad():
                    module.weight.fill_(1)
                    module.bias.zero_()
                    module.running_mean.zero_()
                    module.running_var.fill_(1 - module.eps)
        return net

    def for_inference(self, net):
        return pumice.nn.freeze(net)


class Compiled(Pumice):
    """As CUDA graphs, by `pumice.compile` and `pumice.compile_step`."""

    name = COMPILED
    keeps_maps = "a graph makes its maps in every launch"

    def __init__(self) -> None:
        if not hasattr(pumice, "compile"):
            raise Absent("Pumice, compiled, is not there: this Pumice has no pumice.compile")

    def for_inference(self, net):
        fast = pumice.compile(net)

        def call(voxels: Voxels, features: Tensor):
            # Where the grid is that of a range it is the same for all scans; else each scan would have one of its own.
            shape = voxels.spatial_shape if isinstance(net, pumice.models.CenterPointEncoder) else None
            return fast(voxels.cells, features, batch_size=voxels.batch_size, spatial_shape=shape)

        call.takes_voxels = True
        call.graph_bytes = lambda: fast.bytes  # of all buckets, one for each size of scan
        return call

    def step_of(self, net, loss: Callable, scale: float, optimizer, scaler):
        if not hasattr(pumice, "compile_step"):
            raise Absent("training steps are not compiled: this Pumice has no pumice.compile_step")

        def of_output(output, labels: Tensor) -> Tensor:
            return loss(output if isinstance(output, Tensor) else output.features, labels) * scale

        of_output.ignore_index = -1
        step = pumice.compile_step(net, of_output, optimizer, scaler=scaler)

        def call(voxels: Voxels, features: Tensor, labels: Tensor) -> Tensor:
            shape = voxels.spatial_shape if isinstance(net, pumice.models.CenterPointEncoder) else None
            return step(voxels.cells, features, labels, batch_size=voxels.batch_size, spatial_shape=shape)

        call.graph_bytes = lambda: step.bytes  # of all buckets
        return call


class OneByOne(Pumice):
    """Every module by itself: hooks that do nothing keep layers from running as one."""

    name = "Pumice, without fusion"

    def network(self, work, state):
        net = super().network(work, state)
        for module in net.modules():
            module.register_forward_hook(lambda *_: None)
        return net


class WithDataflow(Pumice):
    """One dataflow for all convolutions."""

    def __init__(self, dataflow: str) -> None:
        self.dataflow = dataflow
        self.name = f"Pumice, {dataflow} alone"

    def network(self, work, state):
        net = super().network(work, state)
        for module in net.modules():
            if isinstance(module, pumice.nn.Convolution):
                module.dataflow = self.dataflow
        return net


class Tuned(Pumice):
    """With plans that were measured on the scans of the benchmark. They stay in use in this process: measure it last."""

    name = "Pumice, tuned"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def tune(self, net, inputs, training):
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
                raise Absent(f"{self.seconds:g} s are not enough to tune, --tune-seconds gives more: {error}") from error
            pumice.load_plans(path)


# What the published ablation switches off, and why there is no switch for it here.
NO_SWITCH = {
    "groups": "layers of one map share its cuts by the plans of graphs in C++, which nothing in Python turns off",
    "splits": "the rules for splits are part of how a plan is chosen; a plan for each layer would be needed",
    "planner": "sets and maps of a chain are made together wherever a chain runs",
}


def ablation(seconds: float) -> list[Library]:
    """In the order to measure: tuned last, since its plans stay."""
    flows = ("implicit_gemm", "fetch_on_demand", "gather_gemm_scatter")
    return [OneByOne(), *(WithDataflow(flow) for flow in flows), Tuned(seconds)]
