"""A U-Net as people write it for spconv: imported under that name, and changed in nothing."""

from collections import OrderedDict
from functools import partial

import spconv.pytorch as spconv
import torch
import torch.nn as nn


class Block(spconv.SparseModule):
    def __init__(self, inplanes, planes, norm_fn, indice_key):
        super().__init__()
        if inplanes == planes:
            self.skip = spconv.SparseSequential(nn.Identity())
        else:
            self.skip = spconv.SparseSequential(
                spconv.SubMConv3d(inplanes, planes, kernel_size=1, bias=False), norm_fn(planes)
            )
        self.conv1 = spconv.SubMConv3d(
            inplanes, planes, kernel_size=3, padding=1, bias=False, indice_key=indice_key
        )
        self.norm1 = norm_fn(planes)
        self.relu = nn.ReLU()
        self.conv2 = spconv.SubMConv3d(
            planes, planes, kernel_size=3, padding=1, bias=False, indice_key=indice_key
        )
        self.norm2 = norm_fn(planes)

    def forward(self, x):
        out = self.conv1(x)
        out = out.replace_feature(self.relu(self.norm1(out.features)))
        out = self.conv2(out)
        out = out.replace_feature(self.norm2(out.features))
        out = out.replace_feature(out.features + self.skip(x).features)
        return out.replace_feature(self.relu(out.features))


class SpUNet(nn.Module):
    def __init__(self, in_channels, classes, widths=(16, 24, 32)):
        super().__init__()
        norm_fn = partial(nn.BatchNorm1d, eps=1e-3, momentum=0.01)
        self.conv_input = spconv.SparseSequential(
            spconv.SubMConv3d(
                in_channels, widths[0], kernel_size=5, padding=1, bias=False, indice_key="stem"
            ),
            norm_fn(widths[0]),
            nn.ReLU(),
        )
        self.down, self.enc = nn.ModuleList(), nn.ModuleList()
        self.up, self.dec = nn.ModuleList(), nn.ModuleList()
        for s in range(len(widths) - 1):
            fine, coarse = widths[s], widths[s + 1]
            self.down.append(
                spconv.SparseSequential(
                    spconv.SparseConv3d(
                        fine, coarse, kernel_size=2, stride=2, bias=False, indice_key=f"down{s}"
                    ),
                    norm_fn(coarse),
                    nn.ReLU(),
                )
            )
            self.enc.append(
                spconv.SparseSequential(
                    OrderedDict(
                        (f"block{i}", Block(coarse, coarse, norm_fn, f"subm{s + 1}"))
                        for i in range(2)
                    )
                )
            )
            self.up.append(
                spconv.SparseSequential(
                    spconv.SparseInverseConv3d(
                        coarse, fine, kernel_size=2, bias=False, indice_key=f"down{s}"
                    ),
                    norm_fn(fine),
                    nn.ReLU(),
                )
            )
            self.dec.append(
                spconv.SparseSequential(Block(2 * fine, fine, norm_fn, f"subm{s}"))
            )
        self.final = spconv.SubMConv3d(widths[0], classes, kernel_size=1, padding=1, bias=True)

    def forward(self, features, indices, shape, batch_size):
        x = spconv.SparseConvTensor(features, indices, shape, batch_size)
        x = self.conv_input(x)
        skips = [x]
        for down, enc in zip(self.down, self.enc):
            x = enc(down(x))
            skips.append(x)
        x = skips.pop()
        for up, dec in zip(reversed(self.up), reversed(self.dec)):
            x = up(x)
            x = x.replace_feature(torch.cat((x.features, skips.pop().features), dim=1))
            x = dec(x)
        return self.final(x).features
