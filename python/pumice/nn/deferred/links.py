"""Defines `Link`, a computation that waits: relu(norm(convolution(source)) + residual), as far as it has been
asked for."""

from __future__ import annotations

import weakref
from typing import Protocol, Union

import torch
from torch import Tensor

from ... import _C
from ...ops import modes
from . import region
from .uses import Habit, Use

# By their own names, since a network asks for each of them some hundred times a pass.
_learns_now = torch.is_grad_enabled
_infers_now = torch.is_inference_mode_enabled
_any_autocast = torch._C._is_any_autocast_enabled
_Size = torch.Size
_reference_to = weakref.ref

# The stages of a link: which operations have been added.
CONVOLVED, NORMED, SUMMED, RECTIFIED = range(4)


# PyTorch's switches in a call, which hold for what is computed of it later: whether gradients are recorded, inference
# mode, the type of autocast, and the stream.
Mode = tuple[bool, bool, Union[torch.dtype, None], int]
_LEARNS, _AUTOCAST = 0, 2


class Layout(Protocol):
    """How a layer lays out its weight, and where it keeps it packed. `habit`: the uses of the layer's outputs."""

    habit: Habit

    def operands(
        self, parameter: Tensor, training: bool
    ) -> tuple[Tensor, _C.PackedWeights | None]:
        """[offsets, in, out], as kernels take it, and where a frozen layer keeps it packed."""

    def of(self, training: bool) -> _C.PackedWeights | None:
        """Where a frozen layer keeps it packed; None where it may change."""

    def as_lies(self, parameter: Tensor) -> _C.WeightLayout | None:
        """The layout as kernels take it; None where it differs by more than the order of axes."""

    def turn(self, parameter: Tensor) -> Tensor:
        """The weight as [offsets, in, out]; differentiable."""


# Arguments of torch.nn.functional.batch_norm: mean, variance, weight, bias, training, momentum and eps; and the
# count of batches, if it still has to be increased.
Norm = tuple[Tensor, Tensor, Tensor, Tensor, bool, float, float, Union[Tensor, None]]


def now(features: Union[Tensor, Link]) -> Mode:
    """The switches of a call on `features`, which may be a link."""
    return (
        _learns_now(),
        _infers_now(),
        modes.autocast_dtype(features) if _any_autocast() else None,  # type: ignore[arg-type]  (takes what it asks of)
        modes.stream_of(features) if features.is_cuda else 0,  # type: ignore[arg-type]
    )


class Again:
    """The input of a convolution that may have to be computed again, kept alive by the tensors that hold its result."""

    __slots__ = ("__weakref__", "source", "version")

    def __init__(self, source: Tensor) -> None:
        self.source = source
        self.version = modes.version_of(source)


class StandIn(Protocol):
    """A tensor that stands for what a link makes (`Deferred`, in tensors.py)."""

    stage: int
    again: Again | None


class Link:
    """A convolution, and the operations that have been added to it. `running.ComputedLink` can compute it.

    `parameter`, `layout`, `training`, `plans`: the weight of the layer, how it lies, whether the layer is in
    training, and its plans. `source`, `residual`: what it takes, links or tensors. `users`: the links that take its result. `seen`: the
    tensors that stand for its result, or for the result of an earlier stage. `value`: its result, once it is
    computed. `early`: results of earlier stages that a tensor still stood for then; `early_held`: which stages those
    are, a bit for each. `again`: the input of the convolution, if its result may still be read.
    `version` (of the weight), `versions` (of the norm), `source_version`, `residual_version`: how often each input
    had been changed in place when it was added; `value_version`: the same of the result when it was computed.
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
        self, source: Union[Link, Tensor], parameter: Tensor, layout: Layout, training: bool, out_channels: int,
        map: _C.Map, use: Use, plans: _C.Plans | None = None,
    ) -> None:  # fmt: skip
        """A convolution of `source` [N, in] through `map` to [M, out]."""
        self.parameter = parameter
        self.layout = layout
        self.training = training
        self.plans = plans
        self.map = map
        self.use = use
        mode = now(source)
        if isinstance(source, Link):
            if source.mode == mode:
                mode = source.mode
                source.users.append(_reference_to(self))
                self.source_version = 0
            else:
                source = source.result()
                self.source_version = modes.version_of(source)
        else:
            self.source_version = modes.version_of(source)
        self.mode = mode
        self.source: Union[Link, Tensor, None] = source
        self.shape = _Size((map.out_rows, out_channels))
        self.device = source.device
        self.is_cuda = source.is_cuda
        self.dtype = mode[_AUTOCAST] or source.dtype
        self.learns = learns = mode[_LEARNS]
        self.requires_grad = learns and (source.requires_grad or parameter.requires_grad)
        self.version = modes.version_of(parameter)
        self.users: list[weakref.ref[Link]] = []
        self.seen: list[weakref.ref[StandIn]] = []
        self.early: dict[int, Tensor] = {}
        region.add(self)

    def may_change(self) -> bool:
        """Whether the layer is not frozen."""
        return self.layout.of(self.training) is None

    def operands(self) -> tuple[Tensor, _C.PackedWeights | None]:
        """The weight [offsets, in, out], and where a frozen layer keeps it packed."""
        return self.layout.operands(self.parameter, self.training)

    def normalize(self, norm: Norm) -> None:
        """Adds a batch norm."""
        self.stage = NORMED
        self.norm = norm
        self.versions = versions_of(norm)
        if self.learns and not self.requires_grad:
            self.requires_grad = norm[2].requires_grad or norm[3].requires_grad
        if norm[4]:
            region.moves_statistics(self)

    def add(self, residual: Union[Link, Tensor]) -> None:
        """Adds a sum with `residual`."""
        self.stage = SUMMED
        self.residual = residual
        if self.learns and not self.requires_grad:
            self.requires_grad = residual.requires_grad
        if isinstance(residual, Link):
            residual.users.append(_reference_to(self))
        else:
            self.residual_version = modes.version_of(residual)

    def rectify(self) -> None:
        """Adds a ReLU."""
        self.stage = RECTIFIED
        self.relu = True

    def needs(self) -> list[Union[Link, Tensor]]:
        """The links and tensors that it takes, before it is computed."""
        assert self.source is not None
        return [self.source] if self.residual is None else [self.source, self.residual]

    def before_a_change(self) -> None:
        """Computes the links that take its result, before that is changed in place."""
        for reference in self.users:
            user = reference()
            if user is not None and not user.is_done:
                user.result()

    def held(self) -> int:
        """The stages whose results tensors still stand for: a bit for each."""
        stages = 0
        for reference in self.seen:
            tensor = reference()
            if tensor is not None:
                stages |= 1 << tensor.stage
        return stages

    def computes_again(self) -> bool:
        """Whether the convolution's result is the only earlier one that a tensor stands for. Hardly any code reads
        it, and without gradients it can be computed again later."""
        return (
            self.early_held == 1 << CONVOLVED
            and self.norm is not None
            and not self.norm[4]
            and not self.requires_grad
        )

    def result(self, stage: int | None = None) -> Tensor:
        """Its result, or that of an earlier stage; computed if it is not there yet."""
        raise NotImplementedError

    def settle(self) -> None:
        """Computes the convolution's result, if a tensor still stands for it."""
        if self.again is not None and self.again() is not None:
            self.result(CONVOLVED)

    def get_device(self) -> int:
        """The number of the GPU, -1 on the CPU, as a tensor has it."""
        return self.device.index if self.is_cuda else -1


def versions_of(norm: Norm) -> tuple[int, ...]:
    """The versions of a norm's tensors that must not change until it is computed; its statistics may in training."""
    mean, variance, weight, bias, training = norm[:5]
    try:
        if training:
            return weight._version, bias._version
        return weight._version, bias._version, mean._version, variance._version
    except RuntimeError:  # in inference mode PyTorch does not count
        return ()
