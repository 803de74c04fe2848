"""FlexGEMM, which has submanifold convolutions alone: measured layer by layer, never as a network."""

from __future__ import annotations

import torch

from .library import Library


class Layer(torch.nn.Module):
    """One 3x3x3 layer that keeps the map of the last cells it saw, as its users hand it from layer to layer."""

    def __init__(self, functions, inputs: int, outputs: int, kernel) -> None:
        super().__init__()
        self.functions = functions
        self.weight = torch.nn.Parameter(torch.empty(outputs, *kernel, inputs))
        self.bias = torch.nn.Parameter(torch.zeros(outputs))
        self.map = None

    def forward(self, x):
        voxels, features = x
        shape = torch.Size([voxels.batch_size, features.shape[1], *voxels.spatial_shape])
        known = self.map[1] if self.map is not None and self.map[0] is voxels.cells else None
        result, made = self.functions.sparse_submanifold_conv3d(
            features, voxels.cells, shape, self.weight, self.bias, known
        )
        self.map = (voxels.cells, made)
        return voxels, result


class FlexGemm(Library):
    name = "FlexGEMM"
    layout = "spconv"
    layers_only = True

    def __init__(self) -> None:
        from flex_gemm.kernels.triton.spconv import config
        from flex_gemm.ops import spconv

        self.config, self.functions = config, spconv
        if hasattr(spconv, "set_algorithm"):
            spconv.set_algorithm(spconv.Algorithm.MASKED_IMPLICIT_GEMM_SPLITK)

    def tensor(self, voxels, features):
        return voxels, features

    def convolution(self, inputs, outputs, kernel, stride, padding, key, inverse=False):
        if inverse or max(stride) > 1:
            raise NotImplementedError("FlexGEMM has submanifold convolutions alone")
        return Layer(self.functions, inputs, outputs, kernel)

    def features(self, x):
        return x[1]

    def allow_tf32(self, allowed):
        super().allow_tf32(allowed)
        self.config.allow_tf32 = allowed  # read at each launch; true at first
