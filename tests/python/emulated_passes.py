"""Passes of a network on the emulated device (see emulated_device.py): how often each of them waits, and how much memory
its maps take. Run by emulated_device_test.py in a process of its own."""

from __future__ import annotations

import copy
import ctypes

import torch
from conftest import random_sites
from emulated_device import OnDevice, fake_driver, raw_allocate, raw_free, same

from pumice import _C, nn

EXTENT = 16
fake_driver.pumice_fake_driver_waited.restype = ctypes.c_ulong
taken: dict[int, int] = {}  # bytes by address


def allocate(size: int, stream: int) -> int:
    address = raw_allocate(size, stream)
    taken[address] = size
    return address


def free(address: int) -> None:
    del taken[address]
    raw_free(address)


class Layers:
    """Windows of a network that goes down twice and up again, and weights."""

    def __init__(self) -> None:
        self.center = nn.SubMConv3d(8, 8, 3).window
        self.down = [nn.Conv3d(8, 8, size, stride=2).window for size in (2, 3)]
        self.weights = [torch.randn(window.volume, 8, 8) / 16 for window in (self.center, *self.down, self.center)]

    def run(self, features: torch.Tensor, sites: object, place: object, turns: list[int]) -> list[torch.Tensor]:
        """The result of a pass that goes down by the layers `turns`, and back up; the gradients of its input and of all
        weights."""
        weights = [place(weight) for weight in self.weights]
        calls, x = [], features

        def convolve(weight: torch.Tensor, map: object) -> None:
            nonlocal x
            calls.append((x, weight, map))
            x = _C.convolution(x, weight, map, None, 1, False, False, None, None, None, 0)

        convolve(weights[0], _C.submanifold_map(sites, self.center.c))
        for turn in turns:
            map = _C.strided_map(sites, self.down[turn].c, True)
            sites = map.out_sites
            convolve(weights[1 + turn], map)
            convolve(weights[3], _C.submanifold_map(sites, self.center.c))
        for turn in reversed(turns):
            map = _C.inverse_map(sites, self.down[turn].c, None)
            sites = map.out_sites
            convolve(weights[1 + turn], map)
        results, gradient = [x], x
        for given, weight, map in reversed(calls):
            call = (1, False, False, None, None, True, True, False)
            gradient, of_weight, _ = _C.convolution_gradients(given, weight, gradient, map, *call)
            results.append(of_weight)
        return [*results, gradient]


def passed(layers: Layers, cells: torch.Tensor, turns: list[int]) -> tuple[int, int]:
    """(waits, bytes that its sites and maps take) of a pass, which gives what the CPU gives."""
    features = torch.randn(len(cells), 8)
    high = [EXTENT - 1] * 3
    here = layers.run(features, _C.create_sites(cells, None, None, 2, [0] * 3, high), torch.Tensor.clone, turns)
    _C.release_device_memory()
    before, waits = sum(taken.values()), fake_driver.pumice_fake_driver_waited()
    sites = _C.create_sites(OnDevice.of(cells), None, None, 2, [0] * 3, high)
    there = layers.run(OnDevice.of(features), sites, OnDevice.of, turns)
    waits = fake_driver.pumice_fake_driver_waited() - waits
    for index, (mine, expected) in enumerate(zip(there, here, strict=True)):
        same(mine, expected, f"result {index} of a pass on {len(cells)} sites")
    _C.wait("cuda:0")
    _C.release_device_memory()
    return waits, sum(taken.values()) - before


def main() -> None:
    torch.manual_seed(0)
    _C.use_framework_device(allocate, free, lambda index: 0, lambda: 0, lambda index: None)
    layers, scan = Layers(), random_sites(3, EXTENT, 900)
    first, room = passed(layers, scan, [0, 1])
    assert first == 2, f"{first} waits of a first pass for two sets"
    second, less = passed(layers, scan, [0, 1])
    assert second == 1, f"{second} waits of a second pass"
    assert less < 0.7 * room, f"{less} bytes of a second pass, {room} of the first"
    for count in (1, 33, 400, 900):
        waits, _ = passed(layers, random_sites(3, EXTENT, count), [0, 1])
        assert waits == 1, f"{waits} waits of a pass on {count} sites"
    print(f"one wait a pass, {less} bytes where a first pass takes {room}", flush=True)

    # Another order of layers: what was made ahead for the first two is no use, and each set is waited for once.
    waits, _ = passed(layers, scan, [1, 0])
    assert waits == 1 + 2, f"{waits} waits on another path"
    waits, _ = passed(layers, scan, [1, 0])
    assert waits == 1, f"{waits} waits on that path again"
    for _ in range(4):  # an evaluation, by another path, leaves what training remembers
        with torch.no_grad():
            passed(layers, scan, [])
    waits, _ = passed(layers, scan, [1, 0])
    assert waits == 1, f"{waits} waits of a training step after an evaluation"
    for expected in (1, 1, 0):  # two passes later what nobody asks for is forgotten
        waits, _ = passed(layers, scan, [])
        assert waits == expected, f"{waits} waits of a pass that makes no set, for {expected}"
    print("other paths agree", flush=True)

    # A copy of a layer starts anew, and one network does not learn from another.
    other = copy.deepcopy(layers)
    for expected in (2, 1):
        waits, _ = passed(other, scan, [0, 1])
        assert waits == expected, f"{waits} waits of a copy"
    print("copies start anew", flush=True)
    _C.release_device_memory()


if __name__ == "__main__":
    main()
