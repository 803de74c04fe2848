"""spconv 2.3.8 on the CPU: kernel map, one layer, MinkUNet42, and how its weights become Pumice's.

Its native algorithm is the only one it has on a CPU, and it cannot train there. An entry of
`state_dict()` and an entry of a Pumice weight file differ in layout alone: `pumice_weights` is the
whole conversion.
"""

import numpy as np
import spconv as spconv_package
import spconv.pytorch as spconv
import torch
from spconv.core import ConvAlgo
from spconv.pytorch import ops
from torch import nn

from spconv_networks import MinkUNet42, pumice_layout, submanifold

__all__ = ["NAME", "Sites", "pumice_layout", "pumice_weights", "random_network", "submanifold"]

NAME = "spconv " + spconv_package.__version__


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


def pumice_weights(network):
    """The entries of a file for `pumice run --weights`."""
    entries = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    return {
        name: np.ascontiguousarray(pumice_layout(name, value))
        for name, value in entries.items()
        if not name.endswith("num_batches_tracked")
    }
