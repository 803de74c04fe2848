"""What the interfaces share: parameters in foreign layouts, and foreign names for packages."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _C, ops
from ..convert.layouts import LAYOUTS, axis_order, to_common
from ..nn import deferred
from ..nn.permuted_weights import PermutedWeight


class PeerAssertionError(_C.UserError, AssertionError):
    """A wrong argument that the library stood in for asserts about: code written for it catches an
    AssertionError."""


def check_rows(name: str, rows: Any) -> None:
    """Raises PeerAssertionError, naming the argument, for what is no tensor, as a NumPy array."""
    if not isinstance(rows, Tensor):
        raise PeerAssertionError(
            f"{name} are a {type(rows).__module__}.{type(rows).__name__}: give a tensor "
            "(torch.from_numpy(array) makes one)"
        )


class ForeignWeight(PermutedWeight):
    """Turns a parameter that stays in another library's layout; its gradient comes back in it.

    `strided`: whether the layer's stride is not 1, which a kernel of one offset is laid out by.
    """

    def __init__(self, layout: str, size: Sequence[int], strided: bool = False) -> None:
        super().__init__()
        self.layout = LAYOUTS[layout]
        self.size = tuple(size)
        self.strided = strided

    def turn(self, parameter: Tensor) -> Tensor:
        """To [K, in / groups, out], last axis fastest; differentiable."""
        common = to_common(self.layout, parameter, self.size, self.strided)
        return common.reshape(-1, *common.shape[-2:])

    def _order(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return axis_order(self.layout, shape, self.size, self.strided)

    def convolve(
        self, features: Tensor, parameter: Tensor, map: ops.Map, bias: Tensor | None, training: bool,
        plans: _C.Plans | None = None,
    ) -> Tensor:  # fmt: skip
        """[in rows, C_in] to [out rows, C_out]; of features that a sparse tensor holds a result to be held
        likewise, which may be computed later."""
        later = deferred.convolved(features, parameter, self, training, map, bias, plans)
        if later is not None:
            return later
        features = deferred.plain(features)
        bias = None if bias is None else bias.reshape(-1)
        weight, packed = self.operands(parameter, training)
        return ops.convolution(features, weight, map, bias, kept=packed, plan=plans)

    def _arguments(self) -> tuple[Any, ...]:
        return self.layout.name, self.size, self.strided


def install_packages(packages: Mapping[str, str]) -> None:
    """Puts packages, with all that is loaded of them, under foreign names in this process:
    {"spconv": "pumice.compat.spconv"}.

    Raises UserError, and changes nothing, where another library of such a name is imported already.
    """
    modules = {
        name + loaded[len(own) :]: module
        for name, own in packages.items()
        for loaded, module in list(sys.modules.items())
        if loaded == own or loaded.startswith(own + ".")
    }
    for name, module in modules.items():
        there = sys.modules.get(name)
        if there in (None, module) or getattr(there, "PUMICE_SHIM", False):
            continue
        file = getattr(there, "__file__", None) or "memory"
        raise _C.UserError(
            f"{name} is imported already, from {file}: call install() before anything imports it"
        )
    sys.modules.update(modules)
