"""spconv 2.3.8 on the CPU: the map of a layer, one layer, and MinkUNet42.

Reads voxels that `pumice voxelize` wrote, prints one JSON object with milliseconds per repetition.
Its native algorithm is the only one it has on a CPU. Weights are random: only time is compared here,
`pumice conv` compares values.
"""

import argparse
import json
import time

import numpy as np
import spconv as spconv_package
import spconv.pytorch as spconv
import torch
from safetensors.numpy import load_file
from torch import nn

SPVNAS = (32, 32, 64, 128, 256, 256, 128, 96, 96)


def norm_relu(channels):
    return [nn.BatchNorm1d(channels), nn.ReLU(inplace=True)]


def submanifold(cin, cout, key, size=3):
    return spconv.SubMConv3d(cin, cout, size, bias=False, indice_key=key)


class Residual(nn.Module):
    def __init__(self, cin, cout, key):
        super().__init__()
        self.net = spconv.SparseSequential(
            submanifold(cin, cout, key), *norm_relu(cout), submanifold(cout, cout, key), nn.BatchNorm1d(cout)
        )
        self.shortcut = None
        if cin != cout:
            self.shortcut = nn.Sequential(nn.Linear(cin, cout, bias=False), nn.BatchNorm1d(cout))

    def forward(self, x):
        y = self.net(x)
        skip = x.features if self.shortcut is None else self.shortcut(x.features)
        return y.replace_feature(torch.relu(y.features + skip))


class MinkUNet42(nn.Module):
    """42 convolutions with more than one offset and the 1x1 shortcuts, as `pumice run minkunet42`."""

    def __init__(self, widths=SPVNAS, cin=4, classes=19):
        super().__init__()
        w = widths
        self.stem = spconv.SparseSequential(
            submanifold(cin, w[0], "l0"), *norm_relu(w[0]), submanifold(w[0], w[0], "l0"), *norm_relu(w[0])
        )
        self.down = nn.ModuleList()
        self.encode = nn.ModuleList()
        for level in range(4):
            a, b = w[level], w[level + 1]
            self.down.append(
                spconv.SparseSequential(
                    spconv.SparseConv3d(a, a, 2, 2, bias=False, indice_key=f"d{level}"), *norm_relu(a)
                )
            )
            key = f"l{level + 1}"
            self.encode.append(nn.Sequential(Residual(a, b, key), Residual(b, b, key)))
        self.up = nn.ModuleList()
        self.decode = nn.ModuleList()
        for step in range(4):
            level = 3 - step
            a, b = w[4 + step], w[5 + step]
            self.up.append(
                spconv.SparseSequential(
                    spconv.SparseInverseConv3d(a, b, 2, bias=False, indice_key=f"d{level}"), *norm_relu(b)
                )
            )
            key = f"l{level}"
            self.decode.append(nn.Sequential(Residual(b + w[level], b, key), Residual(b, b, key)))
        self.head = nn.Linear(w[8], classes)

    def forward(self, x):
        x = self.stem(x)
        skips = []
        for down, encode in zip(self.down, self.encode):
            skips.append(x)
            x = encode(down(x))
        for up, decode in zip(self.up, self.decode):
            x = up(x)
            x = decode(x.replace_feature(torch.cat([x.features, skips.pop().features], 1)))
        return self.head(x.features)


def times_ms(body, repeats):
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        body()
        samples.append((time.perf_counter() - start) * 1e3)
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("voxels", help="safetensors file of `pumice voxelize`")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--channels", type=int, default=96)
    parser.add_argument("what", nargs="+", choices=["map", "layer", "network"])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    voxels = load_file(arguments.voxels)
    coords = voxels["coords"].copy()
    coords[:, 1:] -= coords[:, 1:].min(0)   # spconv takes no negative coordinates
    shape = (coords[:, 1:].max(0) + 1).tolist()
    indices = torch.from_numpy(np.ascontiguousarray(coords))
    batch = int(coords[:, 0].max()) + 1

    def tensor(features):
        return spconv.SparseConvTensor(features, indices, shape, batch)

    result = {"library": "spconv " + spconv_package.__version__, "threads": arguments.threads}
    with torch.inference_mode():
        if "map" in arguments.what or "layer" in arguments.what:
            c = arguments.channels
            layer = submanifold(c, c, "l0").eval()
            features = torch.randn(len(indices), c)
            tiny = submanifold(1, 1, "l0").eval()
            # The map is what a first call does beyond a second one, with one channel in and out.
            first, second = [], []
            for _ in range(arguments.repeats):
                x = tensor(features[:, :1].contiguous())
                first += times_ms(lambda: tiny(x), 1)
                y = tiny(x)
                second += times_ms(lambda: tiny(y), 1)
            if "map" in arguments.what:
                result["map_ms"] = [a - b for a, b in zip(first, second)]
            if "layer" in arguments.what:
                x = layer(tensor(features))
                result["layer_ms"] = times_ms(lambda: layer(x), arguments.repeats)
        if "network" in arguments.what:
            network = MinkUNet42().eval()
            features = torch.from_numpy(voxels["features"])
            result["network_ms"] = times_ms(lambda: network(tensor(features)), arguments.repeats)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
