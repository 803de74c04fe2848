"""The work of a network that no implementation leaves out, counted on the kernel maps of the very scans, and the least time
that a GPU needs for it.

Counted are convolutions and linear layers: the products of the pairs there are, the rows gathered for them, one for each
pair, and each input, output and weight once from memory. In training also both gradients, each norm's pass forward and
backward, and SGD with momentum. Not counted are sets and maps, the loss, and whatever a kernel can do on the way, as norms
in inference, sums and ReLUs: a row has to make these too, and its share says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import torch

import pumice

from .cases import Way

NORMS = (torch.nn.BatchNorm1d, torch.nn.LayerNorm)
OPTIMIZER_PASSES = 5  # over a parameter: itself, its gradient and its momentum read, itself and its momentum written


@dataclasses.dataclass(frozen=True)
class Limits:
    """Of a GPU, a second: operations of tensor cores in 16 bits and in tf32, and without them in float32; bytes of rows
    that are gathered from the second-level cache, and bytes of memory."""

    half: float
    tf32: float
    f32: float
    gathered: float
    memory: float


# What was reached on an H200 (products of 16 bits 0.9 of the vendor's rate, taken for the other types too; a gather alone;
# a copy); an H100 is the same processor with slower memory, as a copy on one showed.
LIMITS = {
    "H200": Limits(0.9e15, 0.45e15, 6.1e13, 7.3e12, 4.2e12),
    "H100": Limits(0.9e15, 0.45e15, 6.1e13, 7.3e12, 3.0e12),
}


def limits_of(device: torch.device) -> Limits | None:
    """None for a device whose limits nobody has measured."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((limits for known, limits in LIMITS.items() if known in name), None)


@dataclasses.dataclass(frozen=True)
class Layer:
    """What one call of one layer was given."""

    pairs: int  # of rows, that are multiplied; 0 for a norm
    rows_in: int
    rows: int
    channels_in: int
    channels: int
    weights: int  # numbers


@dataclasses.dataclass(frozen=True)
class Pass:
    """One product, or one pass over features: operations, and bytes."""

    flop: float
    gathered: float
    moved: float

    def seconds(self, limits: Limits, peak: float) -> float:
        """As long as its nearest limit has it take."""
        return max(self.flop / peak, self.gathered / limits.gathered, self.moved / limits.memory)


@dataclasses.dataclass(frozen=True)
class Work:
    """Of a pass of a network."""

    gflop: float
    gathered_mib: float
    moved_mib: float
    least_ms: float | None  # None where limits are not known


def layers_of(net: torch.nn.Module, x: pumice.SparseTensor) -> list[Layer]:
    """The calls of `net` on a tensor with numbers of rows and pairs as its own maps have them. It runs layer by layer."""
    found = []
    for call in pumice.explain(net, x):
        module = net.get_submodule(call.name)
        weights = sum(parameter.numel() for parameter in module.parameters())
        if isinstance(module, pumice.nn.Convolution):
            pairs = call.pairs
        elif isinstance(module, torch.nn.Linear) or type(module).__name__ == "Linear":
            pairs = call.rows
        elif isinstance(module, NORMS):
            pairs = 0
        else:
            continue
        found.append(Layer(pairs, call.rows_in, call.rows, call.channels_in, call.channels, weights))
    return found


def passes_of(layers: Sequence[Layer], item: int, training: bool, parameters: int) -> list[Pass]:
    """`item`: bytes of a number in features and in weights as kernels read them; `parameters`: how many there are, in
    float32."""
    made = []
    for number, layer in enumerate(layers):
        taken, given = item * layer.rows_in * layer.channels_in, item * layer.rows * layer.channels
        if layer.pairs == 0:
            if training:
                made += [Pass(0, 0, taken + given), Pass(0, 0, taken + 2 * given)]
            continue
        flop = 2.0 * layer.pairs * layer.channels_in * layer.channels
        rows_in, rows = (float(item) * layer.pairs * width for width in (layer.channels_in, layer.channels))
        once = taken + given + item * layer.weights
        made.append(Pass(flop, rows_in, once))
        if training and number > 0:  # nobody asks for the gradient of a network's input
            made.append(Pass(flop, rows, once))
        if training:
            made.append(Pass(flop, rows_in + rows, taken + given + 4 * layer.weights))
    if training:
        made.append(Pass(0, 0, 4 * OPTIMIZER_PASSES * parameters))
    return made


def peak_of(limits: Limits, way: Way) -> float:
    """Operations a second in the type of a way."""
    if way.dtype != torch.float32:
        return limits.half
    return limits.tf32 if way.tf32 else limits.f32


def work_of(counts: Iterable[Sequence[Layer]], way: Way, training: bool, parameters: int, limits: Limits | None) -> Work:
    """The mean over inputs, whose layers `counts` has."""
    all_passes = [passes_of(layers, way.dtype.itemsize, training, parameters) for layers in counts]
    scans = len(all_passes)

    def mean(values: Iterable[float]) -> float:
        return sum(values) / scans

    flat = [one for passes in all_passes for one in passes]
    return Work(
        mean(one.flop for one in flat) / 1e9,
        mean(one.gathered for one in flat) / 2**20,
        mean(one.moved for one in flat) / 2**20,
        None if limits is None else 1e3 * mean(one.seconds(limits, peak_of(limits, way)) for one in flat),
    )
