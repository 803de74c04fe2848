"""spconv 2.3.8 on the CPU: kernel map, one layer, MinkUNet42, and how its weights become Pumice's.

Its native algorithm is the only one it has on a CPU, and it cannot train there. Modules are named as
Pumice names them, so an entry of `state_dict()` and an entry of a Pumice weight file differ in layout
alone: `pumice_weights` is the whole conversion.
"""

import numpy as np
import spconv as spconv_package
import spconv.pytorch as spconv
import torch
from spconv.core import ConvAlgo
from spconv.pytorch import ops
from torch import nn

NAME = "spconv " + spconv_package.__version__
SPVNAS = (32, 32, 64, 128, 256, 256, 128, 96, 96)


class Sites:
    """Coordinates (batch, x, y, z) as spconv takes them: not negative, on a bounded grid."""

    def __init__(self, coords):
        # By a multiple of 16, so that each of four halvings divides where Pumice divides.
        shifted = coords.copy()
        shifted[:, 1:] -= coords[:, 1:].min(0) // 16 * 16
        self.shape = ((shifted[:, 1:].max(0) // 16 + 1) * 16).tolist()
        self.indices = torch.from_numpy(np.ascontiguousarray(shifted))
        self.batch = int(coords[:, 0].max()) + 1

    def tensor(self, features):
        return spconv.SparseConvTensor(features, self.indices, self.shape, self.batch)

    def submanifold_map(self):
        """Pairs of a 3x3x3 submanifold layer; the mirrored half of them is left out, as always here."""
        ones, three = [1] * 3, [3] * 3
        return ops.get_indice_pairs(
            self.indices, self.batch, self.shape, ConvAlgo.Native, three, ones, ones, ones, [0] * 3, subm=True
        )

    def submanifold_pairs(self):
        _, _, counts = self.submanifold_map()
        return 2 * int(counts.sum()) + len(self.indices)


def submanifold(cin, cout, key):
    return spconv.SubMConv3d(cin, cout, 3, bias=False, indice_key=key)


def halving(cin, cout, key):
    return spconv.SparseConv3d(cin, cout, 2, 2, bias=False, indice_key=key)


def inverse(cin, cout, key):
    return spconv.SparseInverseConv3d(cin, cout, 2, bias=False, indice_key=key)


class Block(nn.Module):
    def __init__(self, convolution):
        super().__init__()
        channels = convolution.out_channels
        self.net = spconv.SparseSequential(convolution, nn.BatchNorm1d(channels), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.net(x)


class Residual(nn.Module):
    def __init__(self, cin, cout, key):
        super().__init__()
        self.net = spconv.SparseSequential(
            submanifold(cin, cout, key),
            nn.BatchNorm1d(cout),
            nn.ReLU(inplace=True),
            submanifold(cout, cout, key),
            nn.BatchNorm1d(cout),
        )
        self.downsample = None
        if cin != cout:
            # What spconv makes of a 1x1x1 submanifold convolution: one dense product.
            self.downsample = nn.Sequential(nn.Linear(cin, cout, bias=False), nn.BatchNorm1d(cout))

    def forward(self, x):
        y = self.net(x)
        skip = x.features if self.downsample is None else self.downsample(x.features)
        return y.replace_feature(torch.relu(y.features + skip))


class MinkUNet42(nn.Module):
    """The network of `pumice run minkunet42`, layer by layer and name by name."""

    def __init__(self, widths=SPVNAS, cin=4, classes=19):
        super().__init__()
        w = widths
        self.stem = spconv.SparseSequential(
            submanifold(cin, w[0], "level0"),
            nn.BatchNorm1d(w[0]),
            nn.ReLU(inplace=True),
            submanifold(w[0], w[0], "level0"),
            nn.BatchNorm1d(w[0]),
            nn.ReLU(inplace=True),
        )
        for level in range(1, 5):
            cin, cout, key = w[level - 1], w[level], f"level{level}"
            stage = [Block(halving(cin, cin, f"down{level}")), Residual(cin, cout, key), Residual(cout, cout, key)]
            setattr(self, f"stage{level}", nn.Sequential(*stage))
        for up in range(1, 5):
            level = 4 - up
            cin, cout, skip, key = w[3 + up], w[4 + up], w[level], f"level{level}"
            blocks = nn.Sequential(Residual(cout + skip, cout, key), Residual(cout, cout, key))
            setattr(self, f"up{up}", nn.ModuleList([Block(inverse(cin, cout, f"down{level + 1}")), blocks]))
        self.classifier = nn.Sequential(nn.Linear(w[8], classes))

    def forward(self, x):
        x = self.stem(x)
        skips = []
        for level in range(1, 5):
            skips.append(x)
            x = getattr(self, f"stage{level}")(x)
        for up in range(1, 5):
            deconvolution, blocks = getattr(self, f"up{up}")
            x = deconvolution(x)
            x = blocks(x.replace_feature(torch.cat([x.features, skips.pop().features], 1)))
        return self.classifier(x.features)


def random_network(sites, features, seed=0):
    """Seeded weights, and running statistics that this input has: all layers see values near 1."""
    torch.manual_seed(seed)
    network = MinkUNet42().train()
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm1d)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.uniform_(norm.bias, -0.5, 0.5)
        norm.momentum = 1.0   # one pass sets the statistics
    with torch.no_grad():
        network(sites.tensor(features))
    return network.eval()


def pumice_layout(name, value):
    """[C_out, k, k, k, C_in] -> [K, C_in, C_out]; a 1x1x1 shortcut [C_out, C_in] -> [1, C_in, C_out]."""
    if value.ndim == 5:
        cout, cin = value.shape[0], value.shape[-1]
        return value.reshape(cout, -1, cin).transpose(1, 2, 0)
    if name.endswith("downsample.0.weight"):
        return value.T[None]
    return value


def pumice_weights(network):
    """The entries of a file for `pumice run --weights`."""
    entries = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    return {
        name: np.ascontiguousarray(pumice_layout(name, value))
        for name, value in entries.items()
        if not name.endswith("num_batches_tracked")
    }
