"""Enumerations of `spconv.core`."""

from __future__ import annotations

from enum import Enum

from .constants import NDIM_DONT_CARE

__all__ = ["NDIM_DONT_CARE", "AlgoHint", "ConvAlgo"]


class ConvAlgo(Enum):
    """Taken and remembered; Pumice chooses its own way."""

    Native = 0
    MaskImplicitGemm = 1
    MaskSplitImplicitGemm = 2


class AlgoHint(Enum):
    NoHint = 0b000
    Fowrard = 0b001  # spelt as spconv spells it
    BackwardInput = 0b010
    BackwardWeight = 0b100
