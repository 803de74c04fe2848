"""Weights in the order of Pumice's operators: [K, in / groups, out]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .... import _C

if TYPE_CHECKING:
    from .conv import SparseConvolution


class Kept:
    """Of one layer that is frozen (`pumice.nn.freeze`); no copy of the layer takes it along."""

    __slots__ = ("_of", "_packed", "_weight", "frozen")

    def __init__(self) -> None:
        self.frozen = False
        self._forget()

    def freeze(self) -> None:
        self.frozen = True
        self._forget()

    def _forget(self) -> None:
        self._of: tuple[Any, ...] | None = None
        self._packed: Any = None
        self._weight: Tensor | None = None

    def of(self, layer: SparseConvolution) -> tuple[Tensor, Any]:
        """(weight, packed weights); unless it is frozen and not in training a new weight, through
        which gradients go back into the layout of the parameter, and None."""
        weight = layer.weight
        if not self.frozen or layer.training or weight.is_inference() or (
            torch.is_grad_enabled() and weight.requires_grad
        ):  # fmt: skip
            return reordered(weight), None
        now = (weight.data_ptr(), weight._version, weight.dtype, weight.device)
        if self._of != now:
            with torch.inference_mode(False), torch.no_grad():
                self._weight = reordered(weight)
            self._packed = _C.PackedWeights()
            self._of = now
        return self._weight, self._packed

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return Kept()

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, ()


def reordered(weight: Tensor) -> Tensor:
    """[out, *kernel, in] to [K, in, out]."""
    return weight.flatten(1, -2).permute(1, 2, 0).contiguous()
