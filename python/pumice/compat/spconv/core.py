"""Enumerations of `spconv.core`."""

from __future__ import annotations

from enum import Enum


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
