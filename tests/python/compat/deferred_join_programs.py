"""Programs in the style of users whose layers take joins of channels, with shortcuts of one offset."""

from __future__ import annotations

import random
from typing import Any

import torch
from deferred_programs import CHANNELS, INTERFACES, Program

nn = torch.nn
OF_TWO = 2 * CHANNELS


class Joins(Program):
    """A program that joins values in every way there is, and looks at the joins now and then."""

    operations = {
        "link": 4, "block": 2, "down_and_up": 1, "sum": 1, "join": 6, "joined block": 6, "both": 2, "twice": 1,
        "three": 1, "rows": 1, "norm first": 1, "in place": 1, "strided": 2, "given": 2, "no norm": 1, "of a join": 1,
        "its own": 1, "onto another": 1, "held": 1,
    }  # fmt: skip

    def _layers(self, choose: random.Random, operation: str, key: str, number: int) -> nn.Module:
        by = INTERFACES[self.interface]

        def link(inputs: int = OF_TWO, size: int = 3) -> list[nn.Module]:
            return [by.convolution(size, False, key, inputs), by.norm(0.1), by.relu(choose.random() < 0.5)]

        def shortcut() -> list[nn.Module]:
            if self.interface == "spconv" and choose.random() < 0.5:
                return [nn.Linear(OF_TWO, CHANNELS, bias=choose.random() < 0.2), by.norm(0.1)]
            return link(OF_TWO, 1)[:2]

        if operation in ("join", "twice", "in place", "given"):
            return nn.ModuleList(link())
        if operation == "joined block":
            return nn.ModuleList([*link(), *link(CHANNELS), *shortcut()])
        if operation == "both":
            return nn.ModuleList([*link(), *link()])
        if operation in ("three", "of a join"):
            return nn.ModuleList(link(3 * CHANNELS))
        if operation == "rows":
            return nn.ModuleList(link(CHANNELS))
        if operation == "norm first":
            return nn.ModuleList([by.norm(0.1, OF_TWO), by.relu(False), by.convolution(3, False, key, OF_TWO)])
        if operation == "strided":
            down, up = by.down_and_up(f"down{number}", OF_TWO)
            return nn.ModuleList([down, by.norm(0.1), up, by.norm(0.1), by.relu(True)])
        if operation in ("onto another", "held"):
            return nn.ModuleList(link())
        if operation == "no norm":
            return nn.ModuleList([by.convolution(3, choose.random() < 0.5, key, OF_TWO)])
        if operation == "its own":  # a sum of what takes the join and the join
            return nn.ModuleList([*link(), nn.Linear(OF_TWO, CHANNELS)])
        return super()._layers(choose, operation, key, number)

    def _run(self, operation: str, layers: Any, x: Any, other: Any) -> Any:
        by = INTERFACES[self.interface]

        def called(layers: Any, x: Any) -> Any:
            for layer in layers:
                x = by.put(x, layer(by.features(x))) if isinstance(layer, nn.Linear) else by.call(layer, x)
            return x

        if operation in ("join", "norm first", "strided", "no norm"):
            return called(layers, by.join(x, other))
        if operation == "twice":
            return called(layers, by.join(x, x))
        if operation == "joined block":
            joined = by.join(other, x)
            out = called(layers[:5], joined)
            return by.call(layers[5], by.add(out, called(layers[6:], joined)))
        if operation == "both":
            joined = by.join(x, other)
            return by.add(called(layers[:3], joined), called(layers[3:], joined))
        if operation == "three":
            return called(layers, by.join(x, other, x))
        if operation == "of a join":
            return called(layers, by.join(by.join(x, other), x))
        if operation == "rows":
            features = torch.cat([by.features(x), by.features(other)])
            return called(layers, by.put(x, features[: len(by.features(x))]))
        if operation == "in place":
            joined = by.join(x, other)
            return called(layers, by.call(by.relu(True), joined))
        if operation == "given":
            one = by.put(x, torch.ones_like(by.features(x)))
            return called(layers, by.join(one, x) if layers[2].training else by.join(x, one))
        if operation == "onto another":
            one = by.put(x, torch.ones_like(by.features(x)))
            return by.call(layers[2], by.add(called(layers[:2], by.join(x, other)), one))
        if operation == "held":
            convolved = by.call(layers[0], by.join(x, other))
            return by.add(called(layers[1:], convolved), convolved)
        if operation == "its own":
            joined = by.join(x, other)
            return by.put(x, by.features(called(layers[:3], joined)) + layers[3](by.features(joined)))
        return super()._run(operation, layers, x, other)
