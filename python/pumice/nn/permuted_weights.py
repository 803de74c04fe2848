"""Keeps weights that lie in another order of axes than kernels take, as they are taken."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from ..ops import modes
from .kept import Kept, used


class PermutedWeight(Kept):
    """Turns a parameter that stays as it lies; its gradient comes back there. What is kept of a frozen layer is the
    turned weight as well."""

    def __init__(self) -> None:
        super().__init__()
        self.habit = _C.Habit()  # the uses of the layer's outputs, see nn/deferred
        self._lies: tuple[tuple[int, ...], _C.WeightLayout] | None = None
        self._forget()

    def freeze(self) -> None:
        """Keeps from the next call on what the parameter is then."""
        super().freeze()
        self._forget()

    def _forget(self) -> None:
        self._turned: Tensor | None = None
        self._turned_from: tuple[Any, ...] | None = None

    def turn(self, parameter: Tensor) -> Tensor:
        """To [K, in / groups, out], last axis fastest; differentiable."""
        raise NotImplementedError

    def _order(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape in which to look at a parameter of `shape`, and the order in which its axes are [K, in, out]."""
        raise NotImplementedError

    def as_lies(self, parameter: Tensor) -> _C.WeightLayout | None:
        """How it lies, for kernels; None where axes in another order are not all."""
        shape = tuple(parameter.shape)
        if self._lies is None or self._lies[0] != shape:
            looked_at, order = self._order(shape)
            self._lies = shape, _C.WeightLayout(list(looked_at), list(order))
        return self._lies[1]

    def operands(
        self, parameter: Tensor, training: bool
    ) -> tuple[Tensor, _C.PackedWeights | None]:
        """(weight [K, in / groups, out], packed weights): of a frozen layer in evaluation those that
        are kept, else a new weight, through which gradients go back, and None."""
        packed = self.of(training)
        if (
            packed is None
            or (torch.is_grad_enabled() and parameter.requires_grad)
            or torch.compiler.is_compiling()
        ):
            return self.turn(parameter).contiguous(), None
        version = modes.version_of(parameter)
        now = (parameter.data_ptr(), version, parameter.dtype, parameter.device)
        if now != self._turned_from:
            # A later call outside inference mode may want gradients of features through it.
            with torch.inference_mode(False), torch.no_grad():
                self._turned = self.turn(parameter).contiguous()
            self.packed = packed = _C.PackedWeights()
            self._turned_from = now
        used((self._turned, packed))
        return self._turned, packed
