"""spconv 2.3.8."""

from __future__ import annotations

import torch

from .library import Library


class Spconv(Library):
    name = "spconv"
    layout = "spconv"
    keeps_maps = "its strided convolutions refuse a map that is there already"

    def __init__(self) -> None:
        import spconv
        import spconv.pytorch

        self.package, self.layers = spconv, spconv.pytorch

    def version(self):
        return getattr(self.package, "__version__", "")

    def tensor(self, voxels, features):
        return self.layers.SparseConvTensor(features, voxels.cells, voxels.spatial_shape, voxels.batch_size)

    def convolution(self, inputs, outputs, kernel, stride, padding, key, inverse=False):
        if inverse:
            return self.layers.SparseInverseConv3d(inputs, outputs, kernel, indice_key=key, bias=False)
        if max(stride) == 1:
            return self.layers.SubMConv3d(inputs, outputs, kernel, indice_key=key, bias=False)
        return self.layers.SparseConv3d(inputs, outputs, kernel, stride, padding, indice_key=key, bias=False)

    def call(self, layer, x):
        return layer(x) if hasattr(layer, "kernel_extent") else x.replace_feature(layer(x.features))

    def add(self, a, b):
        return a.replace_feature(a.features + b.features)

    def cat(self, a, b):
        return a.replace_feature(torch.cat([a.features, b.features], 1))

    def features(self, x):
        return x.features

    def sites(self, x):
        return x.indices

    def allow_tf32(self, allowed):
        super().allow_tf32(allowed)
        constants = getattr(self.package, "constants", None)
        if hasattr(constants, "SPCONV_ALLOW_TF32"):
            constants.SPCONV_ALLOW_TF32 = allowed
