"""Convolution by a kernel map of tensors, under another name."""

from __future__ import annotations

from .gather_scatter import GatherScatterConvolutionFuntion


class ImplicitGEMMConvolutionFuntion(GatherScatterConvolutionFuntion):
    """The same sum: there is one way to take it here."""


__all__ = ["ImplicitGEMMConvolutionFuntion"]
