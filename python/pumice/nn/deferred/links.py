"""What is to be computed: relu(norm(convolution(source)) + residual), as far as it has been asked for."""

from __future__ import annotations

import weakref
from typing import NamedTuple, Protocol, Union

import torch
from torch import Tensor

from ... import _C
from ...ops import modes
from . import region
from .uses import Habit, Use

# How far a link has been asked for.
CONVOLVED, NORMED, SUMMED, RECTIFIED = range(4)


# PyTorch's switches in a call, which hold for what it asks to be computed: whether gradients are recorded,
# inference mode, the type of autocast, and the stream.
Mode = tuple[bool, bool, Union[torch.dtype, None], int]
_LEARNS, _AUTOCAST = 0, 2


class Layout(Protocol):
    """How a layer keeps its weight."""

    def operands(
        self, parameter: Tensor, training: bool
    ) -> tuple[Tensor, _C.PackedWeights | None]:
        """[offsets, in, out], as kernels take it, and where a frozen layer keeps it packed."""

    def of(self, training: bool) -> _C.PackedWeights | None:
        """Where a frozen layer keeps it packed; None where it may change."""

    def as_lies(self, parameter: Tensor) -> _C.WeightLayout | None:
        """How it lies, for kernels; None where axes in another order are not all."""

    def turn(self, parameter: Tensor) -> Tensor:
        """To [offsets, in, out]; differentiable."""


class Weight(NamedTuple):
    """A layer's parameter."""

    parameter: Tensor
    layout: Layout
    training: bool
    out_channels: int

    def may_change(self) -> bool:
        """Whether nobody has promised that it stays as it is."""
        return self.layout.of(self.training) is None

    def operands(self) -> tuple[Tensor, _C.PackedWeights | None]:
        """[offsets, in, out], and where a frozen layer keeps it packed."""
        return self.layout.operands(self.parameter, self.training)


# Arguments of torch.nn.functional.batch_norm: mean, variance, weight, bias, training, momentum and eps; and the
# count of batches, where that has not gone up yet.
Norm = tuple[Tensor, Tensor, Tensor, Tensor, bool, float, float, Union[Tensor, None]]


def now(features: Union[Tensor, Link]) -> Mode:
    """Of a call on `features`, or on what makes them."""
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        modes.autocast_dtype(features),  # type: ignore[arg-type]  (takes what it asks of a tensor)
        modes.stream_of(features),  # type: ignore[arg-type]
    )


class Again:
    """What a convolution is computed of, kept by those who hold its result."""

    __slots__ = ("__weakref__", "source", "version")

    def __init__(self, source: Tensor) -> None:
        self.source = source
        self.version = modes.version_of(source)


class StandIn(Protocol):
    """A tensor that stands for what a link makes (`Deferred`, in tensors.py)."""

    stage: int
    again: Again | None


class Link:
    """A convolution, and what has been asked for of its output. `running.ComputedLink` can compute it.

    `users`: the links that take what it makes; `seen`: the tensors that stand for what it makes, or made
    before it was asked for more; `value`: what it makes, once that is there; `early`: what it made of that,
    by stage, where somebody held it: `early_held`, as bits by stage, when it was computed; `again`: what a
    convolution that somebody holds can be computed of should they ever ask. `version`, `versions`,
    `source_version` and `residual_version`: how often what it takes had been changed in place; `value_version`:
    how often what it makes had been when it was there.
    """

    # What most links never change stays with the class: setting it takes time, for each of 50 layers.
    stage = CONVOLVED
    norm: Norm | None = None
    versions: tuple[int, ...] = ()
    residual: Union[Link, Tensor, None] = None
    residual_version = 0
    relu = False
    is_done = False
    value: Tensor | None = None
    value_version = 0
    early_held = 0
    again: weakref.ref[Again] | None = None
    error: BaseException | None = None

    def __init__(
        self, source: Union[Link, Tensor], weight: Weight, map: _C.Map, use: Use, habit: Habit
    ) -> None:
        """`source` [N, in] through a map, [M, out]."""
        parameter = weight.parameter
        self.weight = weight
        self.map = map
        self.use = use
        self.habit = habit
        self.mode = mode = now(source)
        if isinstance(source, Link):
            if source.mode == mode:
                source.users.append(weakref.ref(self))
            else:
                source = source.result()
        self.source: Union[Link, Tensor, None] = source
        self.source_version = 0 if isinstance(source, Link) else modes.version_of(source)
        self.shape = torch.Size((map.out_rows, weight.out_channels))
        self.device = source.device
        self.is_cuda = source.is_cuda
        self.dtype = mode[_AUTOCAST] or source.dtype
        self.learns = mode[_LEARNS]
        self.requires_grad = self.learns and (source.requires_grad or parameter.requires_grad)
        self.version = modes.version_of(parameter)
        self.users: list[weakref.ref[Link]] = []
        self.seen: list[weakref.ref[StandIn]] = []
        self.early: dict[int, Tensor] = {}
        region.add(self)

    def normalize(self, norm: Norm) -> None:
        """Asks for a batch norm of it."""
        self.stage = NORMED
        self.norm = norm
        self.versions = versions_of(norm)
        if self.learns and not self.requires_grad:
            self.requires_grad = norm[2].requires_grad or norm[3].requires_grad
        if norm[4]:
            region.moves_statistics(self)

    def add(self, residual: Union[Link, Tensor]) -> None:
        """Asks for a sum with `residual`."""
        self.stage = SUMMED
        self.residual = residual
        if self.learns and not self.requires_grad:
            self.requires_grad = residual.requires_grad
        if isinstance(residual, Link):
            residual.users.append(weakref.ref(self))
        else:
            self.residual_version = modes.version_of(residual)

    def rectify(self) -> None:
        """Asks for a ReLU of it."""
        self.stage = RECTIFIED
        self.relu = True

    def needs(self) -> list[Union[Link, Tensor]]:
        """What it takes; nothing once it is computed."""
        assert self.source is not None
        return [self.source] if self.residual is None else [self.source, self.residual]

    def before_a_change(self) -> None:
        """Computes the links that take what it makes, which somebody is about to change in place."""
        for reference in self.users:
            user = reference()
            if user is not None and not user.is_done:
                user.result()

    def held(self) -> int:
        """What people could still ask for of what it makes and made on the way: a bit for each stage."""
        stages = 0
        for reference in self.seen:
            tensor = reference()
            if tensor is not None:
                stages |= 1 << tensor.stage
        return stages

    def computes_again(self) -> bool:
        """Whether all that is held from on the way is the convolution's result, which hardly anybody asks for
        and which comes to the same later: nothing learns here."""
        return (
            self.early_held == 1 << CONVOLVED
            and self.norm is not None
            and not self.norm[4]
            and not self.requires_grad
        )

    def result(self, stage: int | None = None) -> Tensor:
        """What it makes, computed if it is not there yet, or made at a stage before."""
        raise NotImplementedError

    def settle(self) -> None:
        """Computes the convolution that somebody holds, if they still do."""
        if self.again is not None and self.again() is not None:
            self.result(CONVOLVED)

    def get_device(self) -> int:
        """As of a tensor: that of the GPU, -1 on the CPU."""
        return self.device.index if self.is_cuda else -1


def versions_of(norm: Norm) -> tuple[int, ...]:
    """Of what must not change until a norm is computed; in training its statistics may."""
    mean, variance, weight, bias, training = norm[:5]
    try:
        if training:
            return weight._version, bias._version
        return weight._version, bias._version, mean._version, variance._version
    except RuntimeError:  # of inference mode, where nobody counts
        return ()
