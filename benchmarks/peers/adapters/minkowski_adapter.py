"""MinkowskiEngine 0.5.4, which computes in float32 alone. It has a process of its own, since what runs with the CUDA of today
are forks of it."""

from __future__ import annotations

from .library import Library


class Minkowski(Library):
    name = "MinkowskiEngine"
    layout = "minkowski"
    own_process = True
    to_import = "MinkowskiEngine"
    float32_only = True
    other_sites = "its strided convolutions make the cells of the inputs, not all that an input reaches"

    def __init__(self) -> None:
        import MinkowskiEngine

        self.engine = MinkowskiEngine

    def version(self):
        return getattr(self.engine, "__version__", "")

    def tensor(self, voxels, features):
        return self.engine.SparseTensor(features, coordinates=voxels.cells, device=features.device)

    def convolution(self, inputs, outputs, kernel, stride, padding, key, inverse=False):
        kind = self.engine.MinkowskiConvolutionTranspose if inverse else self.engine.MinkowskiConvolution
        return kind(inputs, outputs, kernel_size=kernel, stride=stride, bias=False, dimension=3)

    def norm(self, channels, **settings):
        return self.engine.MinkowskiBatchNorm(channels, **settings)

    def relu(self):
        return self.engine.MinkowskiReLU(inplace=True)

    def go_back(self, layer, x, like):
        return layer(x, like.coordinate_map_key)

    def cat(self, a, b):
        return self.engine.cat(a, b)

    def features(self, x):
        return x.F

    def sites(self, x):
        return x.C
