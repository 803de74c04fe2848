"""Runs a convolution, its batch norm, a residual and a ReLU as one.

In training the norm, the residual and the ReLU are one pass over the features, forward and backward. In inference
they are part of the convolution's kernel and cost nothing. A module with hooks runs by itself, so that its hooks see
its own input and output.

The words of this module and of chain.py:

  - A step is what runs as one: a module, or a convolution, its norm and its ReLU, some of which may be missing.
  - A link is a step as a chain takes it: a convolution, its norm, and maybe a residual and a ReLU.
  - A chain runs links in one call of the extension.
  - A part is a single step, or consecutive steps with the chain that runs them. The children of a container are cut
    into parts once (`FusedParts`).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _C, ops
from ..coords import Coordinates
from ..ops import modes
from ..tensor import SparseTensor, features_on
from .activation import ReLU
from .chain import Chain, Link
from .composition import COMPOSITIONS, nested
from .convolution import Convolution
from .kept import used
from .normalization import BatchNorm, batch_norm


class Step:
    """What runs as one: a module, or a convolution, a norm and a ReLU, some of which may be missing."""

    __slots__ = ("convolution", "folded", "module", "modules", "norm", "relu")

    def __init__(self, module: torch.nn.Module | None = None) -> None:
        self.module = module  # a module that runs by itself; convolution, norm and ReLU are unused then
        self.modules: list[torch.nn.Module] = []  # those that the step consists of, in order
        self.convolution: Convolution | None = None
        self.norm: torch.nn.BatchNorm1d | None = None
        self.relu = False
        self.folded: tuple[_C.PackedWeights, Any, tuple[Tensor, Tensor]] | None = None

    def __call__(
        self,
        x: SparseTensor,
        other: SparseTensor | None = None,
        like: Any = None,
    ) -> SparseTensor:
        """Runs the step on x, onto the sites of `like` if given; with `other`, the result is relu(step(x) + other)."""
        relu = self.relu or other is not None
        layer, norm = self.convolution, self.norm
        if layer is None and like is not None:
            raise _C.UserError("like: the first module is no convolution: leave it out")
        if layer is not None and norm is not None:
            if norm.training:
                layer._kept.norm_trains()
            elif norm.running_mean is not None:
                result = self._fused(x, other, relu, like)
                if result is not None:
                    return result
        if layer is not None:
            x = layer(x, like)
        residual = None if other is None else _features_for(other, x.coords, x.features.shape[1])
        if residual is not None and modes.autocast_dtype(x.features) is not None:
            residual = residual.to(x.features.dtype)
        if norm is not None:
            return SparseTensor._of(x.coords, batch_norm(norm, x.features, residual, relu, x.coords))
        features = x.features
        if residual is not None:
            features = features + residual
        return SparseTensor._of(x.coords, torch.relu(features) if relu else features)

    def _fused(
        self, x: SparseTensor, other: SparseTensor | None, relu: bool, like: Any
    ) -> SparseTensor | None:
        """All of it in one pass, for inference; None where a gradient is wanted, or kernels do not take the types."""
        layer, norm = self.convolution, self.norm
        features = x.features
        folds = (norm.running_mean, norm.running_var, norm.weight, norm.bias, layer.bias)
        traced = modes.traced(features)
        if layer.dataflow is not None or (traced and not torch.compiler.is_compiling()):
            return None
        weight = layer._parameters.get("weight")
        if weight is None or features.shape[1] != layer.in_channels:
            return None
        added = None if other is None else other.features
        if modes.wants_gradient(features, weight, added, *folds):
            return None
        dtype = modes.autocast_dtype(features)
        if dtype is not None and features.dtype != dtype:
            features = features.to(dtype)
        if weight.dtype != features.dtype and (
            dtype is None or not modes.rounds_weight(features, weight, layer.groups, None, layer._plans)
        ):
            return None
        if not _can_fold(features, folds):
            return None
        kept = None if traced else layer._kept.of(layer.training)
        scale, shift = self._fold(folds, kept, traced)
        found, coords = layer.find(x, like)
        residual = None
        if other is not None:
            residual = _features_for(other, coords, layer.out_channels)
            if residual.dtype != features.dtype:
                residual = residual.to(features.dtype)
        plan: Any = layer._plan_text if traced else layer._plans
        result = ops.fused_convolution(
            features, weight, found, scale, shift, residual, relu, layer.groups, kept, plan
        )
        return SparseTensor._of(coords, result)

    def _fold(
        self, of: tuple[Tensor | None, ...], kept: _C.PackedWeights | None, traced: bool
    ) -> tuple[Tensor, Tensor]:
        """Scale and shift of the norm. They are computed at each call, since PyTorch does not count writes into
        `.data`, unless the layer is frozen (`kept` is another object each time it is frozen)."""
        key = None
        if kept is not None:
            key = tuple(None if t is None else (t.data_ptr(), modes.version_of(t)) for t in of)
            if self.folded is not None and self.folded[0] is kept and self.folded[1] == key:
                used(self.folded[2])
                return self.folded[2]
        made = ops.fold_batch_norm(*of, self.norm.eps)
        used(made)
        if not traced and (kept is None or not modes.is_recorded(made[0])):
            self.folded = None if kept is None else (kept, key, made)
        return made


def _can_fold(features: Tensor, folds: tuple[Tensor | None, ...]) -> bool:
    """Whether kernels take a norm and a bias of these types: the type of sums, or that of the features."""
    wide = modes.sum_type(features.dtype)
    mean, variance, weight, bias, _ = folds
    for tensor in folds:
        if tensor is not None and tensor.dtype not in (wide, features.dtype):
            return False
    return mean.dtype == variance.dtype and (
        weight is None or bias is None or weight.dtype == bias.dtype
    )


def _features_for(other: SparseTensor, coords: Coordinates, channels: int) -> Tensor:
    """The features of a shortcut. Raises UserError where they do not fit what they are added to."""
    features = other.features
    if features.shape[1] != channels:
        raise _C.UserError(
            f"Residual: the body makes {channels} channels and the shortcut {features.shape[1]}: "
            "give it a shortcut that makes as many"
        )
    if coords is other.coords or coords.is_same(other.coords):
        return features
    if torch.compiler.is_compiling():
        return features_on(coords, other, "Residual")
    raise _C.UserError(
        f"Residual: the body leads to {len(coords)} rows and the shortcut to {len(other)}, on "
        "different sites: give the shortcut the same strides"
    )


def is_watched(module: torch.nn.Module) -> bool:
    """Whether a call of `module` does more than its class says: it has hooks, or a forward of its own."""
    return has_hooks(module) or "forward" in module.__dict__


def has_hooks(module: torch.nn.Module) -> bool:
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def steps_of(modules: Iterable[torch.nn.Module | None]) -> list[Step]:
    """Groups modules into steps. None stands for a stage that was taken out."""
    steps: list[Step] = []
    for module in modules:
        if module is None:
            continue
        last = steps[-1] if steps else None
        kind = type(module)
        if has_hooks(module):
            steps.append(Step(module))
        elif isinstance(module, Convolution) and kind.forward is Convolution.forward:
            steps.append(Step())
            steps[-1].convolution = module
        elif _is_norm(module):
            if last is None or not _goes_behind(module, last):
                steps.append(Step())
            steps[-1].norm = module
        elif _is_relu(kind) and last is not None and last.norm is not None and not last.relu:
            last.relu = True
        else:
            steps.append(Step(module))
        steps[-1].modules.append(module)
    return steps


def _goes_behind(norm: torch.nn.Module, step: Step) -> bool:
    """Whether a step can end with `norm`. One of other channels is called by itself, which says what is wrong."""
    layer = step.convolution
    return layer is not None and step.norm is None and not step.relu and norm.num_features == layer.out_channels


def _is_norm(module: torch.nn.Module) -> bool:
    return type(module) in (BatchNorm, torch.nn.BatchNorm1d)


def _is_relu(kind: type) -> bool:
    return kind in (ReLU, torch.nn.ReLU)


class Part:
    """Consecutive steps and the chain that runs them: `chain`; `adding_chain`, which adds another tensor before the
    last ReLU; or `joining_chain`, which takes the channels of another tensor behind those of the first. Without a chain
    a single step. `takes_like`: whether the first step can be told which sites to go to."""

    __slots__ = ("_joining_chain", "adding_chain", "chain", "steps", "takes_like")

    def __init__(self, steps: list[Step], links: list[Link]) -> None:
        self.steps = steps
        self.takes_like = not links or _takes_like(steps[0])
        self.chain = Chain(links) if links else None
        self._joining_chain: Chain | None = None
        self.adding_chain: Chain | None = None
        if links and links[-1].residual < 0 and not links[-1].relu:
            last = links[-1].copy()
            last.relu, last.residual = True, 1
            self.adding_chain = Chain([*links[:-1], last])

    @property
    def joining_chain(self) -> Chain | None:
        """None where something else than convolutions takes what comes in two tensors."""
        if self._joining_chain is None and self.chain is not None:
            links = [link.copy() for link in self.chain.links]
            if any(link.residual == 0 for link in links):
                return None
            for link in links:
                if link.input == 0:
                    link.second = 1
            self._joining_chain = Chain(links)
        return self._joining_chain


def parts_of(steps: list[Step]) -> list[Part]:
    """Groups steps into parts, with chains as long as possible."""
    parts: list[Part] = []
    chained: list[Step] = []
    links: list[Link] = []
    value = 0
    for step in steps:
        more = list(links)
        after = _link(step, more, value)
        if after is not None:
            chained.append(step)
            links, value = more, after
            continue
        if chained:
            parts.append(Part(chained, links))
        parts.append(Part([step], []))
        chained, links, value = [], [], 0
    if chained:
        parts.append(Part(chained, links))
    return parts


def _link(step: Step, links: list[Link], value: int) -> int | None:
    """Appends the links that compute the step from `value`; returns the number of its result, None where a chain
    cannot compute it."""
    if step.convolution is not None and step.norm is not None:
        links.append(Link(step.convolution, step.norm, step.relu, value))
        return 1 + len(links)  # values 0 and 1 are the inputs
    module = step.module
    if module is None or has_hooks(module) or type(module) not in COMPOSITIONS:
        return None
    composition = COMPOSITIONS[type(module)](module)
    shortcut: int | None = value
    if composition.shortcut is not None:
        shortcut = _link_all([composition.shortcut], links, value)
    made = _link_all(composition.modules, links, value)
    if made is None or shortcut is None:
        return None
    if composition.is_sum:
        last = links[-1]
        if made == value or last.relu or last.residual >= 0:
            return None
        last.residual, last.relu = shortcut, True
    return made


def _takes_like(step: Step) -> bool:
    if step.module is None:
        return True
    composition = COMPOSITIONS[type(step.module)](step.module)
    steps = steps_of(composition.modules)
    return not composition.is_sum and bool(steps) and _takes_like(steps[0])


def _link_all(modules: list[torch.nn.Module], links: list[Link], value: int) -> int | None:
    after: int | None = value
    for step in steps_of(modules):
        if after is not None:
            after = _link(step, links, after)
    return after


class FusedParts(NamedTuple):
    """The parts of a container's children, and what they were found for. Each call looks at the children of the modules
    in question, which costs less than to find the parts again. A copy of the container finds its own."""

    body: weakref.ref[torch.nn.Module]  # the container, since a shallow copy of it holds this object too
    children: tuple[Any, ...]  # of the container
    composed: list[tuple[torch.nn.Module, tuple[Any, ...]]]  # modules that a chain can go through, and their children
    modules: list[torch.nn.Module]
    hooked: bool
    parts: list[Part]

    @classmethod
    def of(cls, body: torch.nn.Module) -> FusedParts:
        """Finds the parts."""
        modules: list[torch.nn.Module] = []
        nested(body._modules.values(), modules)
        return cls(
            weakref.ref(body),
            tuple(body._modules.values()),
            [(module, tuple(module._modules.values())) for module in modules if type(module) in COMPOSITIONS],
            modules,
            any(map(has_hooks, modules)),
            parts_of(steps_of(body._modules.values())),
        )

    def holds(self, body: torch.nn.Module) -> bool:
        """Whether these still are the parts of `body`."""
        if self.hooked or self.body() is not body or tuple(body._modules.values()) != self.children:
            return False
        for module, children in self.composed:
            if tuple(module._modules.values()) != children:
                return False
        return not any(map(has_hooks, self.modules))

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


def fused_parts(body: torch.nn.Module) -> list[Part]:
    """The parts of a container's children, found again where children or a hook changed."""
    found: FusedParts | None = body.__dict__.get("_fused_parts")
    if found is None or not found.holds(body):
        found = body.__dict__["_fused_parts"] = FusedParts.of(body)
    return found.parts
