"""MinkUNet42 and CenterPoint's encoder in the layers of any `Library`, with the names that Pumice's modules have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from .library import Library

CUBE, PAIR, POINT = (3, 3, 3), (2, 2, 2), (1, 1, 1)
DETECTOR_NORMS = {"eps": 1e-3, "momentum": 0.01}


class Steps(nn.Module):
    """Layers one after another, named 0, 1, …"""

    def __init__(self, library: Library, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.library = library
        for number, layer in enumerate(layers):
            self.add_module(str(number), layer)

    def forward(self, x: Any) -> Any:
        for layer in self.children():
            x = layer(x) if isinstance(layer, (Steps, Named, Residual)) else self.library.call(layer, x)
        return x


def block(library: Library, convolution: nn.Module, channels: int, norms: dict[str, float]) -> list[nn.Module]:
    return [convolution, library.norm(channels, **norms), library.relu()]


class Named(nn.Module):
    """Steps under the name `net`."""

    def __init__(self, library: Library, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.net = Steps(library, layers)

    def forward(self, x: Any) -> Any:
        return self.net(x)


class Residual(nn.Module):
    def __init__(self, library: Library, inputs: int, outputs: int, key: str, norms: dict[str, float]) -> None:
        super().__init__()
        self.library = library
        first = library.layer(inputs, outputs, CUBE, key=key)
        second = library.layer(outputs, outputs, CUBE, key=key)
        self.net = Steps(library, [*block(library, first, outputs, norms), second, library.norm(outputs, **norms)])
        self.downsample = None
        if inputs != outputs:
            shortcut = library.layer(inputs, outputs, POINT, key=f"{key}_point")
            self.downsample = Steps(library, [shortcut, library.norm(outputs, **norms)])
        self.relu = library.relu()

    def forward(self, x: Any) -> Any:
        skip = x if self.downsample is None else self.downsample(x)
        return self.library.call(self.relu, self.library.add(self.net(x), skip))


class MinkUNet42(nn.Module):
    """Of a sparse tensor, scores [N, classes]."""

    def __init__(self, library: Library, inputs: int, classes: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.library = library
        w = list(widths)
        stem = [library.layer(inputs, w[0], CUBE, key="level0"), library.layer(w[0], w[0], CUBE, key="level0")]
        self.stem = Steps(library, [step for layer in stem for step in block(library, layer, w[0], {})])
        for level in range(1, 5):
            inside, out, key = w[level - 1], w[level], f"level{level}"
            halving = library.layer(inside, inside, PAIR, PAIR, (0, 0, 0), key=f"down{level}")
            down = Named(library, block(library, halving, inside, {}))
            blocks = [Residual(library, inside, out, key, {}), Residual(library, out, out, key, {})]
            self.add_module(f"stage{level}", Steps(library, [down, *blocks]))
        for up in range(1, 5):
            inside, out, skip, key = w[3 + up], w[4 + up], w[4 - up], f"level{4 - up}"
            doubling = library.layer(inside, out, PAIR, PAIR, (0, 0, 0), key=f"down{5 - up}", inverse=True)
            blocks = [Residual(library, out + skip, out, key, {}), Residual(library, out, out, key, {})]
            named = Named(library, block(library, doubling, out, {}))
            self.add_module(f"up{up}", nn.ModuleList([named, Steps(library, blocks)]))
        self.classifier = nn.Sequential(nn.Linear(w[8], classes))

    def forward(self, x: Any) -> torch.Tensor:
        library = self.library
        x = self.stem(x)
        skips = []
        for level in range(1, 5):
            skips.append(x)
            x = self.get_submodule(f"stage{level}")(x)
        for up in range(1, 5):
            named, blocks = self.get_submodule(f"up{up}")
            doubling, norm, relu = named.net.children()
            skip = skips.pop()
            x = library.call(relu, library.call(norm, library.go_back(doubling, x, skip)))
            x = blocks(library.cat(x, skip))
        return self.classifier(library.features(x))


class CenterPointEncoder(nn.Module):
    """Of a sparse tensor one with 128 channels on coarser sites."""

    def __init__(self, library: Library, inputs: int) -> None:
        super().__init__()

        def steps(layer: nn.Module, channels: int) -> Steps:
            return Steps(library, block(library, layer, channels, DETECTOR_NORMS))

        def halving(inside: int, out: int, padding: Sequence[int], key: str) -> Steps:
            return steps(library.layer(inside, out, CUBE, PAIR, padding, key=key), out)

        def residuals(channels: int, key: str) -> list[nn.Module]:
            return [Residual(library, channels, channels, key, DETECTOR_NORMS) for _ in range(2)]

        self.conv_input = steps(library.layer(inputs, 16, CUBE, key="level0"), 16)
        self.conv1 = Steps(library, residuals(16, "level0"))
        self.conv2 = Steps(library, [halving(16, 32, (1, 1, 1), "down1"), *residuals(32, "level1")])
        self.conv3 = Steps(library, [halving(32, 64, (1, 1, 1), "down2"), *residuals(64, "level2")])
        self.conv4 = Steps(library, [halving(64, 128, (1, 1, 0), "down3"), *residuals(128, "level3")])
        self.conv_out = steps(library.layer(128, 128, (1, 1, 3), (1, 1, 2), (0, 0, 0), key="flat"), 128)

    def forward(self, x: Any) -> Any:
        for stage in self.children():
            x = stage(x)
        return x
