"""WarpConvNet."""

from __future__ import annotations

import torch

from .library import Library


class WarpConvNet(Library):
    name = "WarpConvNet"
    layout = "warpconvnet"
    other_sites = "its strided convolutions make the cells of the inputs, not all that an input reaches"

    def __init__(self) -> None:
        import warpconvnet
        from warpconvnet.geometry.types.voxels import Voxels
        from warpconvnet.nn.modules.sparse_conv import SparseConv3d

        self.package, self.voxels, self.layer_class = warpconvnet, Voxels, SparseConv3d

    def version(self):
        return getattr(self.package, "__version__", "")

    def tensor(self, voxels, features):
        items = [voxels.cells[:, 0] == item for item in range(voxels.batch_size)]
        return self.voxels([voxels.cells[item, 1:].contiguous() for item in items], [features[item] for item in items])

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
