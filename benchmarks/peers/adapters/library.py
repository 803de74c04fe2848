"""What the driving benchmark asks of a library: layers, sparse tensors, and how its weights lie."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pumice.convert import LAYOUTS, from_common


class Absent(Exception):
    """A library that is not there."""


@dataclasses.dataclass
class Voxels:
    """Cells of a batch where they are computed on. None is negative, and none occurs twice."""

    cells: Tensor  # int32 [N, 4]: batch, x, y, z
    spatial_shape: list[int]
    batch_size: int


class Library:
    """One library. `tensor`, `convolution`, `call` and `features` differ from one to the other; the rest is what most
    of them have in common. Axes are x, y, z."""

    name = ""  # in tables
    layout = ""  # a row of pumice.convert.LAYOUTS
    own_process = False  # whether it may end the process that uses it
    to_import = ""  # the name of its package, of one with a process of its own
    half_under_autocast = False  # whether autocast leaves it alone, so that its features have to be in half precision
    float32_only = False
    keeps_maps = ""  # why a second pass over one tensor makes its maps again; empty where it does not
    other_sites = ""  # why CenterPoint's outputs are on other sites; empty where they are not
    layers_only = False  # whether it has layers and no networks

    def version(self) -> str:
        return ""

    def tensor(self, voxels: Voxels, features: Tensor) -> Any:
        """A sparse tensor without maps."""
        raise NotImplementedError

    def convolution(
        self, inputs: int, outputs: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], key: str,
        inverse: bool = False,
    ) -> nn.Module:  # fmt: skip
        """Without a bias; submanifold where the stride is 1, else on every site that an input reaches; `inverse`: back
        by the strided one of the same key."""
        raise NotImplementedError

    def norm(self, channels: int, **settings: float) -> nn.Module:
        return nn.BatchNorm1d(channels, **settings)

    def relu(self) -> nn.Module:
        return nn.ReLU(inplace=True)

    def call(self, layer: nn.Module, x: Any) -> Any:
        return layer(x)

    def go_back(self, layer: nn.Module, x: Any, like: Any) -> Any:
        """An inverse convolution onto the sites of `like`."""
        return self.call(layer, x)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def cat(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def features(self, x: Any) -> Tensor:
        """[N, C]"""
        raise NotImplementedError

    def sites(self, x: Any) -> Tensor | None:
        """int [N, 4]: batch, x, y, z, of an output; None where the library does not tell."""
        return None

    def allow_tf32(self, allowed: bool) -> None:
        """Whether float32 products may be rounded to tf32; of the whole process."""
        torch.set_float32_matmul_precision("high" if allowed else "highest")

    def tune(self, net: nn.Module, inputs: Sequence[tuple[Voxels, Tensor]], training: bool) -> None:
        """What its users would do before they measure; nothing where there is no tuner."""

    def network(self, work: Any, state: dict[str, Tensor]) -> nn.Module:
        """The network of a workload with Pumice's weights, on the CPU."""
        from . import networks

        if work.network == "centerpoint":
            net: nn.Module = networks.CenterPointEncoder(self, work.in_channels)
        else:
            net = networks.MinkUNet42(self, work.in_channels, work.classes, work.widths)
        self.load(net, state)
        return net

    def without_norms(self, net: nn.Module) -> nn.Module:
        """Every batch norm becomes the identity, as published figures were measured ("fold bn"): its forward returns
        what it was given, whatever kind of tensor that is."""
        for module in net.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.forward = lambda x: x
        return net

    def for_inference(self, net: nn.Module) -> Any:
        """What is called in inference."""
        return net

    # The same for all of them.

    def layer(self, inputs: int, outputs: int, kernel: Sequence[int], stride: Sequence[int] = (1, 1, 1),
              padding: Sequence[int] | None = None, key: str = "", inverse: bool = False) -> nn.Module:  # fmt: skip
        """`convolution`, which knows its kernel for `load`."""
        reach = [size // 2 for size in kernel] if padding is None else padding
        layer = self.convolution(inputs, outputs, list(kernel), list(stride), list(reach), key, inverse)
        layer.kernel_extent, layer.goes_far = tuple(kernel), max(stride) > 1
        return layer

    def load(self, net: nn.Module, state: dict[str, Tensor]) -> None:
        """Gives `net` the weights of Pumice's network of the same names."""
        layout = LAYOUTS[self.layout]
        with torch.no_grad():
            for name, module in net.named_modules():
                if hasattr(module, "kernel_extent"):
                    weight = state[f"{name}.weight"]
                    common = weight.reshape(*module.kernel_extent, *weight.shape[1:])
                    parameter = getattr(module, layout.parameter)
                    parameter.copy_(from_common(layout, common, module.goes_far).reshape(parameter.shape))
                elif isinstance(module, (nn.BatchNorm1d, nn.Linear)):
                    plain = name.removesuffix(".bn").removesuffix(".linear")
                    for own, value in [*module.named_parameters(), *module.named_buffers()]:
                        value.copy_(state[f"{plain}.{own}"])

