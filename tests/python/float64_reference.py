"""The same network and numbers in float64 on the CPU, and how far other types may be from that."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch

import pumice

UNIT = 2.0**-24  # what rounding a number to float32 changes, relative to it, at most


def in_float64(
    net: torch.nn.Module,
    x: pumice.SparseTensor,
    change: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.clone,
) -> tuple[torch.nn.Module, pumice.SparseTensor]:
    """Copies on the CPU; `change` makes their parameters and features."""
    net = copy.deepcopy(net).cpu().double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(change(parameter))
        features = change(x.features.detach().cpu().double())
    return net, pumice.SparseTensor(
        x.indices.cpu(),
        features.requires_grad_(),
        spatial_shape=x.spatial_shape,
        batch_size=x.batch_size,
    )


def results_of(
    net: torch.nn.Module, x: pumice.SparseTensor, gradient: torch.Tensor | None = None
) -> dict[str, torch.Tensor]:
    """By name, the output and the gradients of its sum weighted by `gradient`, by default so that every
    output counts differently: brought to the CPU."""
    y = net(x).features
    if gradient is None:
        gradient = torch.linspace(-1, 1, y.numel(), dtype=torch.float64).reshape(y.shape)
    wanted = {"features": x.features, **dict(net.named_parameters())}
    gradients = torch.autograd.grad(y, list(wanted.values()), gradient.to(y))
    found = {"output": y, **dict(zip(wanted, gradients, strict=True))}
    return {name: value.detach().cpu() for name, value in found.items()}


def rounding_of(net: torch.nn.Module, x: pumice.SparseTensor) -> dict[str, float]:
    """By how much, in their norms, results in float32 may differ from those in float64.

    Rounding in a layer does what a relative change of its weights does: of a sum of n products, by sqrt(n) / 2
    units of 2^-24, which is 8 for 27 offsets of 10 channels. How far norms of small variance carry this,
    networks tell whose parameters and features were changed at random by up to 8 units: the middle one of five,
    times 8. Beside that a ReLU may change sides whose input is as close to 0, which no bound knows beforehand:
    one in CenterPoint's encoder moves gradients by 0.5 % of their norm, and 1 % is allowed. What is 0 but for
    rounding, as the gradient of a bias before a norm, gets 64 units of the largest gradient."""
    generator = torch.Generator().manual_seed(1)

    def shaken(value: torch.Tensor) -> torch.Tensor:
        noise = torch.rand(value.shape, generator=generator, dtype=torch.float64)
        return value * (1 + 8 * UNIT * (2 * noise - 1))

    exact = results_of(*in_float64(net, x))
    largest = max(value.norm().item() for name, value in exact.items() if name != "output")
    moved: dict[str, list[float]] = {name: [] for name in exact}
    for _ in range(5):
        for name, value in results_of(*in_float64(net, x, shaken)).items():
            moved[name].append((value - exact[name]).norm().item())
    return {
        name: 8 * sorted(distances)[2] + 0.01 * exact[name].norm().item() + 64 * UNIT * largest
        for name, distances in moved.items()
    }
