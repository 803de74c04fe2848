"""Networks of random composition: convolutions of all kinds, norms, activations, pools, sums and joins, in
containers inside of containers. A seed gives the same one each time."""

from __future__ import annotations

import random
from typing import Any

import torch

import pumice
from pumice import nn


class Stages(torch.nn.Module):
    """Named children, one after the other."""

    def __init__(self, modules: list[torch.nn.Module]) -> None:
        super().__init__()
        for index, module in enumerate(modules):
            self.add_module(f"stage{index}", module)

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        return nn.in_order(self, x)


class Branches(torch.nn.Module):
    """Two ways side by side, or added."""

    def __init__(self, left: torch.nn.Module, right: torch.nn.Module, adds: bool) -> None:
        super().__init__()
        self.left, self.right, self.adds = left, right, adds

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        return joined(self.left(x), self.right(x), self.adds)


class Around(torch.nn.Module):
    """Down and up again, onto the very sites of x, which is joined: as a U-net does it."""

    def __init__(self, down: nn.Sequential, up: nn.Sequential, adds: bool) -> None:
        super().__init__()
        self.down, self.up, self.adds = down, up, adds

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        return joined(self.up(self.down(x), x), x, self.adds)


def joined(left: pumice.SparseTensor, right: pumice.SparseTensor, adds: bool) -> pumice.SparseTensor:
    return left + right if adds else pumice.cat([left, right])


class Network(torch.nn.Module):
    """A body and its head."""

    def __init__(self, body: nn.Sequential, head: torch.nn.Module) -> None:
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        return self.head(self.body(x))


NORMS = (nn.BatchNorm, nn.BatchNorm, nn.BatchNorm, torch.nn.BatchNorm1d, torch.nn.BatchNorm1d,
         nn.InstanceNorm, nn.LayerNorm)  # fmt: skip
ACTIVATIONS = (
    nn.LeakyReLU, torch.nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, torch.nn.Tanh, nn.PReLU, nn.Sigmoid,
    torch.nn.Hardtanh,
)  # fmt: skip


class Draw:
    """Draws modules that take sparse tensors of `dimension` axes. `norms` and `activations`: what there is
    of them; all by default."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dimension = self.random.choice((1, 2, 2, 3, 3, 3))
        self.even = self.random.random() < 0.5  # channels as kernels like them
        self.down: list[tuple[Any, ...]] = []  # how the levels above were left

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def channels(self) -> int:
        return self.random.choice((4, 8, 16) if self.even else (1, 2, 3, 5, 6, 7, 9))

    def network(self, channels: int) -> Network:
        body, channels = self.body(channels, self.random.randint(1, 5), 0)
        if self.maybe(0.5):
            return Network(body, nn.Linear(channels, 3, bias=self.maybe(0.7)))
        return Network(body, self.layer("SubMConv", channels, 3, 1)[0])

    def body(self, channels: int, parts: int, depth: int) -> tuple[nn.Sequential, int]:
        modules: list[torch.nn.Module] = []
        for _ in range(parts):
            more, channels = self.part(channels, depth)
            modules += more
        return nn.Sequential(*modules), channels

    def part(self, channels: int, depth: int) -> tuple[list[torch.nn.Module], int]:
        """Modules that follow each other, and the channels they make."""
        inner = ("block",) * 5 + ("linear", "activation", "dropout", "norm")
        outer = ("residual",) * 4 + ("nested", "stages", "branches", "around")
        moving = ("strided", "pool", "up", "up", "generative")
        kind = self.random.choice(inner + (outer if depth < 2 else ()) + (moving if depth == 0 else ()))
        if kind == "block":
            return self.block("SubMConv", channels, self.channels())
        if kind == "linear":
            out = self.channels()
            module = self.random.choice((nn.Linear, torch.nn.Linear))
            return [module(channels, out, bias=self.maybe(0.7)), *self.behind(out)], out
        if kind == "activation":
            return [self.activation()], channels
        if kind == "dropout":
            return [self.random.choice((nn.Dropout, torch.nn.Dropout))(0.0)], channels
        if kind == "norm":
            return [self.norm(channels)], channels
        if depth == 0 and kind in moving:
            return self.move(kind, channels)
        return self.container(kind, channels, depth)

    def container(self, kind: str, channels: int, depth: int) -> tuple[list[torch.nn.Module], int]:
        inside, out = self.body(channels, self.random.randint(1, 2), depth + 1)
        if kind == "nested":
            return [inside], out
        if kind == "stages":
            return [Stages(list(inside))], out
        if kind == "residual":
            return [self.residual(channels)], self.made
        if kind == "branches":
            adds = self.maybe(0.5)
            other = nn.Sequential(*self.block("SubMConv", channels, out if adds else self.channels())[0])
            made = out if adds else out + self.made
            return [Branches(inside, other, adds)], made
        adds = self.maybe(0.5)
        window = self.window()
        down, inner = self.block("Conv", channels, self.channels(), window)
        middle, inner = self.body(inner, 1, depth + 1)
        up, out = self.block("InverseConv", inner, channels if adds else self.channels(), window)
        return [Around(nn.Sequential(*down, middle), nn.Sequential(*up), adds)], (
            channels if adds else channels + out
        )

    def residual(self, channels: int) -> nn.Residual:
        """Its channels are in `made`."""
        parts: list[torch.nn.Module] = []
        out = channels
        for _ in range(self.random.randint(1, 2)):
            more, out = self.block("SubMConv", out, self.channels())
            parts += more
        if self.maybe(0.6):  # what most of them end with
            last = channels if self.maybe(0.5) else self.channels()
            parts += [self.layer("SubMConv", out, last, self.size())[0], self.norm(last)]
            out = last
        self.made = out
        body = nn.Sequential(*parts)
        if out == channels and self.maybe(0.8):
            return nn.Residual(body)
        shortcut = [self.layer("SubMConv", channels, out, 1)[0]]
        if self.maybe(0.7):
            shortcut.append(self.norm(out))
        elif self.maybe(0.4):
            shortcut = [nn.Linear(channels, out)]
        return nn.Residual(body, nn.Sequential(*shortcut))

    def move(self, kind: str, channels: int) -> tuple[list[torch.nn.Module], int]:
        """To another level."""
        if kind == "strided":
            window = self.window()
            self.down.append(window)
            return self.block("Conv", channels, self.channels(), window)
        if kind == "pool":
            window = self.window()
            self.down.append(window)
            pool = self.random.choice((nn.MaxPool, nn.AvgPool, nn.SumPool))
            return [pool(*window[:2], outputs=window[2])], channels
        if kind == "generative":
            self.down.clear()
            return self.block("GenerativeConvTranspose", channels, self.channels(), (2, 2, ""))
        if not self.down:
            return self.block("SubMConv", channels, self.channels())
        window = self.down.pop()
        name = self.random.choice(("InverseConv", "ConvTranspose"))
        return self.block(name, channels, self.channels(), window)

    def window(self) -> tuple[Any, ...]:
        """(kernel size, stride, which outputs)"""
        size = self.random.choice((2, 2, 3))
        return size, 2, self.random.choice(("dilating", "cell"))

    def size(self) -> Any:
        return self.random.choice((1, 3, 3, 3, 5 if self.dimension == 1 else 3))

    def block(
        self, kind: str, channels: int, out: int, window: tuple[Any, ...] | None = None
    ) -> tuple[list[torch.nn.Module], int]:
        """A convolution, most often with a norm, most often with a ReLU."""
        layer, _ = self.layer(kind, channels, out, window or self.size())
        self.made = out
        return [layer, *self.behind(out)], out

    def layer(self, kind: str, channels: int, out: int, window: Any) -> tuple[torch.nn.Module, int]:
        options: dict[str, Any] = {"bias": self.maybe(0.3)}
        both = [g for g in (2, 3, 4, 5, 7, 8) if channels % g == 0 and out % g == 0]
        if both and self.maybe(0.15):
            options["groups"] = self.random.choice(both)
        make = getattr(nn, f"{kind}{self.dimension}d")
        if kind == "SubMConv":
            if self.maybe(0.1):
                options["dilation"] = 2
            return make(channels, out, window, **options), out
        size, stride, outputs = window
        if kind == "Conv":
            options["outputs"] = outputs
        return make(channels, out, size, stride, **options), out

    def behind(self, channels: int) -> list[torch.nn.Module]:
        parts: list[torch.nn.Module] = []
        if self.maybe(0.8):
            parts.append(self.norm(channels))
        if self.maybe(0.6):
            relu = self.random.choice((nn.ReLU, torch.nn.ReLU))
            parts.append(relu(inplace=bool(parts) and self.maybe(0.3)))
        elif self.maybe(0.3):
            parts.append(self.activation())
        return parts

    def norm(self, channels: int) -> torch.nn.Module:
        kind = self.random.choice(NORMS)
        if kind is nn.InstanceNorm:
            return kind(channels, affine=self.maybe(0.8))
        if kind is nn.LayerNorm:
            return kind(channels)
        options: dict[str, Any] = {}
        if self.maybe(0.3):
            options["eps"] = self.random.choice((1e-3, 1e-2))
        if self.maybe(0.3):
            options["momentum"] = self.random.choice((0.01, 0.5, 1.0, None))
        if self.maybe(0.06):
            options["affine"] = False
        if self.maybe(0.06):
            options["track_running_stats"] = False
        return kind(channels, **options)

    def activation(self) -> torch.nn.Module:
        return self.random.choice(ACTIVATIONS)()


def fill(net: torch.nn.Module, seed: int) -> None:
    """Parameters and running statistics that no default hides."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(tensor: torch.Tensor, low: float, high: float) -> None:
        values = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
        tensor.data.copy_(low + (high - low) * values)

    for module in net.modules():
        is_norm = isinstance(module, (torch.nn.BatchNorm1d, nn.InstanceNorm, nn.LayerNorm))
        for name, parameter in module.named_parameters(recurse=False):
            bound = parameter[0].numel() ** -0.5 if parameter.dim() == 2 else 0.3
            if parameter.dim() == 3:
                bound = (parameter.shape[0] * parameter.shape[1]) ** -0.5 * 1.5
            if is_norm and name == "weight":
                uniform(parameter, 0.5, 1.5)
            else:
                uniform(parameter, -bound, bound)
        if isinstance(module, torch.nn.BatchNorm1d) and module.running_mean is not None:
            uniform(module.running_mean, -0.5, 0.5)
            uniform(module.running_var, 0.5, 1.5)
