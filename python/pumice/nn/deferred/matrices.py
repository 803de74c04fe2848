"""Keeps what chains know of the weights of PyTorch's linear layers, which they run as convolutions of one offset."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from ..kept import KEPT_OF, Kept
from ..permuted_weights import PermutedWeight


class Matrix(PermutedWeight):
    """The weight [out, in] of a linear layer without a bias, [1, in, out] for kernels."""

    def turn(self, parameter: Tensor) -> Tensor:
        """[1, in, out]"""
        return parameter.t()[None]

    def _order(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        out, channels = shape
        return (out, 1, channels), (1, 2, 0)


# PyTorch's functions are given the weight, not its layer; an attribute of the weight would get into files.
_known = WeakTensorKeyDictionary()


def matrix_of(weight: Tensor) -> Matrix:
    """That of a parameter, made at the first call."""
    found = _known.get(weight)
    if found is None:
        found = _known[weight] = Matrix()
    return found


def _kept_of(layer: torch.nn.Module) -> Kept | None:
    parameters: dict[str, Any] = layer._parameters
    weight = parameters.get("weight")
    return None if weight is None or parameters.get("bias") is not None else matrix_of(weight)


KEPT_OF[torch.nn.Linear] = _kept_of
