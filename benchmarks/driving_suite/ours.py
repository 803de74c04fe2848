"""Pumice as contestants: its own networks, layer by layer and compiled."""

from __future__ import annotations

from collections.abc import Callable

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
    options: dict[str, object] = {}  # of `pumice.compile` and `pumice.compile_step`

    def __init__(self) -> None:
        if not hasattr(pumice, "compile"):
            raise Absent("Pumice, compiled, is not there: this Pumice has no pumice.compile")

    def for_inference(self, net):
        fast = pumice.compile(net, **self.options)

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
        step = pumice.compile_step(net, of_output, optimizer, scaler=scaler, **self.options)

        def call(voxels: Voxels, features: Tensor, labels: Tensor) -> Tensor:
            shape = voxels.spatial_shape if isinstance(net, pumice.models.CenterPointEncoder) else None
            return step(voxels.cells, features, labels, batch_size=voxels.batch_size, spatial_shape=shape)

        call.graph_bytes = lambda: step.bytes  # of all buckets
        return call
