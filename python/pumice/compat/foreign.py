"""What the interfaces share: parameters in foreign layouts, and foreign names for modules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _C, ops
from ..convert.layouts import LAYOUTS, to_common


class ForeignWeight:
    """Convolves with a parameter that stays in another library's layout; its gradient comes back in it.

    Once frozen (`pumice.nn.freeze`) the turned and packed weight is kept where no gradient is wanted.
    """

    def __init__(self, layout: str, size: Sequence[int], strided: bool = False) -> None:
        self.layout = LAYOUTS[layout]
        self.size = tuple(size)
        self.strided = strided
        self.frozen = False
        self._forget()

    def freeze(self) -> None:
        self.frozen = True
        self._forget()

    def _forget(self) -> None:
        self._seen: tuple[Any, ...] | None = None
        self._turned: Tensor | None = None
        self._packed: _C.PackedWeights | None = None

    def turn(self, parameter: Tensor) -> Tensor:
        """To [K, in, out], last axis fastest; differentiable."""
        common = to_common(self.layout, parameter, self.size, self.strided)
        return common.reshape(-1, *common.shape[-2:])

    def convolve(
        self, features: Tensor, parameter: Tensor, map: ops.Map, bias: Tensor | None, training: bool
    ) -> Tensor:
        """[in rows, C_in] to [out rows, C_out]."""
        bias = None if bias is None else bias.reshape(-1)
        if (
            not self.frozen
            or training
            or torch.is_grad_enabled()
            or torch.compiler.is_compiling()
        ):
            return ops.convolution(features, self.turn(parameter), map, bias)
        seen = (parameter.data_ptr(), parameter._version, parameter.dtype, parameter.device)
        if seen != self._seen:
            self._seen, self._packed = seen, _C.PackedWeights()
            self._turned = self.turn(parameter).contiguous()
        return ops.convolution(features, self._turned, map, bias, kept=self._packed)

    def __deepcopy__(self, memo: dict[int, Any]) -> ForeignWeight:
        return ForeignWeight(self.layout.name, self.size, self.strided)

    def __reduce__(self) -> tuple[Any, ...]:
        return ForeignWeight, (self.layout.name, self.size, self.strided)


def install_modules(modules: dict[str, Any]) -> None:
    """Puts modules under foreign names. Raises UserError where the other library is loaded already."""
    for name, module in modules.items():
        loaded = sys.modules.get(name)
        file = getattr(loaded, "__file__", None) or ""
        if loaded is not None and loaded is not module and not _is_shim(loaded):
            raise _C.UserError(
                f"{name} is loaded already, from {file or 'memory'}: install before anything imports it"
            )
    sys.modules.update(modules)


def _is_shim(module: Any) -> bool:
    return getattr(module, "PUMICE_SHIM", False)
