"""TorchSparse++ 2.1 in a process of its own, since it ends in an illegal memory access now and then.

As its authors measured it: kernel maps on the fly, tuned over implicit GEMM and fetch-on-demand for inference, over
implicit GEMM alone for training, where gradients of the other are wrong. Autocast does nothing to it: weights are
brought to the type of the features, which therefore are in half precision.
"""

from __future__ import annotations

import itertools
import tempfile

import torch

from .library import Library

# Of the tuner, which runs the whole model for each configuration, group of layers and sample: with 2 or 4 scans each is taken
# twice or once. The published figures took 100.
SAMPLES = 4


class TorchSparse(Library):
    name = "TorchSparse++"
    layout = "torchsparse"
    own_process = True
    to_import = "torchsparse"
    half_under_autocast = True

    def __init__(self) -> None:
        import torchsparse
        import torchsparse.nn
        from torchsparse.nn import functional

        self.package, self.layers, self.functions = torchsparse, torchsparse.nn, functional
        self.tuned = {}  # by task and network: what the tuner chose, a layer each
        functional.set_kmap_mode("hashmap_on_the_fly")
        torchsparse.backends.hash_rsv_ratio = 4  # a 3x3x3 convolution with stride 2 has more outputs than inputs

    def version(self):
        return getattr(self.package, "__version__", "")

    def tensor(self, voxels, features):
        return self.package.SparseTensor(
            coords=voxels.cells, feats=features, spatial_range=(voxels.batch_size, *voxels.spatial_shape)
        )

    def convolution(self, inputs, outputs, kernel, stride, padding, key, inverse=False):
        return self.layers.Conv3d(
            inputs, outputs, kernel, stride=stride, padding=[0, 0, 0] if inverse else padding, transposed=inverse
        )

    def norm(self, channels, **settings):
        return self.layers.BatchNorm(channels, **settings)

    def relu(self):
        return self.layers.ReLU(True)

    def cat(self, a, b):
        return self.package.cat([a, b])

    def features(self, x):
        return x.feats

    def sites(self, x):
        return x.coords

    def allow_tf32(self, allowed):
        super().allow_tf32(allowed)
        self.package.backends.allow_tf32 = allowed

    def tune(self, net, inputs, training):
        if not inputs[0][1].is_cuda:
            return  # a stand-in: the library itself runs on GPUs alone
        layers = [module for module in net.modules() if hasattr(module, "kernel_extent")]
        key = (training, str(net))
        if key not in self.tuned:
            self.measure(net, inputs, training)
            self.tuned[key] = [layer._config for layer in layers]
        # The same for `.half()` and autocast, which are one to it, with norms and without.
        for layer, config in zip(layers, self.tuned[key]):
            layer._config = config

    def measure(self, net, inputs, training):
        """Its tuner, which gives each layer of `net` its configuration."""
        from torchsparse.utils.tune import tune

        flow, library = self.functions.Dataflow, self

        class Plain(torch.nn.Module):
            """What the tuner takes: a model that returns a tensor."""

            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x):
                y = net(x)
                return y if isinstance(y, torch.Tensor) else library.features(y)

        samples = max(SAMPLES, len(inputs))
        taken = itertools.islice(itertools.cycle(inputs), samples)
        with tempfile.TemporaryDirectory() as folder:
            tune(
                Plain(),
                [self.tensor(voxels, features.half()) for voxels, features in taken],
                n_samples=samples,
                enable_fp16=True,
                force_retune=True,
                save_dir=folder,
                tune_tag="driving",
                dataflow_range=[flow.ImplicitGEMM] if training else [flow.ImplicitGEMM, flow.FetchOnDemand],
                tune_with_bwd=training,
                verbose=False,
                skip_warning=True,
            )
        net.float()  # the tuner leaves the model in half precision
