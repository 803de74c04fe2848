"""Programs in the style of spconv's users: layers called one by one on features that are put back, in an order
that a seed gives. What is read, held and dropped on the way differs from pass to pass."""

from __future__ import annotations

import random
from typing import Any

import torch
from conftest import random_sites

import pumice.compat.spconv as spconv

CHANNELS = 4
EXTENT = 6


def scene(seed: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Sites of two batch items, and features that learn."""
    generator = torch.Generator().manual_seed(seed)
    cells = random_sites(3, EXTENT, 60)
    features = torch.randn(len(cells), CHANNELS, generator=generator, dtype=dtype)
    return cells, features


class Program(torch.nn.Module):
    """`steps` of (operation, number of the value it takes, its layer's name). Values are sparse tensors on the
    finest sites."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        choose = random.Random(seed)
        self.seed = seed
        self.steps: list[tuple[str, int, str]] = []
        values = 1
        for number in range(choose.randint(3, 12)):
            operation = choose.choices(
                ["link", "block", "down_and_up", "group", "convolution", "norm", "relu", "sum", "cat"],
                [6, 6, 2, 3, 2, 2, 2, 2, 1],
            )[0]
            name = f"layer{number}"
            taken = values - 1 if choose.random() < 0.8 else choose.randrange(values)
            self.add_module(name, _layers(choose, operation, f"key{choose.randrange(2)}", number))
            self.steps.append((operation, taken, name))
            values += 1

    def forward(self, x: spconv.SparseConvTensor, choose: random.Random) -> Any:
        """The last value, and what was read on the way; `choose` says what is."""
        values, read, held = [x], [], []
        for operation, taken, name in self.steps:
            layers = getattr(self, name)
            value = run(operation, layers, values[taken], values[choose.randrange(len(values))])
            values.append(value)
            if choose.random() < 0.1:
                read.append(value.features.mean())
            if choose.random() < 0.1:
                held.append(value.features)
            if choose.random() < 0.05:
                with torch.no_grad():
                    value.features.abs().max()
            if choose.random() < 0.1:
                values[choose.randrange(len(values) - 1)] = values[-1]  # one that nobody needs any more
        return values[-1], [*read, *(features.square().mean() for features in held)]


def _layers(choose: random.Random, operation: str, key: str, number: int) -> torch.nn.Module:
    def subm(size: int = 3) -> torch.nn.Module:
        bias = choose.random() < 0.1
        return spconv.SubMConv3d(CHANNELS, CHANNELS, size, bias=bias, indice_key=key if size == 3 else None)

    def norm() -> torch.nn.Module:
        made = torch.nn.BatchNorm1d(CHANNELS, momentum=choose.choice([0.1, 0.3]))
        torch.nn.init.uniform_(made.weight, 0.5, 1.5)
        return made

    relu = torch.nn.ReLU(choose.random() < 0.5)
    if operation == "block":
        shortcut = [subm(1), norm()] if choose.random() < 0.3 else []
        return torch.nn.ModuleList([subm(), norm(), relu, subm(), norm(), torch.nn.ReLU(), *shortcut])
    if operation == "down_and_up":
        down = spconv.SparseConv3d(CHANNELS, CHANNELS, 2, 2, bias=False, indice_key=f"down{number}")
        up = spconv.SparseInverseConv3d(CHANNELS, CHANNELS, 2, bias=False, indice_key=f"down{number}")
        return torch.nn.ModuleList([down, norm(), up, norm(), relu])
    if operation == "group":
        behind = [norm(), relu] if choose.random() < 0.7 else [norm()]
        return spconv.SparseSequential(subm(), *behind, subm(), norm())
    kinds = {"link": [subm(), norm(), relu], "norm": [norm()], "relu": [torch.nn.ReLU()]}
    kinds["cat"] = [torch.nn.Linear(2 * CHANNELS, CHANNELS)]
    return torch.nn.ModuleList(kinds.get(operation, [subm()] if operation == "convolution" else []))


def run(
    operation: str, layers: Any, x: spconv.SparseConvTensor, other: spconv.SparseConvTensor
) -> spconv.SparseConvTensor:
    """One operation as its users write it."""
    if operation == "group":
        return layers(x)
    if operation == "sum":
        return x.replace_feature(x.features + other.features)
    if operation == "cat":
        return x.replace_feature(layers[0](torch.cat([x.features, other.features], 1)))
    out = x
    for layer in layers[:6] if operation == "block" else layers:
        if operation == "block" and layer is layers[5]:
            shortcut = x
            for part in layers[6:]:
                shortcut = _call(part, shortcut)
            out = out.replace_feature(out.features + shortcut.features)
        out = _call(layer, out)
    return out


def _call(layer: torch.nn.Module, x: spconv.SparseConvTensor) -> spconv.SparseConvTensor:
    if isinstance(layer, spconv.SparseModule):
        return layer(x)
    return x.replace_feature(layer(x.features))
