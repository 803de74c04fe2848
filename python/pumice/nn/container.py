"""Ordinary PyTorch modules on the features of sparse tensors, and modules one after the other."""

from __future__ import annotations

from typing import Any

import torch

from ..tensor import SparseTensor
from .chain import INSIDE, Inside
from .fused import Plan, Step, has_hooks, steps_of


class OnFeatures(torch.nn.Module):
    """Applies `module` to the features, row for row."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: SparseTensor) -> SparseTensor:
        return x.replace(features=self.module(x.features))


class Sequential(torch.nn.Sequential):
    """Layers one after the other. Modules of torch.nn (and containers of them alone) see the
    features; all others see the sparse tensor. Names of parameters are those of
    torch.nn.Sequential.

    A convolution, a batch norm and a ReLU that follow each other run as one (see fused.py).
    `like` is given to the first module, a convolution: the sites it shall lead to.
    """

    def forward(self, x: Any, like: Any = None) -> Any:
        if not isinstance(x, SparseTensor):
            return super().forward(x)
        return in_order(self, x, like=like)


class Residual(torch.nn.Module):
    """relu(body(x) + shortcut(x)) on the sites of `body(x)`; without a shortcut x is added itself.
    Where `body` ends with a batch norm, sum and ReLU are part of its pass."""

    def __init__(self, body: Sequential, shortcut: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x: SparseTensor) -> SparseTensor:
        other = x if self.shortcut is None else self.shortcut(x)
        return residual(self.body, x, other)


INSIDE[Sequential] = lambda module: Inside(list(module._modules.values()))
INSIDE[Residual] = lambda module: Inside([module.body], True, module.shortcut)


def residual(body: torch.nn.Module, x: SparseTensor, other: SparseTensor) -> SparseTensor:
    """relu(body(x) + other), in one pass with the batch norm that a Sequential `body` ends with."""
    if isinstance(body, Sequential) and not has_hooks(body):
        return in_order(body, x, other)
    return _sum(body(x), other)


class Identity(torch.nn.Module):
    """Its input, as it is."""

    def forward(self, x: SparseTensor) -> SparseTensor:
        return x


def takes_features(module: torch.nn.Module) -> bool:
    """Whether a module is PyTorch's own: the classes of this package, and a user's own modules, are
    given the sparse tensor."""
    if isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList)):
        return type(module) is torch.nn.Sequential and all(takes_features(m) for m in module)
    kind = type(module)
    if kind.__module__ == "torch.nn.utils.parametrize":
        kind = kind.__bases__[0]
    return kind.__module__.startswith("torch.nn.")


def in_order(
    body: torch.nn.Module, x: SparseTensor, other: SparseTensor | None = None, like: Any = None
) -> Any:
    """The children of `body` one after the other, as Sequential runs its own: for a module of named
    stages. With `other`, relu(that + other); `like` is given to the first of them."""
    if torch.compiler.is_compiling():
        steps = steps_of(body._modules.values())  # found once, when the graph is made
        return _run_steps(steps, x, other, like)
    plan = body.__dict__.get("_plan")
    if plan is None:
        plan = body.__dict__["_plan"] = Plan()
    parts = plan.of(body)
    if not parts:
        return x if other is None else _sum(x, other)
    last = len(parts) - 1
    for index, part in enumerate(parts):
        onto = like if index == 0 else None
        added = other if index == last else None
        chain = part.chain if added is None else part.adding_chain
        made = None
        if chain is not None and isinstance(x, SparseTensor) and (onto is None or part.takes_like):
            made = chain.run(x, added, onto)
        x = _run_steps(part.steps, x, added, onto) if made is None else made
    return x


def _run_steps(steps: list[Step], x: Any, other: SparseTensor | None, like: Any) -> Any:
    last = len(steps) - 1
    for index, step in enumerate(steps):
        module = step.module
        onto = like if index == 0 else None
        if module is not None:
            x = _apply(module, x, onto)
        elif not isinstance(x, SparseTensor):  # what a pooling of whole items returns
            for part in step.parts:
                x = part(x)
        elif index < last or other is None or step.relu:  # whose ReLU is in front of the sum
            x = step(x, like=onto)
        else:
            return step(x, other, onto)
    return x if other is None else _sum(x, other)


def _apply(module: torch.nn.Module, x: Any, like: Any) -> Any:
    if like is not None:
        return module(x, like)
    if isinstance(x, SparseTensor) and takes_features(module):
        return x.replace(features=module(x.features))
    return module(x)


def _sum(x: SparseTensor, other: SparseTensor) -> SparseTensor:
    result = x + other
    return result.replace(features=torch.relu(result.features))
