"""Names `Link`, a computation that waits: relu(norm(convolution(source)) + residual), as far as it has been
asked for; or a join of two results.

The extension makes links, tickets and what lists them (python/src/recorder): a network notes some hundred operations
in a pass, and each note has to take less time than the launch that it saves.
"""

from __future__ import annotations

from typing import Protocol, Union

import torch
from torch import Tensor

from ... import _C
from ...ops import modes
from .uses import Habit

# By their own names, since a network asks for each of them some hundred times a pass.
_learns_now = torch.is_grad_enabled
_infers_now = torch.is_inference_mode_enabled
_any_autocast = torch._C._is_any_autocast_enabled

# A convolution, and the operations that have been added to it; it computes itself when its result is read (`running`).
#
# `parameter`, `layout`, `training`, `plans`: the weight of the layer, how it lies, whether the layer is in
# training, and its plans. `source`, `second`, `residual`: what it takes, links or tensors, None once it is computed;
# the convolution takes the channels of `second` behind those of `source`. `takers`: how many links took its result. `tickets()`: of the tensors that stand for its result, or for the result of an
# earlier stage. `value`: its result, once it is computed. `early`: results of earlier stages that a tensor still
# stood for then; `early_held`: which stages those are, a bit for each. `again`: the input of the convolution, if its
# result may still be read. `changed()`: which input was changed in place since it was added; `value_version`: how
# often the result had been changed when it was computed.
Link = _C.Link

# What a `Deferred` stands for (tensors.py), and keeps alone: `link`, `stage`, `use`, `again`.
Ticket = _C.Ticket

# The stages of a link: which operations have been added. A join, of `source` and `second`, has no convolution. A link
# that takes it takes both parts, so that it is made only where something else reads it.
CONVOLVED, NORMED, SUMMED, RECTIFIED, JOINED = range(5)


# PyTorch's switches in a call, which hold for what is computed of it later: whether gradients are recorded, inference
# mode, the type of autocast, and the stream.
Mode = tuple[bool, bool, Union[torch.dtype, None], int]


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
    """The inputs of a convolution that may have to be computed again, kept alive by the tensors that hold its result."""

    __slots__ = ("__weakref__", "parts", "versions")

    def __init__(self, parts: list[Tensor]) -> None:
        self.parts = parts
        self.versions = [modes.version_of(part) for part in parts]

    def has_changed(self) -> bool:
        """Whether one was written into since."""
        return self.versions != [modes.version_of(part) for part in self.parts]
