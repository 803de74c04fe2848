"""Programs in the style of users of the three interfaces: layers called one by one, in an order that a seed gives.
What is read, held and dropped on the way differs from pass to pass."""

from __future__ import annotations

import random
from typing import Any

import torch
from conftest import random_sites

import pumice.compat.minkowski as engine
import pumice.compat.spconv as spconv
import pumice.compat.torchsparse as torchsparse
from pumice.compat.torchsparse import nn as spnn

CHANNELS = 4
EXTENT = 6
nn = torch.nn


class Spconv:
    """Features are read, given to PyTorch's layers, and put back."""

    def tensor(self, cells: torch.Tensor, features: torch.Tensor) -> Any:
        return spconv.SparseConvTensor(features, cells, [EXTENT] * 3, 2)

    def convolution(self, size: int, bias: bool, key: str, inputs: int = CHANNELS) -> nn.Module:
        return spconv.SubMConv3d(inputs, CHANNELS, size, bias=bias, indice_key=key if size == 3 else None)

    def down_and_up(self, key: str, inputs: int = CHANNELS) -> tuple[nn.Module, nn.Module]:
        return (
            spconv.SparseConv3d(inputs, CHANNELS, 2, 2, bias=False, indice_key=key),
            spconv.SparseInverseConv3d(CHANNELS, CHANNELS, 2, bias=False, indice_key=key),
        )

    def norm(self, momentum: float, channels: int = CHANNELS) -> nn.Module:
        return nn.BatchNorm1d(channels, momentum=momentum)

    def relu(self, in_place: bool) -> nn.Module:
        return nn.ReLU(in_place)

    def group(self, *layers: nn.Module) -> nn.Module:
        return spconv.SparseSequential(*layers)

    def call(self, layer: nn.Module, x: Any) -> Any:
        return layer(x) if isinstance(layer, spconv.SparseModule) else self.put(x, layer(x.features))

    def features(self, x: Any) -> torch.Tensor:
        return x.features

    def put(self, x: Any, features: torch.Tensor) -> Any:
        return x.replace_feature(features)

    def add(self, x: Any, other: Any) -> Any:
        return self.put(x, x.features + other.features)

    def join(self, *parts: Any) -> Any:
        """Channels side by side."""
        return self.put(parts[0], torch.cat([x.features for x in parts], 1))


class TorchSparse(Spconv):
    """Layers take the sparse tensor itself."""

    def tensor(self, cells: torch.Tensor, features: torch.Tensor) -> Any:
        return torchsparse.SparseTensor(features, cells)

    def convolution(self, size: int, bias: bool, key: str, inputs: int = CHANNELS) -> nn.Module:
        return spnn.Conv3d(inputs, CHANNELS, size, bias=bias)

    def down_and_up(self, key: str, inputs: int = CHANNELS) -> tuple[nn.Module, nn.Module]:
        return (
            spnn.Conv3d(inputs, CHANNELS, kernel_size=2, stride=2),
            spnn.Conv3d(CHANNELS, CHANNELS, kernel_size=2, stride=2, transposed=True),
        )

    def norm(self, momentum: float, channels: int = CHANNELS) -> nn.Module:
        return spnn.BatchNorm(channels, momentum=momentum)

    def relu(self, in_place: bool) -> nn.Module:
        return spnn.ReLU(in_place)

    def group(self, *layers: nn.Module) -> nn.Module:
        return nn.Sequential(*layers)

    def call(self, layer: nn.Module, x: Any) -> Any:
        return layer(x)

    def features(self, x: Any) -> torch.Tensor:
        return x.feats

    def put(self, x: Any, features: torch.Tensor) -> Any:
        made = torchsparse.SparseTensor(features, x.coords, x.stride, x.spatial_range)
        made._caches = x._caches
        return made

    def add(self, x: Any, other: Any) -> Any:
        return x + other

    def join(self, *parts: Any) -> Any:
        return torchsparse.cat(list(parts))


class Minkowski(TorchSparse):
    """Layers take the sparse tensor itself, and wrap PyTorch's."""

    def tensor(self, cells: torch.Tensor, features: torch.Tensor) -> Any:
        return engine.SparseTensor(features, cells)

    def convolution(self, size: int, bias: bool, key: str, inputs: int = CHANNELS) -> nn.Module:
        return engine.MinkowskiConvolution(inputs, CHANNELS, size, bias=bias, dimension=3)

    def down_and_up(self, key: str, inputs: int = CHANNELS) -> tuple[nn.Module, nn.Module]:
        made = {"out_channels": CHANNELS, "kernel_size": 2, "stride": 2, "dimension": 3}
        down = engine.MinkowskiConvolution(in_channels=inputs, **made)
        return down, engine.MinkowskiConvolutionTranspose(in_channels=CHANNELS, **made)

    def norm(self, momentum: float, channels: int = CHANNELS) -> nn.Module:
        return engine.MinkowskiBatchNorm(channels, momentum=momentum)

    def relu(self, in_place: bool) -> nn.Module:
        return engine.MinkowskiReLU(in_place)

    def features(self, x: Any) -> torch.Tensor:
        return x.F

    def put(self, x: Any, features: torch.Tensor) -> Any:
        return engine.SparseTensor(
            features, coordinate_map_key=x.coordinate_map_key, coordinate_manager=x.coordinate_manager
        )

    def join(self, *parts: Any) -> Any:
        return engine.cat(*parts)


INTERFACES = {"spconv": Spconv(), "torchsparse": TorchSparse(), "minkowski": Minkowski()}


def scene(seed: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Sites of two batch items, and features."""
    generator = torch.Generator().manual_seed(seed)
    cells = random_sites(3, EXTENT, 60)
    return cells, torch.randn(len(cells), CHANNELS, generator=generator, dtype=dtype)


class Program(nn.Module):
    """`steps` of (operation, number of the value it takes, its layers' name). Values are sparse tensors on the
    finest sites."""

    # How often each occurs.
    operations = {
        "link": 6, "block": 6, "down_and_up": 2, "group": 3, "convolution": 2, "norm": 2, "relu": 2, "sum": 2, "cat": 1,
    }  # fmt: skip

    def __init__(self, seed: int, interface: str = "spconv") -> None:
        super().__init__()
        choose = random.Random(seed)
        self.interface = interface
        self.steps: list[tuple[str, int, str]] = []
        values = 1
        for number in range(choose.randint(3, 12)):
            operation = choose.choices(list(self.operations), list(self.operations.values()))[0]
            name = f"layer{number}"
            taken = values - 1 if choose.random() < 0.8 else choose.randrange(values)
            self.add_module(name, self._layers(choose, operation, f"key{choose.randrange(2)}", number))
            self.steps.append((operation, taken, name))
            values += 1

    def _layers(self, choose: random.Random, operation: str, key: str, number: int) -> nn.Module:
        by = INTERFACES[self.interface]

        def conv(size: int = 3) -> nn.Module:
            return by.convolution(size, choose.random() < 0.1, key)

        def norm() -> nn.Module:
            made = by.norm(choose.choice([0.1, 0.3]))
            for name, parameter in made.named_parameters():
                if name.endswith("weight"):
                    nn.init.uniform_(parameter, 0.5, 1.5)
            return made

        relu = by.relu(choose.random() < 0.5)
        if operation == "block":
            shortcut = [conv(1), norm()] if choose.random() < 0.3 else []
            return nn.ModuleList([conv(), norm(), relu, conv(), norm(), by.relu(False), *shortcut])
        if operation == "down_and_up":
            down, up = by.down_and_up(f"down{number}")
            return nn.ModuleList([down, norm(), up, norm(), relu])
        if operation == "group":
            behind = [norm(), relu] if choose.random() < 0.7 else [norm()]
            return by.group(conv(), *behind, conv(), norm())
        kinds = {"link": [conv(), norm(), relu], "norm": [norm()], "relu": [by.relu(False)]}
        kinds["cat"] = [nn.Linear(2 * CHANNELS, CHANNELS)]
        return nn.ModuleList(kinds.get(operation, [conv()] if operation == "convolution" else []))

    def forward(self, x: Any, choose: random.Random) -> Any:
        """The last value, and what was read on the way; `choose` says what is."""
        by = INTERFACES[self.interface]
        values, read, held = [x], [], []
        for operation, taken, name in self.steps:
            value = self._run(
                operation, getattr(self, name), values[taken], values[choose.randrange(len(values))]
            )
            values.append(value)
            if choose.random() < 0.1:
                read.append(by.features(value).mean())
            if choose.random() < 0.1:
                held.append(by.features(value))
            if choose.random() < 0.05:
                with torch.no_grad():
                    by.features(value).abs().max()
            if choose.random() < 0.1:
                values[choose.randrange(len(values) - 1)] = values[-1]  # one that nobody needs any more
        return values[-1], [*read, *(features.square().mean() for features in held)]

    def _run(self, operation: str, layers: Any, x: Any, other: Any) -> Any:
        """One operation as users write it."""
        by = INTERFACES[self.interface]
        if operation == "group":
            return layers(x)
        if operation == "sum":
            return by.add(x, other)
        if operation == "cat":
            joined = torch.cat([by.features(x), by.features(other)], 1)
            return by.put(x, layers[0](joined))
        out = x
        for layer in layers[:6] if operation == "block" else layers:
            if operation == "block" and layer is layers[5]:
                shortcut = x
                for part in layers[6:]:
                    shortcut = by.call(part, shortcut)
                out = by.add(out, shortcut)
            out = by.call(layer, out)
        return out
