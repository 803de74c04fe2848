"""spconv-triton: the interface of spconv, with kernels in Triton."""

from __future__ import annotations

from .spconv_adapter import Spconv


class SpconvTriton(Spconv):
    name = "spconv-triton"

    def __init__(self) -> None:
        import spconv_triton
        import spconv_triton.pytorch

        self.package, self.layers = spconv_triton, spconv_triton.pytorch
