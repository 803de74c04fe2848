"""WarpConvNet, in a process of its own: its tuner runs every kernel it has for a layer, at the first pass of a size."""

from __future__ import annotations

import torch

from .library import Library


class WarpConvNet(Library):
    name = "WarpConvNet"
    layout = "warpconvnet"
    own_process = True
    to_import = "warpconvnet"
    other_sites = "its strided convolutions make the cells of the inputs, not all that an input reaches"

    def __init__(self) -> None:
        import warpconvnet
        from warpconvnet.geometry.types.voxels import Voxels
        from warpconvnet.nn.modules.sparse_conv import SparseConv3d

        self.package, self.voxels, self.layer_class = warpconvnet, Voxels, SparseConv3d
        self.cut = {}  # by identity of voxels: these, [N, 3] and where items begin

    def version(self):
        return getattr(self.package, "__version__", "")

    def tensor(self, voxels, features):
        """Of rows in the order of items; what a data loader of its users has at hand is made once for all passes."""
        if id(voxels) not in self.cut:
            counts = torch.bincount(voxels.cells[:, 0].cpu(), minlength=voxels.batch_size)
            begins = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).int()
            self.cut[id(voxels)] = voxels, voxels.cells[:, 1:].contiguous(), begins
        _, cells, begins = self.cut[id(voxels)]
        return self.voxels(cells, features, offsets=begins)

    def convolution(self, inputs, outputs, kernel, stride, padding, key, inverse=False):
        return self.layer_class(inputs, outputs, kernel, stride=stride, transposed=inverse, bias=False)

    def call(self, layer, x):
        return layer(x) if hasattr(layer, "kernel_extent") else x.replace(batched_features=layer(x.feature_tensor))

    def go_back(self, layer, x, like):
        return layer(x, like)

    def add(self, a, b):
        return a.replace(batched_features=a.feature_tensor + b.feature_tensor)

    def cat(self, a, b):
        return a.replace(batched_features=torch.cat([a.feature_tensor, b.feature_tensor], 1))

    def features(self, x):
        return x.feature_tensor
