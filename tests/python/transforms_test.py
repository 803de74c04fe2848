"""What differentiates otherwise than backward does is refused in a sentence of our own, and nothing is lost
in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from conftest import random_tensor
from torch.autograd import forward_ad

from pumice import UserError, nn


def net() -> nn.Sequential:
    return nn.Sequential(nn.SubMConv3d(4, 4, 3, bias=False), nn.BatchNorm(4), nn.ReLU()).double()


LAYERS = {
    "a chain": net,
    "a convolution": lambda: nn.SubMConv3d(4, 4, 3).double(),
    "a norm": lambda: nn.BatchNorm(4).double(),
    "a pool": lambda: nn.MaxPool(2),
    "a dense grid": nn.ToDense,
    "a pool of items": nn.GlobalPool,
}


def dual(run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> object:
    with forward_ad.dual_level():
        return run(forward_ad.make_dual(x, torch.ones_like(x)))


def summed(run: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: run(x).sum()


WAYS: dict[str, Callable[..., object]] = {
    "grad": lambda run, x: torch.func.grad(summed(run))(x),
    "vjp": lambda run, x: torch.func.vjp(run, x),
    "vmap": lambda run, x: torch.func.vmap(run)(x[None]),
    "jvp": lambda run, x: torch.func.jvp(run, (x,), (x,)),
    "jacrev": lambda run, x: torch.func.jacrev(run)(x),
    "hessian": lambda run, x: torch.func.hessian(summed(run))(x),
    "forward mode": dual,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("gradients", [True, False])
def test_they_are_refused(way: str, name: str, gradients: bool) -> None:
    """Where nothing wants a gradient too: a tangent must not vanish."""
    layer = LAYERS[name]()
    for parameter in layer.parameters():
        parameter.requires_grad_(gradients)
    x = random_tensor(extent=4, count=20).detach()

    def run(features: torch.Tensor) -> torch.Tensor:
        made = layer(x.replace(features=features))
        return made if isinstance(made, torch.Tensor) else made.features

    with pytest.raises(UserError, match="torch.autograd.grad"):
        WAYS[way](run, x.features)
    assert run(x.features).isfinite().all()
