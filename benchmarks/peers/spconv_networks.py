"""MinkUNet42 and CenterPoint's encoder with spconv's layers. Modules are named as Pumice names them, so
`pumice.convert` or a change of layout alone brings weights from one to the other.

In the style "containers" layers lie in SparseSequential and a shortcut is a Linear; in the style "layers" a
network calls each and puts features back itself, and a shortcut is a 1x1x1 convolution. Users write both.
"""

import spconv.pytorch as spconv
import torch
from torch import nn

SPVNAS = (32, 32, 64, 128, 256, 256, 128, 96, 96)


def submanifold(cin, cout, key):
    return spconv.SubMConv3d(cin, cout, 3, bias=False, indice_key=key)


def halving(cin, cout, key):
    return spconv.SparseConv3d(cin, cout, 2, 2, bias=False, indice_key=key)


def inverse(cin, cout, key):
    return spconv.SparseInverseConv3d(cin, cout, 2, bias=False, indice_key=key)


class OneByOne(nn.Sequential):
    """What spconv.SparseSequential does, as users write it who do not use that."""

    def forward(self, x):
        for layer in self:
            x = layer(x) if isinstance(layer, spconv.SparseModule) else x.replace_feature(layer(x.features))
        return x


SEQUENCES = {"containers": spconv.SparseSequential, "layers": OneByOne}


class Block(nn.Module):
    def __init__(self, convolution, style):
        super().__init__()
        channels = convolution.out_channels
        self.net = SEQUENCES[style](convolution, nn.BatchNorm1d(channels), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.net(x)


class Residual(nn.Module):
    def __init__(self, cin, cout, key, norm=nn.BatchNorm1d, style="containers"):
        super().__init__()
        self.style = style
        self.relu = nn.ReLU(inplace=True)
        self.net = SEQUENCES[style](
            submanifold(cin, cout, key),
            norm(cout),
            nn.ReLU(inplace=True),
            submanifold(cout, cout, key),
            norm(cout),
        )
        self.downsample = None
        if cin != cout and style == "containers":
            # What spconv makes of a 1x1x1 submanifold convolution: one dense product.
            self.downsample = nn.Sequential(nn.Linear(cin, cout, bias=False), nn.BatchNorm1d(cout))
        elif cin != cout:
            self.downsample = OneByOne(spconv.SubMConv3d(cin, cout, 1, bias=False), norm(cout))

    def forward(self, x):
        y = self.net(x)
        if self.style == "layers":
            skip = x if self.downsample is None else self.downsample(x)
            y = y.replace_feature(y.features + skip.features)
            return y.replace_feature(self.relu(y.features))
        skip = x.features if self.downsample is None else self.downsample(x.features)
        return y.replace_feature(torch.relu(y.features + skip))


class MinkUNet42(nn.Module):
    """The network of `pumice run minkunet42`, layer by layer and name by name."""

    def __init__(self, widths=SPVNAS, cin=4, classes=19, style="containers"):
        super().__init__()

        def residual(cin, cout, key):
            return Residual(cin, cout, key, style=style)

        w = widths
        self.stem = SEQUENCES[style](
            submanifold(cin, w[0], "level0"),
            nn.BatchNorm1d(w[0]),
            nn.ReLU(inplace=True),
            submanifold(w[0], w[0], "level0"),
            nn.BatchNorm1d(w[0]),
            nn.ReLU(inplace=True),
        )
        for level in range(1, 5):
            cin, cout, key = w[level - 1], w[level], f"level{level}"
            down = Block(halving(cin, cin, f"down{level}"), style)
            stage = [down, residual(cin, cout, key), residual(cout, cout, key)]
            setattr(self, f"stage{level}", nn.Sequential(*stage))
        for up in range(1, 5):
            level = 4 - up
            cin, cout, skip, key = w[3 + up], w[4 + up], w[level], f"level{level}"
            blocks = nn.Sequential(residual(cout + skip, cout, key), residual(cout, cout, key))
            block = Block(inverse(cin, cout, f"down{level + 1}"), style)
            setattr(self, f"up{up}", nn.ModuleList([block, blocks]))
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


def detector_norm(channels):
    return nn.BatchNorm1d(channels, eps=1e-3, momentum=0.01)


def detector_block(convolution):
    norm = detector_norm(convolution.out_channels)
    return spconv.SparseSequential(convolution, norm, nn.ReLU(inplace=True))


class CenterPointEncoder(nn.Module):
    """The network of `pumice run centerpoint`. Axes are x, y, z, as everywhere in Pumice."""

    def __init__(self, cin=4):
        super().__init__()

        def residuals(channels, key):
            return [Residual(channels, channels, key, detector_norm) for _ in range(2)]

        def halving3(cin, cout, padding):
            return detector_block(spconv.SparseConv3d(cin, cout, 3, 2, padding, bias=False))

        self.conv_input = detector_block(submanifold(cin, 16, "level0"))
        self.conv1 = nn.Sequential(*residuals(16, "level0"))
        self.conv2 = nn.Sequential(halving3(16, 32, 1), *residuals(32, "level1"))
        self.conv3 = nn.Sequential(halving3(32, 64, 1), *residuals(64, "level2"))
        self.conv4 = nn.Sequential(halving3(64, 128, [1, 1, 0]), *residuals(128, "level3"))
        flat = spconv.SparseConv3d(128, 128, [1, 1, 3], [1, 1, 2], bias=False)
        self.conv_out = detector_block(flat)

    def forward(self, x):
        for stage in self.children():
            x = stage(x)
        return x.features


def pumice_layout(name, value):
    """[C_out, k, k, k, C_in] -> [K, C_in, C_out]; a 1x1x1 shortcut [C_out, C_in] -> [1, C_in, C_out]."""
    if value.ndim == 5:
        cout, cin = value.shape[0], value.shape[-1]
        return value.reshape(cout, -1, cin).transpose(1, 2, 0)
    if name.endswith("downsample.0.weight"):
        return value.T[None]
    return value
