"""Defines containers: modules one after the other, residual sums, and ordinary PyTorch modules applied to
features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from typing import overload

    from torch import Tensor

    from ..coords import Coordinates

from .._where import explained, not_sparse
from ..joining import cat
from ..tensor import SparseTensor
from .composition import COMPOSITIONS, Composition
from .described import described
from .fused import Part, Step, fused_parts, has_hooks, steps_of


class OnFeatures(torch.nn.Module):
    """Applies `module` to the features, row for row.

    Args:
        module: takes [N, C] and gives [N, C'].
    Returns:
        Of a call with a sparse tensor [N, C], one [N, C'] on the same sites.
    Raises:
        UserError: where `module` gives other numbers of rows, or integers.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.OnFeatures(torch.nn.Softmax(dim=1))(x).features[0]
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def __init__(self, module: torch.nn.Module) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.module = module

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, C] to [N, C']."""
        if not isinstance(x, SparseTensor):
            raise not_sparse(self, x)
        return x.replace(features=self.module(x.features))


@described
class Sequential(torch.nn.Sequential):
    """Layers one after the other. Modules of torch.nn (and containers of them alone) see the
    features; all others see the sparse tensor. Names of parameters are those of
    torch.nn.Sequential.

    A convolution, a batch norm and a ReLU that follow each other run as one (see fused.py).
    `like` is given to the first module, a convolution: the sites it shall lead to. With `second`, a sparse tensor on the
    same sites, the first module takes `pumice.cat([x, second])`; where kernels read both, the concatenation is not made.

    Args:
        args: modules, or one OrderedDict of them by name, as torch.nn.Sequential takes.
    Returns:
        Of a call with a sparse tensor what the last module makes: a sparse tensor, or a tensor where that
        is a pooling of whole items or a dense grid. Plain tensors go through too.
    Raises:
        UserError: what a module refuses, with its path in the network.
    Waits:
        As its modules do.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> net = nn.Sequential(nn.SubMConv3d(4, 8, 3), torch.nn.BatchNorm1d(8), torch.nn.ReLU())
        >>> net(x).shape
        torch.Size([2, 8])
    """

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, x: SparseTensor, like: SparseTensor | Coordinates | None = None, second: SparseTensor | None = None
        ) -> SparseTensor: ...

        @overload
        def __call__(self, x: Tensor) -> Tensor: ...

        def __call__(self, x: Any, like: Any = None, second: Any = None) -> Any: ...

    def forward(self, x: Any, like: Any = None, second: Any = None) -> Any:
        """The modules one after the other."""
        if not isinstance(x, SparseTensor):
            return super().forward(x)
        return in_order(self, x, like=like, second=second)


class Residual(torch.nn.Module):
    """relu(body(x) + shortcut(x)) on the sites of `body(x)`; without a shortcut x is added itself.
    Where `body` ends with a batch norm, sum and ReLU are part of its pass.

    Args:
        body: layers one after the other.
        shortcut: what makes of x something of the shape, and on the sites, of body(x).
    Returns:
        Of a call with a sparse tensor [N, C], one [M, C'] on the sites of body(x).
    Raises:
        UserError: where both sides differ in channels or sites.
    Waits:
        As its modules do.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> block = nn.Residual(nn.Sequential(nn.SubMConv3d(4, 4, 3, bias=False), nn.BatchNorm(4)))
        >>> block(x).shape
        torch.Size([2, 4])
    """

    def __init__(self, body: Sequential, shortcut: torch.nn.Module | None = None) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, C] to [M, C']."""
        if torch.compiler.is_compiling():
            return self._sum_of_both(x)
        try:
            return self._sum_of_both(x)
        except (ValueError, RuntimeError) as error:
            better = explained(error)
            if better is error:
                raise
            raise better from None

    def _sum_of_both(self, x: SparseTensor) -> SparseTensor:
        other = x if self.shortcut is None else self.shortcut(x)
        return residual(self.body, x, other)


COMPOSITIONS[Sequential] = lambda module: Composition(list(module._modules.values()))
COMPOSITIONS[Residual] = lambda module: Composition([module.body], True, module.shortcut)


def residual(body: torch.nn.Module, x: SparseTensor, other: SparseTensor) -> SparseTensor:
    """relu(body(x) + other), in one pass with the batch norm that a Sequential `body` ends with.

    Args:
        body: a module of sparse tensors, best a `Sequential`.
        x: what goes through it.
        other: what is added, on the sites of body(x).
    Returns:
        A sparse tensor on the sites of body(x).
    Raises:
        UserError: where both sides differ in channels or sites.
    Waits:
        As `body` does.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.residual(nn.Sequential(nn.SubMConv3d(4, 4, 3)), x, x).shape
        torch.Size([2, 4])
    """
    if isinstance(body, Sequential) and not has_hooks(body):
        return in_order(body, x, other)
    return _sum(body(x), other)


@described
class Identity(torch.nn.Module):
    """Its input, as it is.

    Returns:
        Of a call with a sparse tensor, that one.
    Raises:
        Nothing.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.Identity()(x) is x
        True
    """

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """Its input."""
        return x


def takes_features(module: torch.nn.Module) -> bool:
    """Whether a module is PyTorch's own, and is given the features. Modules of this package, and a user's own, are
    given the sparse tensor."""
    if isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList)):
        return type(module) is torch.nn.Sequential and all(takes_features(m) for m in module)
    kind = type(module)
    if kind.__module__ == "torch.nn.utils.parametrize":
        kind = kind.__bases__[0]
    return kind.__module__.startswith("torch.nn.")


def in_order(
    body: torch.nn.Module, x: SparseTensor, other: SparseTensor | None = None, like: Any = None,
    second: SparseTensor | None = None,
) -> Any:  # fmt: skip
    """The children of `body` one after the other, as Sequential runs its own: for a module of named
    stages.

    Args:
        body: a module with children.
        x: what goes into the first.
        other: is added in the end, relu(that + other).
        like: the sites that the first child, a convolution, shall lead to.
        second: what comes beside x, on the same sites: the first child takes `pumice.cat([x, second])`. Where kernels
            read both, the concatenation is not made.
    Returns:
        What the last child makes.
    Raises:
        UserError: what a child refuses, with its path in the network; a `second` on other sites.
    Waits:
        As the children do.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> stages = torch.nn.ModuleDict({"first": nn.SubMConv3d(4, 8, 3), "second": nn.SubMConv3d(8, 2, 3)})
        >>> nn.in_order(stages, x).shape
        torch.Size([2, 2])
    """
    if torch.compiler.is_compiling():
        steps = steps_of(body._modules.values())  # found once, when the graph is made
        return _run_steps(steps, x if second is None else cat([x, second]), other, like)
    parts = fused_parts(body)
    first, last = 0, len(parts) - 1
    try:
        if second is not None:
            made = _run_joined(parts, x, second, other, like)
            x, first = (cat([x, second]), 0) if made is None else (made, 1)
        if not parts:
            return x if other is None else _sum(x, other)
        for index in range(first, len(parts)):
            x = _run_part(
                parts[index], x, other if index == last else None, like if index == 0 else None
            )
    except (ValueError, RuntimeError, AttributeError, TypeError, IndexError) as error:
        better = explained(error)
        if better is error:
            raise
        raise better from None
    return x


def _run_joined(parts: list[Part], x: SparseTensor, second: SparseTensor, other: Any, like: Any) -> SparseTensor | None:
    """The first part of what comes in two tensors; None where they have to be concatenated before."""
    if not parts or (other is not None and len(parts) == 1):
        return None
    if not (isinstance(x, SparseTensor) and isinstance(second, SparseTensor)):
        return None
    chain = parts[0].joining_chain
    if chain is None or (like is not None and not parts[0].takes_like):
        return None
    return chain.run(x, second, like)


def _run_part(part: Part, x: Any, other: SparseTensor | None, like: Any) -> Any:
    chain = part.chain if other is None else part.adding_chain
    if chain is not None and isinstance(x, SparseTensor) and (like is None or part.takes_like):
        made = chain.run(x, other, like)
        if made is not None:
            return made
    return _run_steps(part.steps, x, other, like)


def _run_steps(steps: list[Step], x: Any, other: SparseTensor | None, like: Any) -> Any:
    last = len(steps) - 1
    for index, step in enumerate(steps):
        module = step.module
        onto = like if index == 0 else None
        if module is not None:
            x = _apply(module, x, onto)
        elif not isinstance(x, SparseTensor):  # a tensor, as a pooling of whole items returns it
            for each in step.modules:
                x = each(x)
        elif index < last or other is None or step.relu:  # the ReLU of the last step comes before the sum
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
